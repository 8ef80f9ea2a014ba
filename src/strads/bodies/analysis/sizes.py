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

    def value_of(size: Size, unknown: int) -> int:
        kind, of, *rest = size
        if kind == "constant":
            return int(of)
        argument = tables.get(of)
        if kind == "axis" and argument is not None:
            return len(argument.storage) if rest[0] == 0 else int(argument.dense.shape[rest[0]])
        if kind in ("largest", "above") and argument is not None:
            found = integer_range(argument.table, *rest) if has_values and argument.table is not None else None
            return unknown if found is None or found[0] < 0 else found[1] + (kind == "above")
        value = scalars.get(of)
        return int(value) if isinstance(value, numbers.Integral) else unknown

    return all(value_of(first, _HUGE) <= value_of(second, -1) for first, second in pairs)
