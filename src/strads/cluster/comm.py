"""Communication between the nodes of a program: messages, one-sided puts, and collectives built on them."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from strads.cluster.inbox import Arrival, Inbox
from strads.cluster.messages import Bytes, Message, as_bytes, decode, encode
from strads.errors import NodeFailure
from strads.partition import even_bounds

T = TypeVar("T")

MAX_TAG = 1 << 20  # tags of programs are smaller; tags from here on belong to collectives
_COLLECTIVE = MAX_TAG
_LOOK = 0.5  # seconds between timeout checks in a wait
_SLICED = 1 << 16  # larger arrays (in bytes) are reduced in slices, one per node


@dataclass
class Traffic:
    """What a node has sent to other nodes."""

    bytes_sent: int = 0  # in messages and puts
    messages_sent: int = 0  # and puts

    def since(self, earlier: "Traffic") -> "Traffic":
        """Return the difference."""
        return Traffic(self.bytes_sent - earlier.bytes_sent, self.messages_sent - earlier.messages_sent)

    def copy(self) -> "Traffic":
        """Return a copy of the current figures."""
        return Traffic(self.bytes_sent, self.messages_sent)


class Comm(ABC):
    """A node's connection to the others. Backends implement `_transmit`, `_transmit_put`, and `_idle`.

    Messages from one node with the same tag arrive in the order in which they were sent. All threads of a node may
    send and poll; collectives are called by one thread, on all nodes in the same order.

    Attributes
    ----------
    rank, size
        Number of this node, from 0, and the number of nodes.
    hosts
        Name of each node's host, by rank.
    timeout
        Seconds that a wait may last.
    traffic
        Bytes and messages sent.
    hold
        Seconds that a put may be held back to be batched, on backends where messages are expensive; None: briefly.
    """

    hold: float | None = None

    def __init__(self, rank: int, size: int, hosts: Sequence[str], timeout: float):
        self.rank = rank
        self.size = size
        self.hosts = list(hosts)
        self.timeout = timeout
        self._inbox = Inbox()
        self.traffic = Traffic()
        self._counting = threading.Lock()

    @abstractmethod
    def _transmit(self, to: int, tag: int, message: Message) -> None:
        """Start sending; the message's memory may change as soon as this returns."""

    @abstractmethod
    def _transmit_put(self, to: int, tag: int, data: Bytes) -> None:
        """Start sending; the memory does not change until it has arrived."""

    def _idle(self, seen: int, seconds: float) -> None:
        """Wait for an arrival, at most `seconds`; also the place to receive it."""
        self._inbox.wait(seen, seconds)

    def send(self, value: Any, to: int, tag: int = 0) -> None:
        """Send a value; never waits for the receiver. Arrays may be changed afterwards.

        Parameters
        ----------
        value
            Anything that can be pickled; the memory of arrays travels beside the pickle.
        to
            Rank of the receiver; a node may send to itself.
        tag
            Below 2²⁰; the receiver selects messages by it.
        """
        message = encode(value)
        self._count(message.nbytes, to)
        if to == self.rank:
            self._inbox.deliver(self._inbox.run, self.rank, tag, message.copy())
        else:
            self._transmit(to, tag, message)

    def recv(self, source: int, tag: int = 0) -> Any:
        """Return the next value that a node has sent with a tag.

        Raises
        ------
        NodeFailure
            If none comes within `timeout` seconds.
        """
        message = self.wait_for(lambda: self._inbox.take(source, tag), f"a message from {self.name(source)}", source)
        return decode(message)

    def poll(self, source: int, tag: int = 0) -> list[Any]:
        """Return the values with a tag that have already arrived from a node, in order; never waits."""
        values = []
        while (message := self._inbox.take(source, tag)) is not None:
            values.append(decode(message))
        return values

    def put(self, array: NDArray[Any], to: int, tag: int) -> None:
        """Send the content of a contiguous array directly into the memory that the receiver passed to `expect`.

        The array must not be changed before it has arrived.
        """
        data = as_bytes(array)
        self._count(data.nbytes, to)
        if to == self.rank:
            self._inbox.deliver_put(self._inbox.run, self.rank, tag, data)
        else:
            self._transmit_put(to, tag, data)

    def expect(self, out: NDArray[Any], source: int, tag: int, on_arrival: Callable[[], None] | None = None) -> Arrival:
        """Provide the contiguous memory for the next `put` of a node with a tag.

        `done` of the result is set once the data are there; just before, the receiving thread calls `on_arrival`.
        """
        return self._inbox.expect(source, tag, as_bytes(out), on_arrival)

    def wait_arrival(self, arrival: Arrival) -> None:
        """Wait until an expected put has arrived."""
        self.wait_for(lambda: arrival.done or None, f"data from {self.name(arrival.source)}", arrival.source)

    @property
    def run(self) -> int:
        """Number of the program run that this node is in."""
        return self._inbox.run

    @property
    def deliveries(self) -> int:
        """How many messages and puts have arrived so far: read it before looking for messages, for `progress`."""
        return self._inbox.deliveries

    def calling_on_failure(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Context in which a failure of the run calls a function, on any thread, which should stop the computation."""
        return self._inbox.calling_on_failure(callback)

    def flush(self) -> None:  # noqa: B027 – most backends hold nothing back
        """Send now what the backend holds back for batching."""

    def progress(self, seconds: float = 0.0, seen: int | None = None) -> None:
        """Receive what has arrived; wait up to `seconds` for an arrival unless there were more than `seen` deliveries.

        For threads that have other work between the messages; one that has none calls `wait_for`.

        Raises
        ------
        The error that has ended the program on another node.
        """
        before = self._inbox.deliveries if seen is None else seen
        if seconds > 0:
            self.flush()  # others may be waiting for this node
        self._idle(before if seconds > 0 else -1, seconds)
        self.check()

    def check(self) -> None:
        """Raise the error that has ended the program on another node, if any."""
        if self._inbox.failure is not None:
            raise self._inbox.failure

    def wait_for(
        self, ready: Callable[[], T | None], what: str, source: int | None = None, *, limit: float | None = None
    ) -> T:
        """Wait until `ready` returns something.

        Parameters
        ----------
        ready
            Called whenever something has arrived.
        what, source
            What is missing, and the node that should send it, for the error.
        limit
            Seconds to wait; by default `timeout`.

        Raises
        ------
        NodeFailure
            After `limit` seconds; names the node that did not answer.
        """
        start, limit = time.monotonic(), self.timeout if limit is None else limit
        self.flush()  # others may be waiting for this node
        while True:
            seen = self._inbox.deliveries
            result = ready()
            if result is not None:
                return result
            self.check()
            waited = time.monotonic() - start
            if waited > limit:
                raise self.timed_out(what, source, limit)
            self._idle(seen, min(_LOOK, limit - waited + 1e-3))

    def timed_out(self, what: str, source: int | None, limit: float | None = None) -> NodeFailure:
        """Return the error for a wait that has reached `limit`, in seconds; None: that of `strads.init(timeout=…)`."""
        seconds = self.timeout if limit is None else limit
        return NodeFailure(
            f"{self.name(self.rank)} waited {seconds:g} s for {what}, which did not arrive: that node is lost or "
            "slower than expected. If it is only slow, raise the limit: strads.init(timeout=…)",
            rank=source,
            host=None if source is None else self.hosts[source],
        )

    def name(self, rank: int) -> str:
        """Rank and host of a node, for error messages."""
        return f"node {rank} ({self.hosts[rank]})"

    def _count(self, nbytes: int, to: int) -> None:
        if to != self.rank:
            with self._counting:
                self.traffic.bytes_sent += nbytes
                self.traffic.messages_sent += 1

    def barrier(self) -> None:
        """Wait until all nodes have called this (dissemination: log₂ size rounds)."""
        distance = 1
        while distance < self.size:
            self.send(None, (self.rank + distance) % self.size, _COLLECTIVE)
            self.recv((self.rank - distance) % self.size, _COLLECTIVE)
            distance *= 2

    def broadcast(self, value: Any = None, root: int = 0) -> Any:
        """Return the root's value on every node (binomial tree)."""
        place = (self.rank - root) % self.size
        distance = 1
        while distance < self.size:
            if place < distance and place + distance < self.size:
                self.send(value, (self.rank + distance) % self.size, _COLLECTIVE)
            elif distance <= place < 2 * distance:
                value = self.recv((self.rank - distance) % self.size, _COLLECTIVE)
            distance *= 2
        return value

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """Return the values of all nodes, by rank, on the root; None elsewhere."""
        if self.rank != root:
            self.send(value, root, _COLLECTIVE)
            return None
        return [value if rank == root else self.recv(rank, _COLLECTIVE) for rank in range(self.size)]

    def alltoall(self, values: Sequence[Any]) -> list[Any]:
        """Send `values[r]` to each node r; return the values received, by rank of the sender."""
        if len(values) != self.size:
            raise ValueError(f"alltoall needs one value for each of {self.size} nodes, not {len(values)}")
        for step in range(1, self.size):
            to = (self.rank + step) % self.size
            self.send(values[to], to, _COLLECTIVE)
        received = list(values)
        for step in range(1, self.size):
            source = (self.rank - step) % self.size
            received[source] = self.recv(source, _COLLECTIVE)
        return received

    def allgather(self, value: Any) -> list[Any]:
        """Return the values of all nodes, by rank, on every node (Bruck et al. 1997: log₂ size rounds)."""
        known = [value]  # of this node and its successors
        while len(known) < self.size:
            distance = len(known)
            self.send(known[: self.size - distance], (self.rank - distance) % self.size, _COLLECTIVE)
            known += self.recv((self.rank + distance) % self.size, _COLLECTIVE)
        return [known[(rank - self.rank) % self.size] for rank in range(self.size)]

    def allreduce(self, value: Any, combine: Callable[[Any, Any], Any] = np.add) -> Any:
        """Combine the values of all nodes in rank order; every node gets the same bits.

        Parameters
        ----------
        value
            A number or an array, of the same shape on all nodes; anything that `combine` accepts.
        combine
            Sum by default; must be element-wise, as each node combines a slice of a large array.
        """
        if isinstance(value, np.ndarray) and value.nbytes > _SLICED and self.size > 1:
            flat = np.ascontiguousarray(value).reshape(-1)
            bounds = even_bounds(len(flat), self.size)
            mine = _fold(self.alltoall([flat[a:b] for a, b in pairwise(bounds)]), combine)
            return np.concatenate(self.allgather(mine)).reshape(value.shape)
        return _fold(self.allgather(value), combine)


def _fold(values: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = combine(total, value)
    return total
