"""The values of symbolic sizes, on which it depends whether an index certainly exists."""

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from strads.bodies.analysis.values import Size
from strads.dds import dvector
from strads.dds.arguments import integer_range

_HUGE = 1 << 62  # a size larger than any axis
# Kinds of sizes that two others give.
_OF_TWO: dict[str, Callable[[int, int], int]] = {"sum": operator.add, "product": operator.mul, "smaller": min}


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


@dataclass(frozen=True)
class Sizes:
    """The arguments of a loop, which give sizes their values.

    Attributes
    ----------
    tables, scalars
        The arguments, by position.
    indices
        The lowest and the highest index of the loop, if they are known.
    has_values
        Whether the tables have all their values here.
    """

    tables: Mapping[int, Sized]
    scalars: Mapping[int, Any]
    indices: tuple[int, int] | None = None
    has_values: bool = False

    def fit(self, pairs: Collection[tuple[Size, Size]]) -> bool:
        """Whether the first size of each pair is at most the second."""
        return all(self._limit(first, _HUGE) <= self._limit(second, -1) for first, second in pairs)

    def _limit(self, size: Size, unknown: int) -> int:
        kind, of, *rest = size
        if kind in ("largest", "above", "top") and of in self.tables:
            table = self.tables[of].table
            found = integer_range(table, *rest) if self.has_values and table is not None else None
            is_known = found is not None and (kind == "top" or found[0] >= 0)
            return unknown if found is None or not is_known else found[1] + (kind != "largest")
        if kind == "plus":
            limit = self._limit(of, unknown)
            return limit if limit == unknown else limit + rest[0]
        if kind in _OF_TWO:
            limits = self._limit(of, unknown), self._limit(rest[0], unknown)
            return unknown if unknown in limits else _OF_TWO[kind](*limits)
        if kind == "indices":
            return unknown if self.indices is None or self.indices[0] < 0 else self.indices[1] + 1
        if kind == "first index":
            return unknown if self.indices is None else self.indices[0]
        if kind == "modulus":  # which is the bound only if it is positive
            modulus = self.value(of)
            return unknown if modulus is None or modulus <= 0 else modulus
        value = self.value(size)
        return unknown if value is None else value

    def value(self, size: Size) -> int | None:
        """Return a constant, the length of an axis, or an integer scalar; None for other sizes."""
        kind, of, *rest = size
        if kind == "constant":
            return int(of)
        if kind == "axis" and of in self.tables:
            table = self.tables[of]
            return len(table.storage) if rest[0] == 0 else int(table.dense.shape[rest[0]])
        if kind in ("capacity", "depth") and of in self.tables:
            dtype = self.tables[of].storage.dtype
            dtype = dtype if rest[0] is None else dtype.fields[rest[0]][0].base
            if dtype.kind not in "iu":
                return None
            return int(np.iinfo(dtype).max) + 1 if kind == "capacity" else -int(np.iinfo(dtype).min)
        value = self.scalars.get(of) if kind == "argument" else None
        return int(value) if isinstance(value, int | np.integer) else None
