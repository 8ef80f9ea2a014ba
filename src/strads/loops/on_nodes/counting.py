"""Loops that count: threads add integers to copies of the counters, and run concurrently whatever rows they share."""

from strads.loops.on_nodes.node_tasks import CACHED, NodeTasks
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec
from strads.loops.program import NEGLIGIBLE_COPY

_FEW_ROWS, _FEW_BYTES = 64, 1 << 14


def copyable_counters(spec: LoopSpec, tasks: NodeTasks) -> frozenset[int]:
    """Return the tables to which the loop only adds integers, if threads can have copies of them.

    A counter whose rows each belong to a single task needs no copy.
    """
    program, bound = tasks.program, tasks.bound
    counters, tables = program.facts.counters - tasks.own_rows, bound.tables
    if spec.counters or spec.alone or spec.options.strategy != "auto":
        return frozenset()
    if program.argument_roles.near:
        return frozenset()
    size = sum(tables[position].storage.nbytes for position in counters)
    return counters if size <= NEGLIGIBLE_COPY * len(spec.indices) else frozenset()


def copies_are_best(counters: frozenset[int], tasks: NodeTasks) -> bool:
    """Whether no plan is faster than copies.

    Tasks conflict over the counters only, which fit in a cache, or tasks touch too many rows to be sorted by them.
    """
    size = sum(tasks.bound.tables[position].storage.nbytes for position in counters)
    return _only_counters_conflict(counters, tasks) and (size <= CACHED or not tasks.program.facts.is_short)


def of_few_rows(counters: frozenset[int], tasks: NodeTasks) -> frozenset[int]:
    """Return the counters with so few rows that a plan could hardly divide them among threads; copies cost nothing."""
    tables = {position: tasks.bound.tables[position].storage for position in counters}
    return frozenset(p for p, table in tables.items() if len(table) <= _FEW_ROWS and table.nbytes <= _FEW_BYTES)


def counters_are_the_bottleneck(counters: frozenset[int], tasks: NodeTasks, facts: LoopFacts | None) -> bool:
    """Whether a loop that has no parallel plan would have one if its counters were copied.

    `facts`: those of the loop without copies, on node 0.
    """
    if _only_counters_conflict(counters, tasks):
        return True
    if tasks.node.size > 1:  # records are together on node 0
        return any(tasks.node.comm.allgather(facts is not None and not facts.has_hot_row_besides_counters))
    return tasks.find_hot_row(tasks.sample, counters) is None


def _only_counters_conflict(counters: frozenset[int], tasks: NodeTasks) -> bool:
    """Whether tasks conflict over the counters only."""
    facts, roles = tasks.program.facts, tasks.program.argument_roles.roles
    return counters == {p for p in facts.written - tasks.own_rows if roles[p].is_recorded} and bool(counters)
