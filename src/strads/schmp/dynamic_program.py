"""The instructions of a SchMP program whose schedule is made while it runs (thesis ch. 5, algorithm 6)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.schedule.dynamic import DynamicSchedule


class DynamicProgram(ABC):
    """A model-parallel program whose parameters are chosen by what they did last.

    The rows of the data are cut over workers, and every worker has a part in the update of every parameter. A
    parameter's way is: `schedule` proposes it, `update` gives each worker's partial result, `merge` adds these up,
    `aggregate` makes a change of the sum, and `commit` brings every worker's data up to date with it.

    Every node has a copy of the program. What changes lies in two places: with the workers (`commit` changes their
    data), and in attributes of the coordinator's copy, on node 0 (`aggregate` changes them). Only `aggregate` reads
    the latter.

    The result depends on the program, on `workers`, and on the engine's `instances`, `pipeline_depth`, `subplans` and
    `reorder`, not on nodes, threads, backend or timing.

    Attributes
    ----------
    workers
        Number of workers, P, over which the rows are cut.
    parameters
        How many there are; they are numbered from 0.
    grain
        Fewest parameters of a subplan worth a thread of their own: where a node has more threads than workers,
        `update` is called with parts of a subplan.
    """

    workers: int
    parameters: int
    grain: int = 16

    @abstractmethod
    def schedule(self, instance: int, parameters: range) -> DynamicSchedule:
        """Return what chooses among some of the parameters; called once for each instance, on its node."""

    @abstractmethod
    def update(self, parameters: NDArray[np.int64], data: Any) -> Any:
        """Return a worker's partial result R_p for some parameters; changes nothing.

        Called by several threads at once, also for different parameters and the same data. What takes long should be
        compiled code that releases the GIL. To get the same bits on any number of threads, what is computed of a
        parameter must not depend on the others in the call; matrix products do not promise that in the last bits.

        Parameters
        ----------
        parameters : int64 array of shape (k,)
            A subplan, or a part of one.
        data
            The local data D_p of the worker.

        Returns
        -------
        An array, or a tuple of arrays, whose first axis is the parameters: results of parts are concatenated.
        """

    def merge(self, earlier: Any, later: Any) -> Any:
        """Combine the results of two groups of workers, of the lower numbers first; by default their sum."""
        if isinstance(earlier, tuple):
            return tuple(a + b for a, b in zip(earlier, later, strict=True))
        return earlier + later

    @abstractmethod
    def aggregate(self, parameters: NDArray[np.int64], result: Any) -> NDArray[Any]:
        """Give parameters their new values, and return the changes δ.

        Called on the coordinator alone, in the order of dispatch.

        Parameters
        ----------
        parameters : int64 array of shape (k,)
            A subplan.
        result
            Of all workers, merged.

        Returns
        -------
        array of shape (k,) or (k, …)
            Goes to `commit`, and to the schedule as |δ| (the Euclidean norm where a parameter is several numbers).
        """

    @abstractmethod
    def commit(self, parameters: NDArray[np.int64], changes: NDArray[Any], data: Any) -> None:
        """Bring a worker's data up to date with a change; in the order of dispatch, while none of it is read.

        Workers of a node are brought up to date by several threads at once, each worker by one.
        """

    def compiled_rounds(self, schedule: DynamicSchedule, data: Any, team: ThreadTeam) -> Callable[[int], int] | None:
        """Return a function that carries out so many rounds as compiled code; by default there is none.

        Asked for on a single process with one worker and one instance, where no message has to be hidden. A round is
        all of propose, update, aggregate, commit and feedback, one after the other: `pipeline_depth` is without
        meaning then. To do some rounds and then more must be the same as to do all at once.

        Parameters
        ----------
        schedule
            What `schedule` has returned.
        data
            The worker's data.
        team
            Threads to run on.

        Returns
        -------
        callable or None
            Takes a number of rounds and returns how many parameters were updated; 0 only if nothing is left to do.
        """
        return None
