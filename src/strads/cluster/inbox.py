"""What has arrived at a node: messages that nobody has asked for yet, and memory that waits for its bytes.

Everything carries the number of the program run that it belongs to: what a failed program left behind is
dropped, and what a faster node sends for the next one is kept until this node is there.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from strads.cluster.messages import Bytes, Message

_Key = tuple[int, int, int]  # run, source, tag


class Arrival:
    """Memory into which a `put` of another node will be written."""

    def __init__(self, run: int, source: int, tag: int, memory: Bytes, on_arrival: Callable[[], None] | None = None):
        self.run = run
        self.source = source
        self.tag = tag
        self.memory = memory
        self.done = False
        self.on_arrival = on_arrival


class Inbox:
    """Arrivals by sender and tag. Anyone may deliver, from any thread; only the node itself takes."""

    def __init__(self) -> None:
        self.run = 0
        self.failure: BaseException | None = None
        self._failed_run = 0
        self.deliveries = 0  # how many there have been: who waits can see that something is new
        self._news = threading.Condition()
        self._messages: dict[_Key, deque[Message]] = defaultdict(deque)
        self._puts: dict[_Key, deque[Bytes]] = defaultdict(deque)
        self._expected: dict[_Key, deque[Arrival]] = defaultdict(deque)
        self._on_failure: list[Callable[[], None]] = []

    def start(self, run: int) -> None:
        """Begin a program run: forget what belongs to earlier ones."""
        with self._news:
            self.run = run
            if self._failed_run < run:  # else another node has failed before this one has begun
                self.failure = None
            for kept in (self._messages, self._puts, self._expected):
                for key in [key for key in kept if key[0] < run]:
                    del kept[key]

    def deliver(self, run: int, source: int, tag: int, message: Message) -> None:
        """Add a message."""
        with self._news:
            if run >= self.run:
                self._messages[run, source, tag].append(message)
            self._announce()

    def deliver_put(self, run: int, source: int, tag: int, data: Bytes, *, owned: bool = False) -> None:
        """Write bytes to the memory that expects them, or keep a copy until it does; of memory given away, no copy."""
        with self._news:
            arrival = self._next_expected(run, source, tag)
            if arrival is None:  # decided under the lock: `expect` must not slip in between
                if run >= self.run:
                    self._puts[run, source, tag].append(data if owned else data.copy())
                self._announce()
                return
        np.copyto(arrival.memory, data)
        self.landed(arrival)

    def landing(self, run: int, source: int, tag: int) -> Arrival | None:
        """Return what expects the next put of a sender, for a backend that writes there by itself."""
        with self._news:
            return self._next_expected(run, source, tag)

    def _next_expected(self, run: int, source: int, tag: int) -> Arrival | None:
        expected = self._expected.get((run, source, tag))
        return expected.popleft() if expected else None

    def landed(self, arrival: Arrival) -> None:
        """Say that the memory of `landing` has been written."""
        with self._news:
            current = arrival.run >= self.run
        if current and arrival.on_arrival is not None:
            arrival.on_arrival()
        with self._news:
            arrival.done = True
            self._announce()

    def expect(self, source: int, tag: int, memory: Bytes, on_arrival: Callable[[], None] | None = None) -> Arrival:
        """Name the memory for the next put of a sender, and what to do when it is there (on any thread)."""
        arrival = Arrival(self.run, source, tag, memory, on_arrival)
        with self._news:
            early = self._puts.get((self.run, source, tag))
            if early:
                np.copyto(memory, early.popleft())
            else:
                self._expected[self.run, source, tag].append(arrival)
                return arrival
        self.landed(arrival)
        return arrival

    def abandon(self) -> None:
        """After a failed program: nothing that arrives is expected any more."""
        with self._news:
            self._expected.clear()

    def take(self, source: int, tag: int) -> Message | None:
        """Return the next message of a sender, if it has arrived."""
        with self._news:
            messages = self._messages.get((self.run, source, tag))
            return messages.popleft() if messages else None

    def fail(self, run: int, error: BaseException) -> None:
        """End every wait of a program run with an error."""
        with self._news:
            if run < self.run or run <= self._failed_run:
                return
            self._failed_run = run
            self.failure = error
            callbacks = list(self._on_failure)
            self._announce()
        for callback in callbacks:
            callback()

    @contextmanager
    def calling_on_failure(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have a function called when the run fails, while the context lasts: it should end what computes."""
        self._on_failure.append(callback)
        try:
            if self.failure is not None:
                callback()
            yield
        finally:
            self._on_failure.remove(callback)

    def wait(self, seen: int, seconds: float) -> None:
        """Wait until there have been more than `seen` deliveries, at most so long."""
        with self._news:
            if self.deliveries == seen:
                self._news.wait(seconds)

    def _announce(self) -> None:
        self.deliveries += 1
        self._news.notify_all()
