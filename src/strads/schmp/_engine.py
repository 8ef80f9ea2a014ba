"""Base of the engines: a program and its workers' data on the nodes, accessible between runs."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Self

from strads import cluster
from strads.checkpoints import (
    Load,
    Operator,
    Save,
    SessionLoad,
    SnapshotSave,
    Tree,
    digest,
    has_session,
    observe,
    perform,
)
from strads.cluster.cores import check_count, check_threads
from strads.cluster.critical_sections import interrupts_deferred
from strads.cluster.messages import encode
from strads.engine.statistics import NodeStatistics
from strads.errors import ArgumentError, CheckpointError, StradsError
from strads.schedule.nodes.workers import place_workers
from strads.schmp import _node_part as on_node

WorkersData = Sequence[Any] | Callable[[int], Any] | None


class Engine:
    """Runs a program of class `kind` on the nodes of `strads.init`; for the other arguments see `StaticEngine`."""

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
        self._kind = type(program)
        self.version = 0  # increases whenever the model may have changed, for checkpoints
        self._node_of = place_workers(self._workers, self._cluster.size)
        make = data if callable(data) else None
        self._equipment = on_node.Equipment(encode(program, functions=True), self._node_of, make, count)
        self._name = self._cluster.new_name()
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)

    @contextmanager
    def _whole(self, what: str) -> Iterator[None]:
        """Context in which the model changes: Ctrl-C is deferred to its end; a failure leaves the model incomplete."""
        self._check_usable()
        with interrupts_deferred(self._cluster):
            try:
                yield
            except BaseException as error:
                self._failure = what, error
                raise

    def _perform(self, name: str, arguments: tuple[Any, ...], run: Callable[[], Any], statistics: Any) -> Any:
        """Run a step that changes the model, or skip it if a checkpoint has its result, an object of `statistics`."""

        def unpack(tree: dict[str, Any]) -> Any:
            return statistics(**(tree | {"nodes": tuple(NodeStatistics(**node) for node in tree["nodes"])}))

        kind = self._kind
        title = f"{kind.__name__}.{name}"
        return perform(
            Operator(title, run, lambda: (arguments, self._workers, kind), [self], pack=asdict, unpack=unpack)
        )

    def fixed_content(self) -> str:
        """Return a checksum of what program, workers and shards are at the first step."""
        self._check_usable()
        found = self._cluster.run(on_node.digest_part, self._name)
        return digest(sorted({key: each for part in found for key, each in part.items()}.items()))

    def checkpoint_state(self, save: Save) -> Tree:
        """Return the state of program, workers and shards; each node saves its own part."""
        self._check_usable()
        if self._cluster.is_local:
            parts = self._cluster.run(on_node.save_part, self._name, save)
        elif isinstance(save, SnapshotSave):
            parts = self._cluster.run(on_node.save_part, self._name, save.ticket(self._cluster.size))
        else:
            raise CheckpointError("an engine on nodes is saved in snapshots only")
        return {key: tree for part in parts for key, tree in part.items()}

    @property
    def loads_on_nodes(self) -> bool:
        """Whether each node reads its own part of a snapshot."""
        return not self._cluster.is_local

    def restore_state(self, tree: Tree, load: Load) -> None:
        """Restore what `checkpoint_state` returned, on any number of nodes.

        Raises
        ------
        CheckpointError
            If the program has another number of workers or of scheduler instances.
        """
        self._check_parts(tree)
        self._failure = None
        if self._cluster.closed and self._initial is not None:
            self._begin_again()
        remote = isinstance(load, SessionLoad) and self.loads_on_nodes
        target = load.ticket(tree) if remote else load  # type: ignore[attr-defined]
        self._cluster.run(on_node.load_part, self._name, target, tree)

    def _begin_again(self) -> None:
        """Set up the program on the nodes that have replaced those of a cluster that was closed."""
        self._cluster = cluster.current().cluster
        self._node_of = place_workers(self._workers, self._cluster.size)
        self._equipment = replace(self._equipment, node_of=self._node_of)
        self._name = self._cluster.new_name()
        self._finalizer.detach()
        self._finalizer = weakref.finalize(self, self._cluster.discard, self._name)
        assert self._initial is not None
        self._begin(*self._initial)

    def _start(self, *initial: Any) -> None:
        """Set up the program on the nodes with what it starts from, which is kept if nodes may be replaced."""
        keeps = cluster.current().can_replace_nodes and has_session()
        self._initial: tuple[Any, ...] | None = initial if keeps else None
        self._begin(*initial)

    def _begin(self, *initial: Any) -> None:
        """Send the program and what it starts from to the nodes."""
        raise NotImplementedError

    def _check_parts(self, tree: Tree) -> None:
        workers = sum(key.startswith("worker ") for key in tree)
        if workers != self._workers:
            raise CheckpointError(
                f"the checkpoint is of a program with {workers} workers, this one has {self._workers}: run it with as "
                "many workers, which by default are as many as nodes or threads"
            )

    @property
    def is_closed(self) -> bool:
        """Whether the nodes have dropped the program."""
        return not self._finalizer.alive

    @property
    def is_intact(self) -> bool:
        """Whether the model is consistent: no operation that changes it has failed part-way."""
        return self._failure is None

    @property
    def program(self) -> Any:
        """The program with its attributes as `aggregate` has left them; read-only."""
        return self.each_node(lambda program: program)[0]

    def data(self) -> list[Any]:
        """Return the local data of all workers, gathered from their nodes."""
        return self.each_worker(lambda _, data: data)

    def each_worker(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, data, *arguments)` for each worker, computed in parallel on the workers' nodes."""
        self._look()
        found = self._cluster.run(on_node.each_worker, self._name, function, arguments)
        values = {worker: value for of_node in found for worker, value in of_node.items()}
        return [values[worker] for worker in range(self._workers)]

    def each_node(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return `function(program, *arguments)` from each node; it may change the program, but alike on all nodes."""
        self._look()
        return self._cluster.run(on_node.each_node, self._name, function, arguments)

    def _look(self) -> None:
        """Prepare access to the model from outside: functions that get it may change it."""
        observe(self)
        self._check_usable()
        self.version += 1

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

    def __exit__(self, *_: object) -> None:
        self.close()
