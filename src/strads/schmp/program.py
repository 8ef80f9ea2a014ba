"""The three instructions of a SchMP program (thesis table 3.1)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from strads.schedule.static.rounds import Job, Round, Schedule


class Program(ABC):
    """A model-parallel program: which parameters to update when, how, and how to combine the results (algorithm 2).

    A program runs with `workers` workers, which an engine distributes over the nodes and their threads. The program
    decides which of three places hold the model:

    - attributes of the program: every node has a copy. Only `schedule` and `aggregate` change them, identically on
      all nodes;
    - *shards* of parameter sets, which the engine moves between nodes. A job owns the shards that the schedule
      assigns to it, and changes them in place;
    - the data of a worker, which stay on the worker's node, and which only its own jobs access.

    The result depends only on the schedule and the number of workers, not on nodes, threads, backend or timing.

    Attributes
    ----------
    workers
        Number of workers, P.
    """

    workers: int

    @abstractmethod
    def schedule(self, iteration: int) -> Schedule | Iterable[Round]:
        """Return the rounds of an iteration, the same on every node.

        May depend on the program's attributes and on `iteration`, which counts from 0. `static_rotation`,
        `round_robin` and `random` create common schedules.
        """

    @abstractmethod
    def update(self, job: Job, data: Any, *shards: Any) -> Any:
        """Update the parameters of a job.

        Called by several threads concurrently for different workers: it may change the worker's data and the shards,
        and nothing else. Expensive parts should be compiled code that releases the GIL.

        Parameters
        ----------
        job
            A job of the schedule.
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
        """Combine the workers' results and update the program's attributes.

        Called on every node at a synchronization, while no job runs there, with the same results everywhere.

        Parameters
        ----------
        results
            R_p of each worker since the last synchronization, by worker number; None where there is none.
        """

    def weight(self, job: Job) -> float:
        """Return the cost of a job, in any unit: of the ready jobs, the most expensive runs first."""
        return 1.0
