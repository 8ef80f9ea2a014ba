"""The three instructions of a SchMP program (thesis table 3.1)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from strads.schedule.rounds import Job, Round, Schedule


class Program(ABC):
    """A model-parallel program: which parameters to update when, how, and what becomes of the results (algorithm 2).

    A program runs with `workers` workers, which an engine spreads over the nodes and their threads. The model lies in
    up to three places, and the program decides in which:

    - attributes of the program: every node has a copy. Only `schedule` and `aggregate` change them, in the same way
      everywhere;
    - *shards* of parameter sets, which the engine moves between nodes. A job owns the shards that its schedule names
      for it, and changes them in place;
    - the data of a worker, which stay where the worker is, and which only its own jobs touch.

    The result depends on the schedule and the number of workers alone, not on nodes, threads, backend or timing.

    Attributes
    ----------
    workers
        Number of workers, P.
    """

    workers: int

    @abstractmethod
    def schedule(self, iteration: int) -> Schedule | Iterable[Round]:
        """Return the rounds of an iteration; on every node the same.

        May depend on the program's attributes and on `iteration`, which counts from 0. `static_rotation`,
        `round_robin` and `random` make the common ones.
        """

    @abstractmethod
    def update(self, job: Job, data: Any, *shards: Any) -> Any:
        """Update the parameters of a job.

        Called by several threads at once for different workers: it may change the worker's data and the shards, and
        nothing else. What takes long should be compiled code that releases the GIL.

        Parameters
        ----------
        job
            From the schedule.
        data
            The local data D_p of worker `job.worker`.
        *shards
            The contents of `job.shards`.

        Returns
        -------
        The intermediate result R_p for `aggregate`, or None.
        """

    def merge(self, earlier: Any, later: Any) -> Any:
        """Combine two results of one worker between two synchronizations; by default their sum."""
        return earlier + later

    def aggregate(self, results: Sequence[Any]) -> None:  # noqa: B027 – not every program has something to combine
        """Combine the workers' results and bring the program's attributes up to date.

        Called on every node at a synchronization, while no job runs there, with the same results everywhere.

        Parameters
        ----------
        results
            R_p of each worker since the last synchronization, by number of the worker; None where there is none.
        """

    def weight(self, job: Job) -> float:
        """Return the work of a job, in any unit: of the jobs that are ready the heaviest goes first."""
        return 1.0
