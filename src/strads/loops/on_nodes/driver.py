"""The driver's side of a loop on nodes: prepares it when something has changed, and starts each execution."""

import contextlib
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof

from strads.cluster import Cluster
from strads.dds import Accumulator, Readonly, Relaxed, dvector
from strads.engine.executor import zero_totals
from strads.errors import NodeFailure
from strads.loops.arguments import check_maps, map_of, table_of
from strads.loops.functions import fingerprint
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.execution import run
from strads.loops.on_nodes.preparation import prepare
from strads.loops.on_nodes.recovery import recover
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec, NodeResult, SumRef, TableRef
from strads.loops.statistics import LoopStatistics

_MAX_KEPT = 8


@dataclass(frozen=True)
class LoopOptions:
    """Options of `async_for` that decide what is prepared."""

    strategy: str
    seed: int
    fastmath: bool
    micro_sync: bool
    job_order: str


@dataclass(eq=False)
class _KeptLoop:
    """A loop that is prepared on the nodes, and what it was prepared for."""

    cluster: Cluster
    name: str
    key: tuple[Any, ...]
    indices: LoopIndices
    tables: "tuple[weakref.ref[dvector], ...]"
    facts: LoopFacts
    contents: tuple[Any, ...]

    def serves(self, cluster: Cluster, key: tuple[Any, ...], indices: LoopIndices, arguments: tuple[Any, ...]) -> bool:
        """Whether the plan holds for a call."""
        return (
            self.cluster is cluster
            and self.key == key
            and not self.facts.dynamic
            and [reference() for reference in self.tables] == _tables(arguments)
            and self.contents == _contents(arguments, self.facts)
            and self.indices == indices
        )


_kept: list[_KeptLoop] = []  # most recently used last


def run_on_nodes(
    cluster: Cluster,
    body: Callable[..., Any],
    arguments: tuple[Any, ...],
    indices: LoopIndices,
    options: LoopOptions,
) -> LoopStatistics:
    """Run a loop on all nodes of a cluster; the arguments and what it raises are those of `async_for`."""
    start = time.perf_counter()
    kept, is_new = _prepared(cluster, body, arguments, indices, options)
    facts = kept.facts
    try:
        results = _run(kept, arguments)
    except BaseException as error:
        if not isinstance(error, NodeFailure):
            with contextlib.suppress(Exception):  # the first error tells more
                cluster.run(recover, kept.name, cluster.runs)
        raise
    finally:
        _mark_written(arguments, facts)
    _add_sums(arguments, facts, results)
    return LoopStatistics(
        tasks=len(indices),
        seconds=time.perf_counter() - start,
        compile_seconds=max(result.compile_seconds for result in results) + (facts.compile_seconds if is_new else 0.0),
        reconnaissance_seconds=facts.reconnaissance_seconds if is_new else 0.0,
        planning_seconds=facts.planning_seconds if is_new else 0.0,
        copy_seconds=max(result.copy_seconds for result in results) if is_new else 0.0,
        execution_seconds=max(result.seconds for result in results),
        strategy=facts.plan.strategy,
        parallelism=facts.plan.parallelism,
        threads=cluster.size * cluster.threads,
        plan=facts.plan,
        nodes=tuple(result.statistics for result in results),
    )


def _prepared(
    cluster: Cluster,
    body: Callable[..., Any],
    arguments: tuple[Any, ...],
    indices: LoopIndices,
    options: LoopOptions,
) -> tuple[_KeptLoop, bool]:
    """Return the loop as it is kept on the nodes, prepared anew if anything that decides it has changed."""
    check_maps(body, arguments)
    key = (fingerprint(body), options, tuple(map(_type_key, arguments)))
    _drop_dead()
    for kept in reversed(_kept):
        if kept.serves(cluster, key, indices, arguments):
            _kept.remove(kept)
            _kept.append(kept)
            return kept, False
    for kept in [kept for kept in _kept if kept.key == key and _same(kept.tables, arguments)]:
        _drop(kept)  # outdated: free what it holds before the next one is made
    name = cluster.new_name()
    spec = LoopSpec(
        name,
        body,
        tuple(reference(cluster, argument) for argument in arguments),
        indices,
        options.strategy,
        options.seed,
        options.fastmath,
        options.micro_sync,
        options.job_order,
    )
    facts = next(facts for facts in cluster.run(prepare, spec) if facts is not None)
    tables = tuple(weakref.ref(table) for table in _tables(arguments))
    kept = _KeptLoop(cluster, name, key, indices, tables, facts, _contents(arguments, facts))
    _kept.append(kept)
    while len(_kept) > _MAX_KEPT:
        _drop(_kept[0])
    return kept, True


def _run(kept: _KeptLoop, arguments: tuple[Any, ...]) -> list[NodeResult]:
    cluster, facts = kept.cluster, kept.facts
    references = tuple(
        reference(cluster, argument, facts.bounds.get(position)) for position, argument in enumerate(arguments)
    )
    versions = tuple(
        table.version if table is not None and position not in facts.written else 0
        for position, table in enumerate(map(table_of, arguments))
    )
    return cluster.run(run, kept.name, references, versions)


def _add_sums(arguments: tuple[Any, ...], facts: LoopFacts, results: list[NodeResult]) -> None:
    """Add up what the jobs have summed, in the order of the jobs."""
    for position, argument in enumerate(arguments):
        if isinstance(argument, Accumulator):
            dtype = np.dtype(np.float64 if isinstance(argument.value, float) else np.int64)
            totals = zero_totals(facts.plan.jobs, dtype)
            for result in results:
                own = result.jobs >= 0
                totals[result.jobs[own], 0] += result.totals[position][own]
            argument.add(totals[:, 0].sum().item())


def _mark_written(arguments: tuple[Any, ...], facts: LoopFacts) -> None:
    written = {id(table): table for p in facts.written if (table := table_of(arguments[p])) is not None}
    for table in written.values():
        table.written_on_nodes()


def reference(cluster: Cluster, argument: Any, bounds: Any = None) -> Any:
    """Return what stands for an argument in a message to the nodes."""
    table, keyed = table_of(argument), map_of(argument)
    if table is not None:
        name = table.distribute(cluster, bounds)
        index = None if keyed is None else keyed.distribute_index(cluster)
        return TableRef(name, isinstance(argument, Relaxed), isinstance(argument, Readonly), index)
    if isinstance(argument, Accumulator):
        return SumRef(0.0 if isinstance(argument.value, float) else 0)
    return argument


def _tables(arguments: tuple[Any, ...]) -> list[dvector]:
    return [table for table in map(table_of, arguments) if table is not None]


def _type_key(argument: Any) -> Any:
    """Return a key that changes when a loop over the argument has to be prepared anew."""
    table = table_of(argument)
    if table is not None:
        keyed = map_of(argument) is not None
        return type(argument), keyed, id(table), table.shape, str(table.dtype), table.is_ragged
    if isinstance(argument, Accumulator):
        return Accumulator, type(argument.value)
    try:
        return typeof(argument)
    except Exception:  # binding will say what is wrong with it
        return type(argument)


def _contents(arguments: tuple[Any, ...], facts: LoopFacts) -> tuple[Any, ...]:
    """Contents of the arguments that decide which rows are touched."""
    found: list[Any] = []
    for position in sorted(facts.deciding):
        argument = arguments[position]
        table = table_of(argument)
        if table is not None:
            found.append(table.version)
        elif isinstance(argument, np.ndarray):
            found.append((argument.shape, argument.tobytes()))
        elif not isinstance(argument, Accumulator):
            found.append(argument)
    return tuple(found)


def _same(tables: "tuple[weakref.ref[dvector], ...]", arguments: tuple[Any, ...]) -> bool:
    return [reference() for reference in tables] == _tables(arguments)


def _drop(kept: _KeptLoop) -> None:
    with contextlib.suppress(ValueError):  # another thread was faster
        _kept.remove(kept)
    if not kept.cluster.closed:
        kept.cluster.discard(kept.name)


def _drop_dead() -> None:
    for kept in [kept for kept in _kept if kept.cluster.closed or any(ref() is None for ref in kept.tables)]:
        _drop(kept)
