"""A node of the Ray backend, inside its actor: it runs programs, and sends messages as calls of other actors."""

import os
import pickle
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from strads.cluster.cluster import encoded
from strads.cluster.comm import Comm
from strads.cluster.messages import Bytes, Message, decode
from strads.cluster.node import Node, Outcome, ProgramCall, execute_call
from strads.cluster.ray.courier import GAP, Batch, Courier, Item, decode_batch
from strads.errors import NodeError, NodeFailure, ProgramStopped

Parcel = list[Any]  # a message as Ray carries it: the header, and the buffers out of band


def _outside(memory: Bytes) -> pickle.PickleBuffer:
    return pickle.PickleBuffer(memory.data)


def pack(message: Message) -> Parcel:
    """Return the message in the form that Ray carries; the memory is not copied."""
    return [message.header, *map(_outside, message.buffers)]


def unpack(parcel: Parcel) -> Message:
    """Return the message in its own memory: Ray's is read-only, and pinned for as long as it is in use."""
    return Message(parcel[0], tuple(np.array(np.frombuffer(buffer, np.uint8)) for buffer in parcel[1:]))


class RayComm(Comm):
    """Messages as calls of the other nodes' actors; batches are numbered, as threaded actors do not keep call order."""

    def __init__(self, rank: int, hosts: Sequence[str], peers: Sequence[Any], timeout: float):
        super().__init__(rank, len(peers), hosts, timeout)
        self._couriers = {to: self._courier(to, peer) for to, peer in enumerate(peers) if to != rank}
        self._next = [0] * len(peers)  # number of the next batch from each node
        self._early: dict[tuple[int, int], Batch] = {}
        self._ordering = threading.Lock()

    def _courier(self, to: int, peer: Any) -> Courier:
        def call(number: int, batch: Batch) -> Any:
            labels, parts = batch
            return peer.deliver.remote((self.rank, number, labels), *parts)

        def lost(error: BaseException) -> None:
            what = f"{self.name(to)} is lost: {type(error).__name__}. Call strads.init again to continue with new nodes"
            self._inbox.fail(self._inbox.run, NodeFailure(what, rank=to, host=self.hosts[to]))

        def gap() -> float:
            return GAP if self.hold is None else self.hold

        return Courier(f"strads-to-{to}", call, lost, gap)

    def _transmit(self, to: int, tag: int, message: Message) -> None:
        own = message.copy()
        self._couriers[to].send(Item(self._inbox.run, tag, own.header, own.buffers))

    def _transmit_put(self, to: int, tag: int, data: Bytes) -> None:
        self._couriers[to].send(Item(self._inbox.run, tag, None, [data]))

    def flush(self) -> None:
        """Send now what is held back for batching."""
        for courier in self._couriers.values():
            courier.flush()

    def deliver(self, source: int, number: int, batch: Batch) -> None:
        """Receive a batch of another node; an early one waits for its predecessors."""
        with self._ordering:
            self._early[source, number] = batch
            while (due := self._early.pop((source, self._next[source]), None)) is not None:
                self._next[source] += 1
                for run, tag, header, buffers in decode_batch(due):
                    if header is None:
                        self._inbox.deliver_put(run, source, tag, buffers[0])
                    else:
                        self._inbox.deliver(run, source, tag, Message(header, tuple(buffers)).copy())


class RayNode:
    """The implementation of an actor."""

    _node: Node
    comm: RayComm

    def __init__(self) -> None:
        threading.Thread(target=_end_with_parent, name="strads-parent", daemon=True).start()

    def connect(self, rank: int, hosts: Sequence[str], peers: Sequence[Any], threads: int, timeout: float) -> None:
        """Create the node, once all actors exist."""
        self.comm = RayComm(rank, hosts, peers, timeout)
        self._node = Node(self.comm, threads)

    def execute(self, run: int, common: Parcel, own: Parcel) -> Parcel:
        """Run a program.

        Parameters
        ----------
        run
            Number of the run.
        common
            The program, the names to discard, and the arguments common to all nodes.
        own
            The additional arguments of this node.
        """
        try:
            program, discarded, arguments = decode(unpack(common))
            call = ProgramCall(run, program, (*arguments, *decode(unpack(own))), discarded)
        except Exception as error:
            reason = NodeError(f"{self.comm.name(self._node.rank)} cannot load the program: {error!r}")
            return pack(encoded(Outcome(self._node.rank, error=reason)))
        return pack(encoded(execute_call(self._node, call)))

    def stop(self, run: int, reason: str) -> None:
        """End a program."""
        self.comm._inbox.fail(run, ProgramStopped(reason))


def _end_with_parent() -> None:
    """End this process when its parent, Ray's daemon on this machine, is gone; Ray itself may fail to."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
