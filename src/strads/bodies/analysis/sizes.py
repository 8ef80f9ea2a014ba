"""The values of symbolic sizes, on which it depends whether an index certainly exists."""

import numbers
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from strads.bodies.analysis.values import Size
from strads.dds import dvector
from strads.dds.arguments import integer_range

_HUGE = 1 << 62  # a size larger than any axis


class Sized(Protocol):
    """What a size may be of: an argument with rows."""

    @property
    def storage(self) -> Any:
        """The rows."""

    @property
    def dense(self) -> Any:
        """The array of all rows."""

    @property
    def table(self) -> dvector | None:
        """The table that they belong to, if any."""


def all_fit(
    pairs: Collection[tuple[Size, Size]], tables: Mapping[int, Sized], scalars: Mapping[int, Any], *, has_values: bool
) -> bool:
    """Whether the first size of each pair is at most the second, given the arguments by position.

    `has_values` tells whether the tables have all their values here.
    """

    def limit(size: Size, unknown: int) -> int:
        kind, of, *rest = size
        if kind in ("largest", "above") and of in tables:
            table = tables[of].table
            found = integer_range(table, *rest) if has_values and table is not None else None
            return unknown if found is None or found[0] < 0 else found[1] + (kind == "above")
        if kind == "modulus":  # which is the bound only if it is positive
            modulus = value_of(of, tables, scalars)
            return unknown if modulus is None or modulus <= 0 else modulus
        value = value_of(size, tables, scalars)
        return unknown if value is None else value

    return all(limit(first, _HUGE) <= limit(second, -1) for first, second in pairs)


def value_of(size: Size, tables: Mapping[int, Sized], scalars: Mapping[int, Any]) -> int | None:
    """Return a size that is a constant, the length of an axis, or an integer scalar; None for others."""
    kind, of, *rest = size
    if kind == "constant":
        return int(of)
    if kind == "axis" and of in tables:
        return len(tables[of].storage) if rest[0] == 0 else int(tables[of].dense.shape[rest[0]])
    value = scalars.get(of)
    return int(value) if isinstance(value, numbers.Integral) else None
