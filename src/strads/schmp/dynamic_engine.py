"""The Dynamic Engine: runs a program that is scheduled at run time, with subplans in flight (thesis §5.2)."""

import time
from dataclasses import dataclass, replace

from strads.checkpoints import Tree
from strads.cluster.cores import check_count
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError, CheckpointError
from strads.schedule.nodes.workers import data_for_node, place_workers
from strads.schmp import _dynamic_node_programs as on_node
from strads.schmp._engine import Engine, WorkersData
from strads.schmp.dynamic_program import DynamicProgram


@dataclass(frozen=True)
class DynamicRun:
    """Statistics of one call of `DynamicEngine.run`.

    Attributes
    ----------
    rounds
        Proposals executed: fewer than requested once nothing is left to schedule. Compiled rounds are counted in the
        stretches in which they run: the last of these counts in full, even if nothing is left within it.
    updates
        Number of parameter updates, repeated ones included.
    seconds
        Elapsed time.
    nodes
        Statistics of each node, by rank. Tasks are calls of `update`, or rounds if these are compiled.
    """

    rounds: int
    updates: int
    seconds: float
    nodes: tuple[NodeStatistics, ...]


class DynamicEngine(Engine):
    """Runs a program whose schedule depends on how its parameters converge, on the nodes and threads of `strads.init`.

    Scheduler instances, each over its own parameters, propose which to update. The coordinator prefetches these
    proposals in turn, splits them into subplans and keeps several in flight (thesis §5.2.2, figures 5.2 and 5.3). The
    result depends on the program, the number of workers and the arguments below: not on nodes, threads or timing.

    On a single process with one worker and one instance, a program with `compiled_rounds` runs these: there is no
    message latency to hide, so each proposal is committed before the next is made, and `pipeline_depth`, `subplans` and
    `reorder` have no effect.

    A context manager: on exit the nodes drop the program and its data.

    Parameters
    ----------
    program : DynamicProgram
        Each node gets a copy; the original is not changed.
    data : sequence or callable, optional
        The local data of each worker, or a function of the worker's number that creates them on its node. Sent to
        the worker's node once; on a single process they are used, and changed, in place.
    instances : int, optional
        Scheduler instances, spread over the nodes; by default one per node.
    pipeline_depth : int
        Subplans in flight. With 1, every update sees all earlier changes; with d, all but those of the latest d − 1
        subplans.
    subplans : int, optional
        Number of parts of a proposal; by default `pipeline_depth`.
    reorder : bool
        Whether the parameters of highest priority are updated first, in a separate subplan. They then see all
        changes to their counterparts in the previous proposal, as long as `subplans` is not below `pipeline_depth`.
        Otherwise parameters are dealt to the subplans round-robin.
    threads : int, optional
        Threads to use on a single process; by default those of `strads.init`.

    Raises
    ------
    ArgumentError
        If there is not one data item per worker, or a number is below 1.

    Examples
    --------
    The means of the columns of two workers' rows, three random columns at a time:

    >>> import numpy as np
    >>> from strads import schmp
    >>> class Means(schmp.DynamicProgram):
    ...     workers, parameters = 2, 6
    ...     def __init__(self):
    ...         self.means = np.zeros(6)
    ...     def schedule(self, instance, parameters):
    ...         return schmp.RandomSchedule(parameters, 3)
    ...     def update(self, parameters, rows):
    ...         return rows[:, parameters].sum(axis=0)
    ...     def aggregate(self, parameters, result):
    ...         changes = result / 8 - self.means[parameters]
    ...         self.means[parameters] += changes
    ...         return changes
    ...     def commit(self, parameters, changes, rows):
    ...         pass  # these rows do not depend on the means
    >>> parts = [np.ones((3, 6)), np.ones((5, 6))]
    >>> with schmp.DynamicEngine(Means(), data=parts) as engine:
    ...     _ = engine.run(20)
    ...     engine.program.means
    array([1., 1., 1., 1., 1., 1.])
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
            raise ArgumentError(f"{count} instances are more than the {parameters} parameters")
        self._scheduling = on_node.Scheduling(place_workers(count, size), depth, parts, bool(reorder))
        self._rounds = 0  # of all runs: the next one begins with the instance whose turn it is
        self._start(data)

    @property
    def instances(self) -> int:
        """Number of scheduler instances."""
        return len(self._scheduling.node_of)

    def _begin(self, data: WorkersData) -> None:
        size = self._cluster.size
        places = place_workers(len(self._scheduling.node_of), size)
        self._scheduling = replace(self._scheduling, node_of=places)
        each = [(data_for_node(data, self._node_of, rank),) for rank in range(size)]
        self._cluster.run(on_node.begin, self._name, self._equipment, self._scheduling, each=each)

    def _check_parts(self, tree: Tree) -> None:
        super()._check_parts(tree)
        there, here = sum(key.startswith("instance ") for key in tree), len(self._scheduling.node_of)
        if there != here:
            raise CheckpointError(
                f"the checkpoint is of {there} scheduler instances, but this run has {here}: run it on as many nodes "
                "as before, or make the engine with instances=…"
            )

    def run(self, rounds: int) -> DynamicRun:
        """Execute `rounds` proposals, and wait until all their changes are committed on all nodes.

        The pipeline drains at the end and refills in the next call: many rounds in one call are faster.
        Ctrl-C takes effect after the call, so that the model stays consistent; a second one interrupts immediately.

        Raises
        ------
        Any exception of the program; the model is then incomplete, and the engine refuses to continue.
        PlanError
            If a schedule makes an invalid proposal.
        NodeFailure
            When a node is lost.
        """
        check_count("rounds", rounds)

        def run() -> DynamicRun:
            start = time.perf_counter()
            with self._whole("a run"):
                found = self._cluster.run(on_node.run, self._name, self._scheduling, int(rounds), self._rounds)
                self.version += 1
            done, updates, _ = found[0]
            return DynamicRun(done, updates, time.perf_counter() - start, tuple(nodes for *_, nodes in found))

        scheduling = self._scheduling
        chosen = int(rounds), scheduling.pipeline_depth, scheduling.subplans, scheduling.reorder
        found = self._perform("run", chosen, run, DynamicRun)
        self._rounds += found.rounds
        return found
