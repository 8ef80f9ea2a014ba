"""The instructions of a SchMP program that is scheduled at run time (thesis ch. 5, algorithm 6)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.schedule.dynamic.schedules import DynamicSchedule


class DynamicProgram(ABC):
    """A model-parallel program whose parameters are selected by their latest changes.

    The rows of the data are partitioned over workers, and every worker takes part in the update of every parameter.
    For each parameter: `schedule` proposes it, `update` computes each worker's partial result, `merge` sums these,
    `aggregate` turns the sum into a change, and `commit` applies the change to every worker's data.

    Every node has a copy of the program. Mutable state lies in two places: with the workers (`commit` changes their
    data), and in attributes of the coordinator's copy, on node 0 (`aggregate` changes them). Only `aggregate` reads
    the latter.

    The result depends on the program, on `workers`, and on the engine's `instances`, `pipeline_depth`, `subplans` and
    `reorder`, not on nodes, threads, backend or timing.

    Attributes
    ----------
    workers
        Number of workers, P, over which the rows are partitioned.
    parameters
        Number of parameters; they are numbered from 0.
    grain
        Smallest part of a subplan worth a separate thread, in parameters: where a node has more threads than workers,
        `update` is called with parts of a subplan.
    """

    workers: int
    parameters: int
    grain: int = 16

    @abstractmethod
    def schedule(self, instance: int, parameters: range) -> DynamicSchedule:
        """Return the schedule of an instance over its parameters; called once per instance, on its node."""

    @abstractmethod
    def update(self, parameters: NDArray[np.int64], data: Any) -> Any:
        """Return a worker's partial result R_p for some parameters; changes nothing.

        Called by several threads concurrently, also with different parameters and the same data. Expensive parts
        should be compiled code that releases the GIL. For bitwise equal results on any number of threads, the result
        of a parameter must not depend on the others in the call; matrix products do not guarantee that.

        Parameters
        ----------
        parameters : int64 array of shape (k,)
            A subplan, or part of one.
        data
            The local data D_p of the worker.

        Returns
        -------
        An array, or a tuple of arrays, whose first axis is the parameters: the results of parts are concatenated.
        """

    def merge(self, earlier: Any, later: Any) -> Any:
        """Combine the results of two groups of workers, the lower-numbered group first; by default their sum."""
        if isinstance(earlier, tuple):
            return tuple(a + b for a, b in zip(earlier, later, strict=True))
        return earlier + later

    @abstractmethod
    def aggregate(self, parameters: NDArray[np.int64], result: Any) -> NDArray[Any]:
        """Set the parameters to their new values, and return the changes δ.

        Called only on the coordinator, in the order of dispatch.

        Parameters
        ----------
        parameters : int64 array of shape (k,)
            A subplan.
        result
            The merged result of all workers.

        Returns
        -------
        array of shape (k,) or (k, …)
            Passed to `commit`, and to the schedule as |δ| (the Euclidean norm where a parameter is several numbers).
        """

    @abstractmethod
    def commit(self, parameters: NDArray[np.int64], changes: NDArray[Any], data: Any) -> None:
        """Apply changes to a worker's data; called in the order of dispatch, while the data are not being read.

        The workers of a node are updated by several threads concurrently, each worker by one thread.
        """

    def compiled_rounds(self, schedule: DynamicSchedule, data: Any, team: ThreadTeam) -> Callable[[int], int] | None:
        """Return a function that runs a number of rounds as compiled code; by default there is none.

        Used on a single process with one worker and one instance, where there is no message latency to hide. A round
        consists of propose, update, aggregate, commit and feedback, in sequence: `pipeline_depth` has no effect.
        Running some rounds and then more must give the same result as running all at once.

        Parameters
        ----------
        schedule
            The return value of `schedule`.
        data
            The worker's data.
        team
            Threads to run on.

        Returns
        -------
        callable or None
            Takes a number of rounds and returns the number of parameters updated; 0 only if nothing is left to do.
        """
        return None
