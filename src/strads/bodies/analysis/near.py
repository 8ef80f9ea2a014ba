"""Groups of tables that share the row numbers which `rng.near` draws."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from strads.bodies.analysis.effects import Effects
from strads.bodies.analysis.kinds import TableKind
from strads.errors import ArgumentError


def near_groups(
    body: Callable[..., Any], effects: Effects, conflicting: Collection[int], kinds: Mapping[int, TableKind]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the group of each table that `near` is concerned with, and the weights of each group.

    A row drawn from one table of a group may select a row of any other: a job must own it in all of them.

    Parameters
    ----------
    body, effects
        The body, and what it does.
    conflicting
        Tables whose rows conflict: from others, `near` may draw any row.
    kinds
        The kind of each table.

    Raises
    ------
    ArgumentError
        If rows of one group are drawn with different weights.
    """
    group = {table: table for table, _ in effects.near if table in conflicting}
    for access in effects.accesses:
        table = access.argument
        if access.near in group and table in conflicting and not kinds[table].ragged:
            joined = {group.setdefault(table, table), group[access.near]}
            group = {table: min(joined) if name in joined else name for table, name in group.items()}
    numbers = {name: number for number, name in enumerate(sorted(set(group.values())))}
    weights: dict[int, int] = {}
    for table, used in sorted((t, w) for t, w in effects.near if t in group and w is not None):
        if weights.setdefault(numbers[group[table]], used) != used:
            raise ArgumentError(
                f"{body.__code__.co_filename}: rng.near draws rows of the same table, or of tables that share row "
                "numbers, with two tables of weights: use one"
            )
    return {table: numbers[name] for table, name in group.items()}, weights
