"""Carries messages and puts between the processes of an MPI job, without ever blocking inside MPI."""

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strads.cluster.inbox import Arrival, Inbox
from strads.cluster.messages import Bytes, Message
from strads.cluster.mpi.signals import Guard
from strads.cluster.mpi.wire import PutTags, pack, unpack

_COUNT = (1 << 31) - 1  # most elements that MPI 3 can count
_CHUNK = 1 << 30  # bytes: MPI counts with 32-bit integers, so long messages are sent as several such chunks
_YIELDS = 100  # polls for arrivals, about 3 µs each, before a waiting thread sleeps


@dataclass
class _Incoming:
    """A message whose large parts are being received."""

    run: int
    tag: int
    parts: list[Bytes]
    requests: list[Any]


@dataclass
class _Landing:
    """A put that is being received: into the memory that expects it, or into a buffer if nothing does yet."""

    key: tuple[int, int, int]  # run, source, tag
    memory: Bytes
    arrival: Arrival | None
    request: Any


class Transport:
    """All communication of this process through MPI. Any thread may call; one lock guards all MPI calls.

    Three private communicators carry envelopes, the parts of messages that are too large for an envelope, and
    puts. Messages from one process arrive in order: the parts follow their envelope, and are received as soon as
    it has arrived.

    Parameters
    ----------
    mpi
        The module mpi4py.MPI; MPI is initialized.
    inbox
        Receives the messages and puts for programs.

    Attributes
    ----------
    size
        Number of processes.
    guard
        The lock, which also defers signals.
    heard
        When each process last sent a message, in seconds of `time.monotonic`.
    on_command
        Called with source, run, kind and content of each control message, on the thread that has received it.
    """

    def __init__(self, mpi: Any, inbox: Inbox):
        self._mpi = mpi
        self._inbox = inbox
        world = mpi.COMM_WORLD
        self.size = world.Get_size()
        self.guard = Guard()
        self.heard = [time.monotonic()] * self.size
        self.on_command: Callable[[int, int, int, Message], None] = lambda source, run, tag, message: None
        self._envelopes, self._parts, self._puts = (world.Dup() for _ in range(3))
        self._put_tags = PutTags(world.Get_attr(mpi.TAG_UB))
        self._status = mpi.Status()
        self._sending: list[Any] = []  # a request keeps its memory alive
        self._landings: list[_Landing] = []
        self._incoming: dict[int, deque[_Incoming]] = defaultdict(deque)

    def send(self, to: int, run: int, tag: int, message: Message, *, frozen: bool = False) -> None:
        """Start sending a message; its memory is copied unless it stays unchanged (`frozen`) until it has arrived."""
        envelope, apart = pack(run, tag, message)
        if not frozen:
            apart = [part.copy() for part in apart]
        with self.guard:
            self._isend(self._envelopes, np.frombuffer(envelope, np.uint8), to, 0)
            for part in apart:
                self._isend(self._parts, part, to, 0)

    def put(self, to: int, run: int, tag: int, data: Bytes) -> None:
        """Start sending memory that does not change until it has arrived."""
        with self.guard:
            self._isend(self._puts, data, to, self._put_tags.encode(run, tag))

    def _isend(self, comm: Any, memory: Bytes, to: int, tag: int) -> None:
        request = comm.Isend(self._span(memory), to, tag)
        if not request.Test():
            self._sending.append(request)

    def _span(self, memory: Bytes) -> list[Any]:
        """Describe memory to MPI, whose counts are limited to 2³¹ − 1."""
        if memory.nbytes <= _COUNT:
            return [memory, self._mpi.BYTE]
        chunks, rest = divmod(memory.nbytes, _CHUNK)
        chunk = self._mpi.BYTE.Create_contiguous(_CHUNK)
        whole = self._mpi.Datatype.Create_struct([chunks, rest], [0, chunks * _CHUNK], [chunk, self._mpi.BYTE])
        chunk.Free()
        return [memory, 1, whole.Commit()]

    def pump(self) -> None:
        """Receive everything that has arrived, and release the memory of completed sends."""
        with self.guard:
            if self._sending:
                done = self._mpi.Request.Testsome(self._sending)
                if done:
                    self._sending = [request for request in self._sending if request]
            self._match_puts()
            arrivals = self._finish_landings() if self._landings else []
            self._match_envelopes()
            for source, queue in self._incoming.items():
                if queue:
                    self._finish_incoming(source, queue)
        for arrival in arrivals:  # outside the lock, because callbacks may take long
            self._inbox.landed(arrival)

    @property
    def is_busy(self) -> bool:
        """Whether a large transfer is in flight, in either direction, that only progresses inside MPI calls."""
        return bool(self._sending or self._landings or any(self._incoming.values()))

    def _match_puts(self) -> None:
        mpi, status = self._mpi, self._status
        while (matched := self._puts.Improbe(mpi.ANY_SOURCE, mpi.ANY_TAG, status)) is not None:
            source, nbytes = status.Get_source(), status.Get_elements(mpi.BYTE)
            run, tag = self._put_tags.decode(status.Get_tag(), self._inbox.run)
            key = run, source, tag
            overtaking = any(other.key == key and other.arrival is None for other in self._landings)
            arrival = None if overtaking else self._inbox.landing(run, source, tag)
            if arrival is not None and arrival.memory.nbytes != nbytes:
                reason = (
                    f"{arrival.memory.nbytes} bytes were expected from node {source} under tag {tag}, {nbytes} arrived"
                )
                self._inbox.fail(run, ValueError(reason))
                arrival = None
            memory = np.empty(nbytes, np.uint8) if arrival is None else arrival.memory
            self._landings.append(_Landing(key, memory, arrival, matched.Irecv(self._span(memory))))

    def _finish_landings(self) -> list[Arrival]:
        """Return the arrivals whose memory has been written."""
        waiting: list[_Landing] = []
        landed: list[_Landing] = []
        unfinished: set[tuple[int, int, int]] = set()
        for landing in self._landings:
            if landing.key in unfinished or not landing.request.Test():  # per key: first come, first served
                waiting.append(landing)
                unfinished.add(landing.key)
            else:
                landed.append(landing)
        self._landings = waiting
        for landing in landed:
            if landing.arrival is None:
                self._inbox.deliver_put(*landing.key, landing.memory, owned=True)
        return [landing.arrival for landing in landed if landing.arrival is not None]

    def _match_envelopes(self) -> None:
        mpi, status = self._mpi, self._status
        while (matched := self._envelopes.Improbe(mpi.ANY_SOURCE, mpi.ANY_TAG, status)) is not None:
            source = status.Get_source()
            envelope = np.empty(status.Get_count(mpi.BYTE), np.uint8)
            matched.Recv([envelope, mpi.BYTE])
            self.heard[source] = time.monotonic()
            run, tag, parts, apart = unpack(envelope.tobytes())
            requests = [self._parts.Irecv(self._span(part), source, 0) for part in apart]
            if requests or self._incoming[source]:
                self._incoming[source].append(_Incoming(run, tag, parts, requests))
            else:
                self._deliver(source, run, tag, parts)

    def _finish_incoming(self, source: int, queue: deque[_Incoming]) -> None:
        while queue and (not queue[0].requests or self._mpi.Request.Testall(queue[0].requests)):
            message = queue.popleft()
            self._deliver(source, message.run, message.tag, message.parts)

    def _deliver(self, source: int, run: int, tag: int, parts: list[Bytes]) -> None:
        message = Message(parts[0].tobytes(), tuple(parts[1:]))
        if tag < 0:
            self.on_command(source, run, tag, message)
        else:
            self._inbox.deliver(run, source, tag, message)

    def idle(self, is_over: Callable[[], bool], seconds: float, *, longest: float = 1e-4) -> None:
        """Pump until `is_over` or the time limit; sleep in between, because nodes compute on these cores."""
        self.pump()
        if seconds <= 0 or is_over():
            return
        deadline, turns, pause = time.monotonic() + seconds, 0, 5e-6
        while True:
            turns += 1
            if turns < _YIELDS:
                os.sched_yield()  # time.sleep(0) would take 80 µs
            else:
                time.sleep(pause)
                pause = min(1.2 * pause, 2e-5 if self.is_busy else longest)
            self.pump()
            if is_over() or time.monotonic() > deadline:
                return

    def settle(self, seconds: float) -> None:
        """Wait until no put is being written into memory of the program that has just ended."""
        self.idle(lambda: not any(landing.arrival for landing in self._landings), seconds)

    def flush(self, seconds: float) -> None:
        """Wait until everything has been sent."""
        self.idle(lambda: not self._sending, seconds)

    def farewell(self, seconds: float) -> bool:
        """Complete all pending sends and receives; return whether all processes did, so that MPI can be finalized."""
        self.flush(seconds)
        with self.guard:
            barrier = self._envelopes.Ibarrier()
        ended = False

        def has_ended() -> bool:
            nonlocal ended
            with self.guard:
                ended = ended or barrier.Test()
            return ended

        self.idle(has_ended, seconds)
        return ended
