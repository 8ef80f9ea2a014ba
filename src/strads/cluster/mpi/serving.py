"""The processes of an MPI job other than the first: they run node programs until the driver ends."""

import signal
import sys
import threading
import traceback
from collections import deque
from dataclasses import dataclass
from typing import NoReturn

from strads.cluster.cluster import encoded
from strads.cluster.messages import Message, decode
from strads.cluster.mpi.signals import in_main_thread
from strads.cluster.mpi.world import Command, World, leave_at_once
from strads.cluster.node import Node, Outcome, execute_call
from strads.errors import ProgramStopped

_LOOK = 1.0  # seconds between checks that the driver is alive
_GRACE = 2.0  # seconds for the launcher to end an abandoned process


@dataclass(frozen=True)
class Configuration:
    """Settings that the driver sends to its nodes."""

    threads: int  # of each node
    timeout: float  # seconds that a node waits for another
    path: list[str]  # where the driver finds its modules


def serve(world: World) -> NoReturn:
    """Run the programs that the driver sends; exit the process when the driver exits."""
    if in_main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):  # the driver handles it: stops the nodes, saves their state
            signal.signal(number, signal.SIG_IGN)
    world.is_serving = True
    _Server(world).run()
    raise SystemExit(0)


class _Server:
    def __init__(self, world: World):
        self._world = world
        self._orders: deque[tuple[int, int, Message]] = deque()
        self._node = Node(world.comm, 1)
        world.transport.on_command = self._on_command

    def _on_command(self, source: int, run: int, kind: int, message: Message) -> None:
        """Answer immediately any command that need not wait for the running program, on the thread that received it."""
        if kind == Command.PING:
            self._world.command(source, Command.PONG)
        elif kind == Command.STOP:
            self._world.comm._inbox.fail(run, ProgramStopped(decode(message)))
        elif kind == Command.ABANDON:
            timer = threading.Timer(_GRACE, leave_at_once)
            timer.daemon = True
            timer.start()
        else:
            self._orders.append((run, kind, message))

    def run(self) -> None:
        while True:
            run, kind, message = self._next()
            if kind == Command.CALL:
                self._call(run, message)
            elif kind == Command.CONFIGURE:
                self._configure(decode(message))
            elif kind == Command.CLEAR:
                self._node.close()
            elif kind == Command.LEAVE:
                self._node.close()
                self._world.finish()
                return

    def _next(self) -> tuple[int, int, Message]:
        while not self._orders:
            self._world.transport.idle(lambda: bool(self._orders), _LOOK, longest=1e-3)
            if not self._orders and 0 in self._world.processes.lost():  # looking takes longer than most answers
                leave_at_once()
        return self._orders.popleft()

    def _configure(self, wanted: Configuration) -> None:
        self._node.close()
        self._world.comm.timeout = wanted.timeout
        self._node = Node(self._world.comm, wanted.threads)
        sys.path.extend(entry for entry in wanted.path if entry not in sys.path)

    def _call(self, run: int, message: Message) -> None:
        with self._world.watcher:
            try:
                call = decode(message)
            except BaseException as error:
                outcome = Outcome(self._node.rank, error=error, trace=traceback.format_exc())
            else:
                outcome = execute_call(self._node, call)
            if outcome.error is not None:
                self._world.settle()
        kind = Command.ENDED if outcome.error is None else Command.FAILED
        self._world.transport.send(0, run, kind, encoded(outcome), frozen=True)
