"""The values of symbolic sizes, on which it depends whether an index certainly exists."""

import numbers
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

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
    pairs: Collection[tuple[Size, Size]],
    tables: Mapping[int, Sized],
    scalars: Mapping[int, Any],
    indices: tuple[int, int] | None,
    *,
    has_values: bool,
) -> bool:
    """Whether the first size of each pair is at most the second.

    Parameters
    ----------
    pairs
        The pairs.
    tables, scalars
        The arguments, by position.
    indices
        The lowest and the highest index of the loop, if they are known.
    has_values
        Whether the tables have all their values here.
    """

    def limit(size: Size, unknown: int) -> int:
        kind, of, *rest = size
        if kind in ("largest", "above", "top") and of in tables:
            table = tables[of].table
            found = integer_range(table, *rest) if has_values and table is not None else None
            is_known = found is not None and (kind == "top" or found[0] >= 0)
            return unknown if found is None or not is_known else found[1] + (kind != "largest")
        if kind == "plus":
            limited = limit(of, unknown)
            return limited if limited == unknown else limited + rest[0]
        if kind == "indices":
            return unknown if indices is None or indices[0] < 0 else indices[1] + 1
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
    if kind in ("capacity", "depth") and of in tables:
        dtype = tables[of].storage.dtype
        dtype = dtype if rest[0] is None else dtype.fields[rest[0]][0].base
        if dtype.kind not in "iu":
            return None
        return int(np.iinfo(dtype).max) + 1 if kind == "capacity" else -int(np.iinfo(dtype).min)
    value = scalars.get(of)
    return int(value) if isinstance(value, numbers.Integral) else None
