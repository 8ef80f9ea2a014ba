"""What a node waits for while it runs its part of a plan: rows or shards from other nodes."""

import time
from collections.abc import Callable

import numpy as np

from strads.cluster import Comm
from strads.engine.plans.job_pool import JobPool, jobs_taken_and_done
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
        self._done = 0  # jobs at that time
        self.arrived = np.zeros(len(part.arrivals), bool)

    def note(self, number: int) -> None:
        """Record an arrival, by its position in the node's plan."""
        self.arrived[number] = True

    def wait(self, pool: JobPool, seen: int | None = None) -> None:
        """Wait a moment for messages, in a thread that finds no job ready.

        Parameters
        ----------
        pool
            The jobs of the node. The time limit counts only while none of them runs, from the end of the last one.
        seen
            The number of deliveries when the thread last looked for messages, if it does that itself.

        Raises
        ------
        NodeFailure
            If nothing has happened for the time limit while something is missing.
        """
        taken, done = jobs_taken_and_done(pool)
        if self.arrived.all() or taken != done or done != self._done:
            self._news, self._done = time.monotonic(), done
        elif time.monotonic() - self._news > self._comm.timeout:
            self._give_up()
        self._comm.progress(self._rest, seen)

    def _give_up(self) -> None:
        """Name the arrival that is needed first: the node that sends a later one may itself be waiting."""
        missing = [move for move, here in zip(self._moves, self.arrived, strict=True) if not here]
        first = min(missing, key=lambda move: min(move.before, default=np.inf))
        raise self._comm.timed_out(f"{self._describe(first)} from {self._comm.name(first.source)}", first.source)
