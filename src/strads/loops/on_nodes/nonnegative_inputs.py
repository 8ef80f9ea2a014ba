"""Finds the inputs of a loop that hold only nonnegative integers: indices computed from them are unsigned."""

from strads.bodies.analysis.values import LOOP_INDEX, SMALL, Given
from strads.dds.arguments import integer_range, range_of
from strads.loops.on_nodes.node_tasks import NodeTasks


def nonnegative_numbers(tasks: NodeTasks, *, changing: bool) -> frozenset[Given]:
    """Return which of the numbers that determine indices are integers in `0..SMALL - 1`, on all nodes (a collective).

    All nodes run the same code: the bits of a sum depend on how it is vectorized. Unless the result is for one call
    only (`changing`), it counts only what another preparation of the loop follows if it changes.
    """
    wanted = frozenset[Given]().union(*tasks.program.facts.nonnegative.values())
    own = frozenset(given for given in wanted if _is_small(tasks, given, changing))
    return frozenset.intersection(*tasks.node.comm.allgather(own)) if wanted else wanted


def _is_small(tasks: NodeTasks, given: Given, changing: bool) -> bool:
    found = _range(tasks, given, changing)
    return found is not None and found[0] >= 0 and found[1] < SMALL


def _range(tasks: NodeTasks, given: Given, changing: bool) -> tuple[int, int] | None:
    """Return the smallest and the largest of the numbers; None if they are no integers, or may change."""
    if given == LOOP_INDEX:
        return tasks.indices.bounds()
    kind, position, *rest = given
    tables = tasks.bound.tables
    if not (changing or kind == "axis" or position in tasks.program.facts.deciding):
        return None
    if kind != "content":
        size = tasks.bound.size(given)
        return None if size is None else (size, size)
    argument, shard = tables[position], tasks.shards.get(position)
    if shard is not None:
        return range_of(shard.values(shard.low, shard.high), *rest)
    if argument.table is not None:
        return integer_range(argument.table, *rest)
    return range_of(argument.values, *rest)
