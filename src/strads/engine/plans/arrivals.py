"""What a node waits for while it runs its part of a plan: rows or shards from other nodes."""

import time
from collections.abc import Callable

import numpy as np

from strads.cluster import Comm
from strads.engine.plans.job_pool import JobPool, jobs_running
from strads.schedule.nodes.placement import Move, NodePlan

# Seconds that a thread waits at a time. With several threads the wait is short, as another thread may make a job ready
# without a message.
_REST, _REST_ALONE = 2e-4, 5e-3


class Arrivals:
    """The moves to a node in one execution of its plan: which have arrived, and the wait for the others.

    Parameters
    ----------
    part
        This node's part of the plan.
    comm
        Connection to the other nodes.
    threads
        Number of threads of this node.
    describe
        Returns the name of what a move brings, for error messages.
    """

    def __init__(self, part: NodePlan, comm: Comm, threads: int, describe: Callable[[Move], str]):
        self._moves = part.arrivals
        self._comm = comm
        self._rest = _REST if threads > 1 else _REST_ALONE
        self._describe = describe
        self._news = time.monotonic()
        self.arrived = np.zeros(len(part.arrivals), bool)

    def note(self, number: int) -> None:
        """Record an arrival, by its position in the node's plan."""
        self.arrived[number] = True
        self._news = time.monotonic()

    def wait(self, pool: JobPool, seen: int | None = None) -> None:
        """Wait a moment for messages, in a thread that finds no job ready.

        Parameters
        ----------
        pool
            The jobs of the node; as long as one is running, the node is not waiting for others.
        seen
            The number of deliveries when the thread last looked for messages, if it does that itself.

        Raises
        ------
        NodeFailure
            If nothing has happened for the time limit while something is missing.
        """
        if self.arrived.all() or jobs_running(pool):
            self._news = time.monotonic()
        elif time.monotonic() - self._news > self._comm.timeout:
            self._give_up()
        self._comm.progress(self._rest, seen)

    def _give_up(self) -> None:
        """Name what is needed first: the node that sends what is needed later may itself be waiting."""
        missing = [move for move, here in zip(self._moves, self.arrived, strict=True) if not here]
        first = min(missing, key=lambda move: min(move.before, default=np.inf))
        raise self._comm.timed_out(f"{self._describe(first)} from {self._comm.name(first.source)}", first.source)
