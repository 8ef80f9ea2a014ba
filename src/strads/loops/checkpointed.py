"""Loops as operators of a checkpoint: what identifies a call, what it changes, and what a skipped call returns."""

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from strads.bodies.functions import fingerprint
from strads.checkpoints import Load, Operator, Save, perform
from strads.dds import Accumulator
from strads.dds.arguments import map_of, table_of
from strads.engine.ps.profile import StalenessProfile
from strads.engine.statistics import NodeStatistics
from strads.errors import CheckpointError
from strads.loops.statistics import LoopStatistics, SyncStatistics
from strads.rng.numbers import RandomNumbers

_MAX_INLINE_BYTES = 1 << 24  # bytes of an array in the statistics


def perform_loop(
    name: str,
    run: Callable[[], Any],
    body: Callable[..., Any],
    arguments: tuple[Any, ...],
    options: tuple[Any, ...],
    pack: Callable[[Any], Any],
    unpack: Callable[[Any], Any],
) -> Any:
    """Run a loop, or skip it if a checkpoint has its result, which depends on body, arguments and `options` alone."""
    tables = {id(table): table for argument in arguments if (table := table_of(argument)) is not None}
    small = {id(value): value for value in arguments if isinstance(value, Accumulator | RandomNumbers)}

    def signature() -> Any:
        return fingerprint(body), options, [_described(argument, roots) for argument in arguments]

    title = f"{name} {getattr(body, '__name__', type(body).__name__)}"
    roots = [table.root for table in tables.values()]
    return perform(Operator(title, run, signature, roots, list(small.values()), pack=pack, unpack=unpack))


def _described(argument: Any, roots: list[Any]) -> Any:
    """Return what identifies an argument; tables are identified by their place among the roots as well.

    When a map gets other keys, it gets another table.
    """
    table, keyed = table_of(argument), map_of(argument)
    if table is not None:
        place = next(number for number, root in enumerate(roots) if root is table.root)
        keys = () if keyed is None else (keyed.index.keys, getattr(keyed, "offsets", None))
        return type(argument).__name__, table.shape, table.dtype, table.is_ragged, place, keys
    if isinstance(argument, Accumulator | RandomNumbers):
        return type(argument).__name__, argument.small_state(), getattr(argument, "seed", 0)
    return argument


def pack_async(statistics: LoopStatistics) -> Any:
    """Return the tree of a loop's statistics, without its plan."""
    if statistics.order is not None:
        raise CheckpointError("a recorded order")
    found = {field.name: getattr(statistics, field.name) for field in fields(statistics)}
    found |= {"plan": None, "nodes": [asdict(node) for node in statistics.nodes]}
    return Save(inline=_MAX_INLINE_BYTES)(found)


def unpack_async(tree: Any) -> LoopStatistics:
    """Return the statistics of a loop that was skipped."""
    found = Load()(tree)
    nodes = tuple(NodeStatistics(**node) for node in found["nodes"])
    return LoopStatistics(**(found | {"plan": _SkippedPlan(), "nodes": nodes}))


def pack_sync(statistics: SyncStatistics) -> Any:
    """Return the tree of a minibatch loop's statistics."""
    found = {field.name: getattr(statistics, field.name) for field in fields(statistics)}
    return Save(inline=_MAX_INLINE_BYTES)(found | {"consistency": None})


def unpack_sync(tree: Any, rules: Any) -> SyncStatistics:
    """Return the statistics of a minibatch loop that was skipped."""
    return SyncStatistics(**(Load(classes=[StalenessProfile])(tree) | {"consistency": rules}))


class _SkippedPlan:
    """In place of the plan of a loop that was skipped."""

    def explain(self) -> str:
        """Say so: a program that prints plans can be executed again."""
        return "skipped: a checkpoint has the result of this loop"

    def __getattr__(self, name: str) -> Any:
        raise CheckpointError(
            "this loop was skipped, because a checkpoint has its result: its plan is not known. Look at the plan of a "
            "loop that runs"
        )

    def __repr__(self) -> str:
        return "<the plan of a loop that was skipped>"
