"""Backend `mpi`: the processes started by `mpiexec`. The first is the driver and node 0."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from strads.cluster.cluster import Cluster, decoded
from strads.cluster.messages import Message, encode
from strads.cluster.mpi.serving import Configuration, serve
from strads.cluster.mpi.signals import Handler, in_main_thread
from strads.cluster.mpi.world import Command, World
from strads.cluster.node import Node, Outcome, ProgramCall, execute_call
from strads.errors import ArgumentError, NodeFailure, ProgramStopped

_PING = 1.0  # seconds between pings of a silent node
_STOPPING = 30.0  # seconds that a stopped program may be silent

_driver: "_Driver | None" = None
_world: World | None = None


def start_mpi(nodes: int | None, threads: int | None, timeout: float) -> Cluster:
    """Return the processes of this MPI job as a cluster, on rank 0; on the others, serve and never return.

    The arguments are those of `strads.init`.
    """
    global _world, _driver
    if _world is None:
        _world = World(timeout)
        if _world.rank > 0:
            serve(_world)
        _driver = _Driver(_world)
    if _world.pid != os.getpid():
        raise ArgumentError("a forked child cannot use its parent's MPI: start its loops on threads")
    if _world.is_serving:
        raise ArgumentError("a node program cannot choose where programs run: strads.init belongs to the driver")
    assert _driver is not None
    if nodes is not None and nodes != _world.size:
        raise ArgumentError(
            f"nodes={nodes}, but this job has {_world.size} process{'es' * (_world.size > 1)}: "
            f"start it with mpiexec -n {nodes} python …"
        )
    _world.check()
    return MpiCluster(_driver, _world.processes.threads_each() if threads is None else threads, timeout)


class _Job:
    """The driver's record of a program run."""

    def __init__(self, run: int):
        self.run = run
        self.waiting: set[int] = set()  # ranks whose outcome has not arrived
        self.outcomes: dict[int, Message] = {}
        self.stopped_at: float | None = None


class _Driver:
    """The driver's side of the job, from the first `strads.init` until the interpreter ends."""

    def __init__(self, world: World):
        self.world = world
        self._job = _Job(0)
        world.transport.on_command = self._on_command
        atexit.register(self._leave)
        if world.size > 1 and in_main_thread():
            self._catch_signals()

    def _catch_signals(self) -> None:
        guard = self.world.transport.guard
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            guard.catch(signal.SIGINT, interrupt)
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self.catch(signal.SIGTERM, signal.default_int_handler)
            signal.getsignal(signal.SIGTERM).replace = self.catch  # type: ignore[union-attr]  # for checkpoints
        if signal.getsignal(signal.SIGCONT) == signal.SIG_DFL:
            guard.catch(signal.SIGCONT, self._on_continue)

    def catch(self, number: int, handler: Handler) -> None:
        """Install a handler, called only where it may raise; SIGTERM reports a lost node first."""

        def on_terminate(number: int, frame: FrameType | None) -> None:
            if self.world.failure is None:
                self.world.look_for_lost(at_once=True)
                self.world.check()
                handler(number, frame)

        self.world.transport.guard.catch(number, on_terminate if number == signal.SIGTERM else handler)

    def _on_continue(self, number: int, frame: FrameType | None) -> None:
        """Look for lost nodes: Open MPI ends a job by SIGCONT, SIGTERM and SIGKILL, a quarter of a second apart."""
        if self.world.failure is None:
            self.world.look_for_lost(at_once=True)
            self.world.check()

    def start(self, node: Node, calls: Sequence[ProgramCall]) -> list[Outcome]:
        """Run a call on each node; node 0 is this thread."""
        self.world.check()
        job = _Job(calls[0].run)
        messages = [encode(call, functions=True) for call in calls[1:]]
        with self.world.watcher:
            own = self._run(job, node, calls[0], messages)
        return [own, *(decoded(rank, job.outcomes[rank]) for rank in range(1, len(calls)))]

    def _run(self, job: _Job, node: Node, call: ProgramCall, messages: Sequence[Message]) -> Outcome:
        try:
            with self.world.transport.guard:
                self._job = job
                for rank, message in enumerate(messages, 1):
                    job.waiting.add(rank)
                    self.world.transport.send(rank, job.run, Command.CALL, message, frozen=True)
            own = execute_call(node, call)
            if own.error is not None:
                self._stop(job, "node 0 failed")
                if not isinstance(own.error, Exception):  # Ctrl-C
                    raise own.error
            self._collect(job)
        except BaseException as error:
            self._stop(job, f"the driver was interrupted by {type(error).__name__}")
            self._collect_stopped(job)
            raise
        if own.error is not None:
            self.world.settle()
        return own

    def _collect_stopped(self, job: _Job) -> None:
        try:
            self._collect(job)
            self.world.settle()
        except NodeFailure:
            pass  # the interrupt is raised; the next run reports the failure
        except BaseException:
            self.world.fail(NodeFailure("the driver was interrupted again while it stopped the nodes"))
            raise

    def _stop(self, job: _Job, reason: str) -> None:
        with self.world.transport.guard:
            if job.stopped_at is None:
                job.stopped_at = time.monotonic()
                self.world.comm._inbox.fail(job.run, ProgramStopped(reason))
                for rank in job.waiting:
                    self.world.command(rank, Command.STOP, reason, job.run)

    def _collect(self, job: _Job) -> None:
        """Wait for the outcomes of all nodes, as long as they are alive."""
        world, start = self.world, time.monotonic()
        asked = start
        while job.waiting:
            world.transport.idle(lambda: not job.waiting or world.failure is not None, _PING / 2)
            world.look_for_lost()
            world.check()
            now = time.monotonic()
            if now - asked > _PING:
                asked = now
                for rank in list(job.waiting):
                    world.command(rank, Command.PING)
            self._check_silence(job, start, now)

    def _check_silence(self, job: _Job, start: float, now: float) -> None:
        limit = self.world.comm.timeout if job.stopped_at is None else min(self.world.comm.timeout, _STOPPING)
        for rank in sorted(job.waiting):
            silent = now - max(start, self.world.transport.heard[rank])
            if silent > limit + _PING:
                raise self.world.lose(rank, f"it has not answered for {silent:.0f} s")
            if job.stopped_at is not None and now - max(start, job.stopped_at) > self.world.comm.timeout + _PING:
                waited = now - job.stopped_at
                raise self.world.lose(rank, f"its program was still running {waited:.0f} s after it was stopped")

    def _on_command(self, source: int, run: int, kind: int, message: Message) -> None:
        job = self._job
        if kind in (Command.ENDED, Command.FAILED) and run == job.run:
            job.outcomes[source] = message
            job.waiting.discard(source)
            if kind == Command.FAILED:
                self._stop(job, f"node {source} failed")

    def tell_all(self, command: Command, value: object = None) -> None:
        """Send a command to all other nodes."""
        for rank in range(1, self.world.size):
            self.world.command(rank, command, value)

    def _leave(self) -> None:
        if os.getpid() != self.world.pid:
            return
        if self.world.failure is None:
            self.tell_all(Command.LEAVE)
        else:
            self.tell_all(Command.ABANDON)
            self.world.transport.flush(0.1)
            self._kill_silent()
        self.world.finish()

    def _kill_silent(self) -> None:
        """Kill nodes that do not answer, as they would not notice the end of the job."""
        failure = self.world.failure
        pid = None if failure is None or failure.rank is None else self.world.processes.pid(failure.rank)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)


class MpiCluster(Cluster):
    """The processes of an MPI job. `close` keeps them alive for the next cluster: MPI cannot be initialized twice."""

    backend = "mpi"

    def __init__(self, driver: _Driver, threads: int, timeout: float):
        super().__init__(driver.world.size, threads, timeout)
        self.hosts = driver.world.comm.hosts
        self._driver = driver
        self.runs = driver.world.comm._inbox.run  # leftovers of earlier clusters must have smaller run numbers
        driver.world.comm.timeout = timeout
        self._node = Node(driver.world.comm, threads)
        driver.tell_all(Command.CONFIGURE, Configuration(threads, timeout, list(sys.path)))

    def catch(self, number: int, handler: Handler) -> Any:
        """See `Cluster.catch`; no signal interrupts MPI in the middle of a message."""
        before = signal.getsignal(number)
        self._driver.catch(number, handler)
        return before

    def _start(self, calls: Sequence[ProgramCall]) -> list[Outcome]:
        return self._driver.start(self._node, calls)

    def _close(self) -> None:
        self._node.close()
        if self._driver.world.failure is None:
            self._driver.tell_all(Command.CLEAR)
