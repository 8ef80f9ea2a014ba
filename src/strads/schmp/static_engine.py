"""The Static Engine: runs a SchMP program's rounds on all nodes, shards travelling along the ring (thesis §4.2)."""

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from strads import cluster
from strads.cluster.cores import check_count, check_threads
from strads.cluster.interrupts import interrupted_later
from strads.cluster.messages import encode
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError, StradsError
from strads.schedule.itinerary import place_workers
from strads.schmp import _node_programs as on_node
from strads.schmp.program import Program


@dataclass(frozen=True)
class Iteration:
    """Figures of one iteration.

    Attributes
    ----------
    number
        From 0.
    seconds
        Time that it took.
    nodes
        What each node did, by rank.
    """

    number: int
    seconds: float
    nodes: tuple[NodeStatistics, ...]


class StaticEngine:
    """Runs a program whose schedules are known before they run, on the nodes and threads of `strads.init`.

    A context manager: at its end the nodes drop the program, its data and its shards.

    Parameters
    ----------
    program : Program
        Each node gets a copy; the one given is left as it is.
    data : sequence or callable, optional
        The local data of each worker, or a function of the worker's number that makes them on its node. Sent to the
        worker's node once; on a single process they are used as they are.
    shards : sequence of sequences
        The contents of each shard, of each parameter set that moves: arrays, or tuples, dicts and objects of
        importable classes that hold arrays.
    threads : int, optional
        Threads to use on a single process; by default those of `strads.init`.

    Raises
    ------
    ArgumentError
        If the data are not one for each worker.

    Examples
    --------
    >>> with StaticEngine(program, data=parts, shards=[blocks]) as engine:
    ...     for _ in range(10):
    ...         engine.iterate()
    ...     blocks = engine.shards()
    """

    def __init__(
        self,
        program: Program,
        data: Sequence[Any] | Callable[[int], Any] | None = None,
        shards: Sequence[Sequence[Any]] = (),
        *,
        threads: int | None = None,
    ):
        if not isinstance(program, Program):
            raise ArgumentError(f"program is a {type(program).__name__}: derive it from strads.schmp.Program")
        workers = check_count("workers", getattr(program, "workers", None))
        if data is not None and not callable(data) and len(data) != workers:
            raise ArgumentError(f"data for {len(data)} workers were given, but the program has {workers}")
        runtime = cluster.current()
        self._cluster = runtime.cluster
        if threads is not None and not runtime.is_local:
            raise ArgumentError("threads is for a single process: nodes have their threads from strads.init")
        self.iterations = 0
        self._workers = workers
        self._counts = tuple(len(of_set) for of_set in shards)
        self._failed: BaseException | None = None
        size = self._cluster.size
        node_of = place_workers(workers, size)
        homes = tuple(place_workers(count, size) for count in self._counts)
        each = [
            (
                {} if data is None or callable(data) else {p: data[p] for p in range(workers) if node_of[p] == rank},
                {
                    (number, shard): content
                    for number, of_set in enumerate(shards)
                    for shard, content in enumerate(of_set)
                    if homes[number][shard] == rank
                },
            )
            for rank in range(size)
        ]
        self._name = self._cluster.new_name()
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)
        message = encode(program, functions=True)
        make = data if callable(data) else None
        count = None if threads is None else check_threads(threads)
        self._cluster.run(on_node.begin, self._name, message, node_of, homes, make, count, each=each)

    def iterate(self) -> Iteration:
        """Run one iteration: all rounds that the program's `schedule` returns for it.

        Ctrl-C lets it end first, so that the model stays whole; a second one does not.

        Raises
        ------
        Whatever the program raises; the model is then incomplete, and the engine refuses to go on.
        PlanError
            If two workers would use a shard at a time.
        NodeFailure
            When a node is lost.
        """
        self._check_usable()
        start = time.perf_counter()
        with interrupted_later(self._cluster):
            try:
                nodes = self._cluster.run(on_node.iterate, self._name, self.iterations)
            except BaseException as error:
                self._failed = error
                raise
            self.iterations += 1
        return Iteration(self.iterations - 1, time.perf_counter() - start, tuple(nodes))

    @property
    def is_intact(self) -> bool:
        """Whether the model is that of the end of an iteration: none has failed half way."""
        return self._failed is None

    # -- the model -----------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The program with what `aggregate` has made of its attributes; to be read only."""
        program: Program = self.each_node(on_node.itself)[0]
        return program

    def data(self) -> list[Any]:
        """Return the local data of all workers, from wherever they are."""
        return self.each_worker(on_node.content)

    def shards(self, parameter_set: int = 0) -> list[Any]:
        """Return the contents of all shards of a parameter set, from wherever they are."""
        return self.each_shard(on_node.content, parameter_set=parameter_set)

    def each_worker(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, data, *arguments)` for each worker, computed where the worker is, in parallel."""
        self._check_usable()
        found = self._cluster.run(on_node.each_worker, self._name, function, arguments)
        values = {worker: value for of_node in found for worker, value in of_node.items()}
        return [values[worker] for worker in range(self._workers)]

    def each_shard(self, function: Callable[..., Any], *arguments: Any, parameter_set: int = 0) -> list[Any]:
        """Return `function(program, shard, *arguments)` for each shard, computed where the shard is, in parallel."""
        self._check_usable()
        if not 0 <= parameter_set < len(self._counts):
            raise ArgumentError(f"parameter_set={parameter_set}: there are {len(self._counts)}")
        found = self._cluster.run(on_node.each_shard, self._name, parameter_set, function, arguments)
        values = {shard: value for of_node in found for shard, value in of_node.items()}
        return [values[shard] for shard in range(self._counts[parameter_set])]

    def each_node(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, *arguments)` from each node; it may change the program, everywhere alike."""
        self._check_usable()
        return self._cluster.run(on_node.each_node, self._name, function, arguments)

    def _check_usable(self) -> None:
        if not self._finalizer.alive:
            raise StradsError("this engine has been closed")
        if self._failed is not None:
            raise StradsError(
                f"iteration {self.iterations} failed ({type(self._failed).__name__}), so the model is incomplete: "
                "start a new engine"
            ) from self._failed

    def close(self) -> None:
        """Let the nodes drop the program, its data and its shards."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
