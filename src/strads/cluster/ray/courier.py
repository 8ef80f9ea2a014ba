"""Batches a node's messages to another on Ray: many in one call of the peer's actor.

A call costs each side half a millisecond of CPU time, whatever it carries. So a node has only a few calls to a peer
in flight, each with all that was queued when it began. Messages are sent immediately; puts, which are frequent while
a node computes, are held back briefly to be batched (until the node itself waits for something).
"""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from strads.cluster.messages import Bytes

IN_FLIGHT = 2  # calls in flight to one peer
GAP = 0.010  # seconds between calls that only carry puts, unless the program sets `Comm.hold`
FULL = 512 << 10  # bytes that are worth a separate call
BATCH = 16 << 20  # bytes that close a batch
PIECE = 100_000  # bytes of an argument that Ray sends inline; larger ones go through the object store
INLINE = 4 << 20  # bytes up to which a batch is cut into such pieces (Ray allows 10 MB)

Batch = tuple[list[tuple[int, int, bytes | None, tuple[int, ...]]], list[list[Any]]]


class Item(NamedTuple):
    """A message, or (without a header) a put."""

    run: int  # number of the program run
    tag: int  # by which the receiver selects it
    header: bytes | None  # that of the `Message`; None: a put
    buffers: Sequence[Bytes]  # memory of the message's arrays, or of the put's one array

    @property
    def nbytes(self) -> int:
        """Bytes to send."""
        return len(self.header or b"") + sum(buffer.nbytes for buffer in self.buffers)


class Courier:
    """Carries messages to one peer, in order.

    Parameters
    ----------
    call
        Starts the call that carries a batch and its number; returns Ray's reference to the result.
    lost
        Called with the error of a failed call.
    gap
        Returns the seconds between calls that only carry puts.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[int, Batch], Any],
        lost: Callable[[BaseException], None],
        gap: Callable[[], float],
    ):
        self._call = call
        self._lost = lost
        self._gap = gap
        self._first = 0.0  # when the oldest item in the queue arrived
        self._queue: deque[Item] = deque()
        self._nbytes = 0  # bytes in the queue
        self._urgent = False
        self._last = 0.0  # when the last call began
        self._in_flight = 0
        self.number = 0  # number of the next batch
        self._news = threading.Condition()
        threading.Thread(target=self._carry, name=name, daemon=True).start()

    def send(self, item: Item) -> None:
        """Queue a message or a put; a put may be held back for batching."""
        with self._news:
            if not self._queue:
                self._first = time.monotonic()
            self._queue.append(item)
            self._nbytes += item.nbytes
            self._urgent = self._urgent or item.header is not None
            self._news.notify()

    def flush(self) -> None:
        """Send all queued items now."""
        with self._news:
            if self._queue and not self._urgent:
                self._urgent = True
                self._news.notify()

    def _carry(self) -> None:
        while True:
            with self._news:
                while (delay := self._delay()) is None or delay > 0:
                    self._news.wait(delay)
                items = self._take()
                self._in_flight += 1
                self._last = time.monotonic()
            try:
                self._call(self.number, encode_batch(items)).future().add_done_callback(self._arrived)
            except Exception as error:
                self._lost(error)
                return
            self.number += 1

    def _delay(self) -> float | None:
        """Return the seconds until the next call is due; None: not before the queue or a call in flight changes."""
        if not self._queue or self._in_flight >= IN_FLIGHT:
            return None
        if self._urgent or self._nbytes >= FULL:
            return 0.0
        return max(self._first, self._last) + self._gap() - time.monotonic()

    def _take(self) -> list[Item]:
        items: list[Item] = []
        nbytes = 0
        while self._queue and nbytes < BATCH:
            items.append(self._queue.popleft())
            nbytes += items[-1].nbytes
        self._nbytes -= nbytes
        self._urgent = self._urgent and bool(self._queue)
        return items

    def _arrived(self, call: Any) -> None:
        error = call.exception()
        if error is not None:
            self._lost(error)
        with self._news:
            self._in_flight -= 1
            self._news.notify()


def encode_batch(items: Sequence[Item]) -> Batch:
    """Return labels, and the buffers as arguments of a call: each a list of pieces of memory, not copied."""
    labels = [(item.run, item.tag, item.header, tuple(map(len, item.buffers))) for item in items]
    buffers = [buffer for item in items for buffer in item.buffers if len(buffer)]
    if sum(map(len, buffers)) > INLINE:
        return labels, [[pickle.PickleBuffer(buffer.data) for buffer in buffers]]
    parts: list[list[Any]] = []
    room = 0
    for piece in (buffer[at : at + PIECE] for buffer in buffers for at in range(0, len(buffer), PIECE)):
        if len(piece) > room:
            parts.append([])
            room = PIECE
        parts[-1].append(pickle.PickleBuffer(piece.data))
        room -= len(piece)
    return labels, parts


def decode_batch(batch: Batch) -> Iterator[Item]:
    """Return the messages of a batch; their memory may belong to Ray, and is then read-only."""
    labels, parts = batch
    pieces = (np.frombuffer(piece, np.uint8) for part in parts for piece in part)
    for run, tag, header, sizes in labels:
        yield Item(run, tag, header, [_joined(pieces, size) for size in sizes])


def _joined(pieces: Iterator[Bytes], size: int) -> Bytes:
    taken: list[Bytes] = []
    while size > 0:
        taken.append(next(pieces))
        size -= len(taken[-1])
    if len(taken) == 1:
        return taken[0]
    return np.concatenate(taken) if taken else np.empty(0, np.uint8)
