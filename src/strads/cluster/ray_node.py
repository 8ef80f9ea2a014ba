"""A node of the Ray backend, within its actor: its program, and its messages as actor calls.

A node sends all that is queued for a peer as one call, while at most a few such calls are on their way: messages
sent in a hurry share a call, and a single one does not wait. Threaded actors do not promise to keep the order of
calls, so batches are numbered.
"""

import os
import pickle
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from strads.cluster.cluster import portable
from strads.cluster.comm import Comm
from strads.cluster.messages import Bytes, Message, decode, encode
from strads.cluster.node import Node, Outcome, ProgramCall, execute_call
from strads.errors import NodeError, NodeFailure, ProgramStopped

IN_FLIGHT = 2  # calls on their way to one peer
BATCH_BYTES = 16 << 20  # a batch is closed when it has as much

Parcel = list[Any]  # what Ray carries of a message: its header, and its buffers outside of Ray's pickle


def _outside(memory: Bytes) -> pickle.PickleBuffer:
    return pickle.PickleBuffer(memory.data)


def pack(message: Message) -> Parcel:
    """Return what Ray shall carry; the memory is not copied."""
    return [message.header, *map(_outside, message.buffers)]


def unpack(parcel: Parcel) -> Message:
    """Return the message in memory of its own: Ray's is read-only, and is held for as long as it is in use."""
    return Message(parcel[0], tuple(np.array(np.frombuffer(buffer, np.uint8)) for buffer in parcel[1:]))


def pack_outcome(outcome: Outcome) -> Parcel:
    """Return an outcome for the driver; what cannot be sent becomes an error that says so."""
    try:
        return pack(encode(portable(outcome), functions=True))
    except Exception as error:
        reason = NodeError(f"the result of node {outcome.rank} cannot be sent: {type(error).__name__}: {error}")
        return pack(encode(Outcome(outcome.rank, error=reason, seconds=outcome.seconds)))


class _Item(NamedTuple):
    """A message, or (without a header) a put."""

    run: int
    tag: int
    header: bytes | None
    buffers: Sequence[Bytes]
    nbytes: int


class _Courier:
    """Carries messages to one peer, in order."""

    def __init__(self, comm: "RayComm", to: int, actor: Any):
        self._comm = comm
        self._to = to
        self._actor = actor
        self._queue: deque[_Item] = deque()
        self._news = threading.Condition()
        self._in_flight = 0
        self._number = 0  # of the next batch
        threading.Thread(target=self._carry, name=f"strads-to-{to}", daemon=True).start()

    def send(self, item: _Item) -> None:
        """Queue a message."""
        with self._news:
            self._queue.append(item)
            self._news.notify()

    def _carry(self) -> None:
        while True:
            with self._news:
                while not self._queue or self._in_flight >= IN_FLIGHT:
                    self._news.wait()
                batch = self._take()
                self._in_flight += 1
            try:
                call = self._actor.deliver.remote(self._comm.rank, self._number, batch)
            except Exception as error:
                self._lost(error)
                return
            self._number += 1
            call.future().add_done_callback(self._arrived)

    def _take(self) -> list[Any]:
        batch: list[Any] = []
        nbytes = 0
        while self._queue and nbytes < BATCH_BYTES:
            item = self._queue.popleft()
            nbytes += item.nbytes
            batch.append((item.run, item.tag, item.header, *map(_outside, item.buffers)))
        return batch

    def _arrived(self, call: Any) -> None:
        error = call.exception()
        if error is not None:
            self._lost(error)
        with self._news:
            self._in_flight -= 1
            self._news.notify()

    def _lost(self, error: BaseException) -> None:
        comm = self._comm
        message = f"{comm.name(self._to)} is lost: {type(error).__name__}"
        comm.inbox.fail(comm.inbox.run, NodeFailure(message, rank=self._to, host=comm.hosts[self._to]))


class RayComm(Comm):
    """Messages as calls of the peers' actors."""

    def __init__(self, rank: int, hosts: Sequence[str], peers: Sequence[Any], timeout: float):
        super().__init__(rank, len(peers), hosts, timeout)
        self._couriers = {to: _Courier(self, to, peer) for to, peer in enumerate(peers) if to != rank}
        self._next = [0] * len(peers)  # number of the batch that is due from each node
        self._early: dict[tuple[int, int], list[Any]] = {}
        self._ordering = threading.Lock()

    def _transmit(self, to: int, tag: int, message: Message) -> None:
        own = message.copy()
        self._couriers[to].send(_Item(self.inbox.run, tag, own.header, own.buffers, own.nbytes))

    def _transmit_put(self, to: int, tag: int, data: Bytes) -> None:
        self._couriers[to].send(_Item(self.inbox.run, tag, None, (data,), data.nbytes))

    def deliver(self, source: int, number: int, batch: list[Any]) -> None:
        """Take a batch of another node; an early one waits for those before it."""
        with self._ordering:
            self._early[source, number] = batch
            while (due := self._early.pop((source, self._next[source]), None)) is not None:
                self._next[source] += 1
                for run, tag, header, *buffers in due:
                    if header is None:
                        self.inbox.deliver_put(run, source, tag, np.frombuffer(buffers[0], np.uint8))
                    else:
                        self.inbox.deliver(run, source, tag, unpack([header, *buffers]))


class RayNode:
    """What an actor does."""

    _node: Node
    _comm: RayComm

    def locate(self) -> tuple[str, int]:
        """Return the host's name and the number of the process."""
        return socket.gethostname(), os.getpid()

    def connect(self, rank: int, hosts: Sequence[str], peers: Sequence[Any], threads: int, timeout: float) -> None:
        """Make the node, once all actors are there."""
        self._comm = RayComm(rank, hosts, peers, timeout)
        self._node = Node(self._comm, threads)

    def execute(self, run: int, common: Parcel, own: Parcel) -> Parcel:
        """Run a program.

        Parameters
        ----------
        run
            Number of the run.
        common
            The program, the names to discard, and the arguments that all nodes share.
        own
            The further arguments of this node.
        """
        try:
            program, discarded, arguments = decode(unpack(common))
            call = ProgramCall(run, program, (*arguments, *decode(unpack(own))), discarded)
        except Exception as error:
            reason = NodeError(f"{self._comm.name(self._node.rank)} cannot load the program: {error!r}")
            return pack_outcome(Outcome(self._node.rank, error=reason))
        return pack_outcome(execute_call(self._node, call))

    def deliver(self, source: int, number: int, batch: list[Any]) -> None:
        """Take what another node has sent."""
        self._comm.deliver(source, number, batch)

    def stop(self, run: int, reason: str) -> None:
        """End a program."""
        self._comm.inbox.fail(run, ProgramStopped(reason))
