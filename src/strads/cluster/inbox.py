"""What has arrived at a node: messages not yet received, and memory that awaits its puts.

Every message carries the number of its program run: leftovers of a failed program are dropped, and messages that a
faster node sends for the next run are kept until this node starts it.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from strads.cluster.messages import Bytes, Message

_Key = tuple[int, int, int]  # run, source, tag


class Arrival:
    """Memory into which a `put` from another node will be written."""

    def __init__(self, run: int, source: int, tag: int, memory: Bytes, on_arrival: Callable[[], None] | None = None):
        self.run = run  # number of the program run that the put belongs to
        self.source = source  # rank of the sender
        self.tag = tag  # chosen by the program, distinguishes a sender's puts
        self.memory = memory  # as many bytes as the put has
        self.done = False  # whether they have been written
        self.on_arrival = on_arrival  # called by the receiving thread just before `done` is set


class Inbox:
    """Arrivals by sender and tag. Any thread may deliver; only the node itself takes."""

    def __init__(self) -> None:
        self.run = 0  # number of the current program run
        self.failure: BaseException | None = None  # what has ended the current run on this node or another
        self._failed_run = 0
        self.deliveries = 0  # count, by which waiting threads recognize news
        self._news = threading.Condition()
        self._messages: dict[_Key, deque[Message]] = defaultdict(deque)
        self._puts: dict[_Key, deque[Bytes]] = defaultdict(deque)
        self._expected: dict[_Key, deque[Arrival]] = defaultdict(deque)
        self._on_failure: list[Callable[[], None]] = []

    def start(self, run: int) -> None:
        """Begin a program run: drop what belongs to earlier ones."""
        with self._news:
            self.run = run
            if self._failed_run < run:  # otherwise another node failed before this one began
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
        """Write bytes to the memory that expects them, or keep them until some does: copied unless `owned`."""
        with self._news:
            arrival = self._next_expected(run, source, tag)
            if arrival is None:  # decided under the lock, to exclude a concurrent `expect`
                if run >= self.run:
                    self._puts[run, source, tag].append(data if owned else data.copy())
                self._announce()
                return
        np.copyto(arrival.memory, data)
        self.landed(arrival)

    def landing(self, run: int, source: int, tag: int) -> Arrival | None:
        """Return the arrival that expects the next put of a sender, for a backend that writes to it directly."""
        with self._news:
            return self._next_expected(run, source, tag)

    def _next_expected(self, run: int, source: int, tag: int) -> Arrival | None:
        expected = self._expected.get((run, source, tag))
        return expected.popleft() if expected else None

    def landed(self, arrival: Arrival) -> None:
        """Record that the memory of `landing` has been written."""
        with self._news:
            current = arrival.run >= self.run
        if current and arrival.on_arrival is not None:
            arrival.on_arrival()
        with self._news:
            arrival.done = True
            self._announce()

    def expect(self, source: int, tag: int, memory: Bytes, on_arrival: Callable[[], None] | None = None) -> Arrival:
        """Provide the memory for the next put of a sender, and a callback for its arrival (on any thread)."""
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
        """After a failed program: drop all expectations."""
        with self._news:
            self._expected.clear()

    def take(self, source: int, tag: int) -> Message | None:
        """Return the next message of a sender, if it has arrived."""
        with self._news:
            messages = self._messages.get((self.run, source, tag))
            return messages.popleft() if messages else None

    def fail(self, run: int, error: BaseException) -> None:
        """Make every wait of a program run raise an error."""
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
        """Context in which a failure of the run calls a function, which should stop the computation."""
        self._on_failure.append(callback)
        try:
            if self.failure is not None:
                callback()
            yield
        finally:
            self._on_failure.remove(callback)

    def wait(self, seen: int, seconds: float) -> None:
        """Wait until there have been more than `seen` deliveries, at most `seconds`."""
        with self._news:
            if self.deliveries == seen:
                self._news.wait(seconds)

    def _announce(self) -> None:
        self.deliveries += 1
        self._news.notify_all()
