"""Base of the engines: a program and its workers' data on the nodes, accessible between runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from strads import cluster
from strads.cluster.cores import check_count, check_threads
from strads.cluster.interrupts import interrupted_later
from strads.cluster.messages import encode
from strads.errors import ArgumentError, StradsError
from strads.schedule.static.shard_routes import place_workers
from strads.schmp import _node_part as on_node

WorkersData = Sequence[Any] | Callable[[int], Any] | None


class Engine:
    """Runs a program on the nodes of `strads.init`. A context manager: on exit the nodes drop the program and its data.

    Parameters
    ----------
    program
        Each node gets a copy.
    kind
        The required class of the program.
    data
        The data of each worker, or a function of the worker's number that creates them on its node.
    threads
        Threads to use on a single process.
    """

    def __init__(self, program: Any, kind: type, data: WorkersData, threads: int | None):
        if not isinstance(program, kind):
            raise ArgumentError(f"program is a {type(program).__name__}: derive it from strads.schmp.{kind.__name__}")
        self._workers = check_count("workers", getattr(program, "workers", None))
        if data is not None and not callable(data) and len(data) != self._workers:
            raise ArgumentError(f"data for {len(data)} workers were given, but the program has {self._workers}")
        runtime = cluster.current()
        if threads is not None and not runtime.is_local:
            raise ArgumentError("threads is for a single process: nodes have their threads from strads.init")
        count = None if threads is None else check_threads(threads)
        self._cluster = runtime.cluster
        self._failure: tuple[str, BaseException] | None = None
        self._node_of = place_workers(self._workers, self._cluster.size)
        make = data if callable(data) else None
        self._equipment = on_node.Equipment(encode(program, functions=True), self._node_of, make, count)
        self._name = self._cluster.new_name()
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)

    def _data_of(self, rank: int, data: WorkersData) -> dict[int, Any]:
        """Return the part of the data that is sent to a node."""
        if data is None or callable(data):
            return {}
        return {worker: data[worker] for worker, place in enumerate(self._node_of) if place == rank}

    @contextmanager
    def _whole(self, what: str) -> Iterator[None]:
        """Context in which the model changes: Ctrl-C is deferred to its end; a failure leaves the model incomplete."""
        self._check_usable()
        with interrupted_later(self._cluster):
            try:
                yield
            except BaseException as error:
                self._failure = what, error
                raise

    @property
    def is_intact(self) -> bool:
        """Whether the model is consistent: no operation that changes it has failed part-way."""
        return self._failure is None

    @property
    def program(self) -> Any:
        """The program with its attributes as `aggregate` has left them; read-only."""
        return self.each_node(on_node.itself)[0]

    def data(self) -> list[Any]:
        """Return the local data of all workers, gathered from their nodes."""
        return self.each_worker(on_node.content)

    def each_worker(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, data, *arguments)` for each worker, computed in parallel on the workers' nodes."""
        self._check_usable()
        found = self._cluster.run(on_node.each_worker, self._name, function, arguments)
        values = {worker: value for of_node in found for worker, value in of_node.items()}
        return [values[worker] for worker in range(self._workers)]

    def each_node(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, *arguments)` from each node; it may change the program, but alike on all nodes."""
        self._check_usable()
        return self._cluster.run(on_node.each_node, self._name, function, arguments)

    def _check_usable(self) -> None:
        if not self._finalizer.alive:
            raise StradsError("this engine has been closed")
        if self._failure is not None:
            what, error = self._failure
            raise StradsError(
                f"{what} failed ({type(error).__name__}), so the model is incomplete: start a new engine"
            ) from error

    def close(self) -> None:
        """Let the nodes drop the program and its data."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
