"""The Dynamic Engine: runs a program that is scheduled while it runs, several subplans in flight (thesis §5.2)."""

import time
from dataclasses import dataclass

from strads.cluster.cores import check_count
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError
from strads.schedule.itinerary import place_workers
from strads.schmp import _dynamic_node_programs as on_node
from strads.schmp._engine import Engine, WorkersData
from strads.schmp.dynamic_program import DynamicProgram


@dataclass(frozen=True)
class DynamicRun:
    """Figures of one call of `DynamicEngine.run`.

    Attributes
    ----------
    rounds
        Plans carried out: fewer than asked for once nothing is left to schedule.
    updates
        Parameters updated, each as often as it was.
    seconds
        Time that it took.
    nodes
        What each node did, by rank. Tasks are calls of `update`; of compiled rounds, rounds.
    """

    rounds: int
    updates: int
    seconds: float
    nodes: tuple[NodeStatistics, ...]


class DynamicEngine(Engine):
    """Runs a program whose schedule depends on how its parameters converge, on the nodes and threads of `strads.init`.

    Scheduler instances, each over its own parameters, propose plans. The coordinator pulls these in turn, ahead of
    need, splits them into subplans and keeps several in flight (thesis §5.2.2, figures 5.2 and 5.3). The result
    depends on the program, on the number of workers and on the arguments below: not on nodes, threads or timing.

    On a single process with one worker and one instance, a program that brings `compiled_rounds` runs as these: there
    is no message to hide, so each plan is committed before the next is made, and `pipeline_depth`, `subplans` and
    `reorder` are without meaning.

    A context manager: at its end the nodes drop the program and its data.

    Parameters
    ----------
    program : DynamicProgram
        Each node gets a copy; the one given is left as it is.
    data : sequence or callable, optional
        The local data of each worker, or a function of the worker's number that makes them on its node. Sent to the
        worker's node once; on a single process they are used as they are, and changed.
    instances : int, optional
        Scheduler instances, spread over the nodes; by default one a node.
    pipeline_depth : int
        Subplans in flight. With 1, every update sees the changes of all before it; with d, not those of the d − 1
        latest subplans.
    subplans : int, optional
        Parts that a plan is split into; by default as many as are in flight.
    reorder : bool
        Whether the parameters of highest priority are updated first, in a subplan of their own. Then they see all
        changes of those of the plan before, as long as `subplans` is not below `pipeline_depth`. Else parameters are
        dealt out to the subplans one by one.
    threads : int, optional
        Threads to use on a single process; by default those of `strads.init`.

    Raises
    ------
    ArgumentError
        If the data are not one for each worker, or a number is below 1.

    Examples
    --------
    >>> with DynamicEngine(program, data=parts) as engine:
    ...     while gap(engine) > 1e-6:
    ...         engine.run(1000)
    ...     model = engine.program.coefficients
    """

    def __init__(
        self,
        program: DynamicProgram,
        data: WorkersData = None,
        *,
        instances: int | None = None,
        pipeline_depth: int = 3,
        subplans: int | None = None,
        reorder: bool = True,
        threads: int | None = None,
    ):
        super().__init__(program, DynamicProgram, data, threads)
        parameters = check_count("parameters", getattr(program, "parameters", None))
        check_count("grain", program.grain)
        depth = check_count("pipeline_depth", pipeline_depth)
        parts = depth if subplans is None else check_count("subplans", subplans)
        size = self._cluster.size
        count = min(size, parameters) if instances is None else check_count("instances", instances)
        if count > parameters:
            raise ArgumentError(f"{count} instances are more than the {parameters} parameters that there are")
        self._scheduling = on_node.Scheduling(place_workers(count, size), depth, parts, bool(reorder))
        each = [(self._data_of(rank, data),) for rank in range(size)]
        self._cluster.run(on_node.begin, self._name, self._equipment, self._scheduling, each=each)

    def run(self, rounds: int) -> DynamicRun:
        """Carry out so many plans, and wait until all that they change is committed everywhere.

        The pipeline is empty at the end, and fills again in the next call: many rounds in one call are quicker.
        Ctrl-C lets the call end first, so that the model stays whole; a second one does not.

        Raises
        ------
        Whatever the program raises; the model is then incomplete, and the engine refuses to go on.
        PlanError
            If a schedule proposes what it may not.
        NodeFailure
            When a node is lost.
        """
        check_count("rounds", rounds)
        start = time.perf_counter()
        with self._whole("a run"):
            found = self._cluster.run(on_node.run, self._name, self._scheduling, int(rounds))
        done, updates, _ = found[0]
        return DynamicRun(done, updates, time.perf_counter() - start, tuple(statistics for *_, statistics in found))
