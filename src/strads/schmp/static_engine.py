"""The Static Engine: runs a SchMP program's rounds on all nodes; shards travel along the ring (thesis §4.2)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from strads.checkpoints import Load, Save, Tree
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError
from strads.schedule.nodes.workers import data_for_node, place_workers
from strads.schmp import _static_node_programs as on_node
from strads.schmp._engine import Engine, WorkersData
from strads.schmp.program import Program


@dataclass(frozen=True)
class Iteration:
    """Statistics of one iteration.

    Attributes
    ----------
    number
        Number of the iteration, from 0.
    seconds
        Elapsed time.
    nodes
        Statistics of each node, by rank.
    """

    number: int
    seconds: float
    nodes: tuple[NodeStatistics, ...]


class StaticEngine(Engine):
    """Runs a program whose schedules are known before they run, on the nodes and threads of `strads.init`.

    A context manager: on exit the nodes drop the program, its data and its shards.

    Parameters
    ----------
    program : Program
        Each node gets a copy; the original is not changed.
    data : sequence or callable, optional
        The local data of each worker, or a function of the worker's number that creates them on its node. Sent to
        the worker's node once; on a single process they are used in place.
    shards : sequence of sequences
        For each parameter set that moves, the content of each shard: arrays, or tuples, dicts and objects of
        importable classes that hold arrays.
    threads : int, optional
        Threads to use on a single process; by default those of `strads.init`.

    Attributes
    ----------
    iterations : int
        Number of iterations run so far.

    Raises
    ------
    ArgumentError
        If there is not one data item per worker.

    Examples
    --------
    Two workers add up the columns of their rows; the blocks of the sums go round:

    >>> import numpy as np
    >>> from strads import schmp
    >>> class Sums(schmp.Program):
    ...     workers = 2
    ...     def schedule(self, iteration):
    ...         return schmp.static_rotation(2)
    ...     def update(self, job, rows, block):
    ...         columns = slice(2 * job.shards[0], 2 * job.shards[0] + 2)
    ...         block += rows[:, columns].sum(axis=0)
    >>> parts = [np.ones((3, 4)), np.ones((5, 4))]
    >>> blocks = [np.zeros(2), np.zeros(2)]
    >>> with schmp.StaticEngine(Sums(), data=parts, shards=[blocks]) as engine:
    ...     _ = engine.iterate()
    ...     engine.shards()
    [array([8., 8.]), array([8., 8.])]
    """

    def __init__(
        self,
        program: Program,
        data: WorkersData = None,
        shards: Sequence[Sequence[Any]] = (),
        *,
        threads: int | None = None,
    ):
        super().__init__(program, Program, data, threads)
        self.iterations = 0
        self._counts = tuple(len(of_set) for of_set in shards)
        self._start(data, shards)

    def _begin(self, data: WorkersData, shards: Sequence[Sequence[Any]]) -> None:
        size = self._cluster.size
        homes = tuple(place_workers(count, size) for count in self._counts)
        each = [
            (
                data_for_node(data, self._node_of, rank),
                {
                    (number, shard): value
                    for number, of_set in enumerate(shards)
                    for shard, value in enumerate(of_set)
                    if homes[number][shard] == rank
                },
            )
            for rank in range(size)
        ]
        self._cluster.run(on_node.begin, self._name, self._equipment, homes, each=each)

    def iterate(self) -> Iteration:
        """Run one iteration: all rounds that the program's `schedule` returns for it.

        Ctrl-C takes effect after it, so that the model stays consistent; a second one interrupts immediately.

        Raises
        ------
        Any exception of the program; the model is then incomplete, and the engine refuses to continue.
        PlanError
            If two workers would use a shard at the same time.
        NodeFailure
            When a node is lost.
        """
        number = self.iterations

        def run() -> Iteration:
            start = time.perf_counter()
            with self._whole(f"iteration {number}"):
                nodes = self._cluster.run(on_node.iterate, self._name, number)
                self.iterations, self.version = number + 1, self.version + 1
            return Iteration(number, time.perf_counter() - start, tuple(nodes))

        iteration: Iteration = self._perform("iterate", (number,), run, Iteration)
        self.iterations = number + 1  # also if it was skipped
        return iteration

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the number of iterations, and the state of program, workers and shards."""
        return super().checkpoint_state(save) | {"iterations": self.iterations}

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore what `checkpoint_state` returned."""
        super().restore_state(tree, load)
        self.iterations = int(tree["iterations"])

    def shards(self, parameter_set: int = 0) -> list[Any]:
        """Return the contents of all shards of a parameter set, gathered from their nodes."""
        return self.each_shard(lambda _, shard: shard, parameter_set=parameter_set)

    def each_shard(self, function: Callable[..., Any], *arguments: Any, parameter_set: int = 0) -> list[Any]:
        """Return `function(program, shard, *arguments)` for each shard, computed in parallel on the shards' nodes."""
        self._look()
        if not 0 <= parameter_set < len(self._counts):
            raise ArgumentError(f"parameter_set={parameter_set}: there are {len(self._counts)}")
        found = self._cluster.run(on_node.each_shard, self._name, parameter_set, function, arguments)
        values = {shard: value for of_node in found for shard, value in of_node.items()}
        return [values[shard] for shard in range(self._counts[parameter_set])]
