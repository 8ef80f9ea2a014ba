"""Declares what a model's file must hold: compiled code does not check what it is given.

A model declares, by name, its `Table`s, lists of `Offsets`, and `Number`s. Lengths are symbols: the first table with a
symbol determines it, others must agree, and numbers of rows are limited by it.
"""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from strads.models._parameters import MOST

Lengths = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Table:
    """An array of finite numbers, or of strings."""

    dtypes: str  # possible ones, such as "f4 f8"; a letter alone stands for all of its kind
    shape: tuple[str, ...]  # the symbol of each axis
    least: float = -math.inf  # smallest value
    below: str | None = None  # symbol of a length: the values are positions, from 0
    optional: bool = False  # whether it may be missing

    def check(self, values: NDArray[Any], lengths: Lengths) -> None:
        """Raise ValueError for an array that is something else; learn the lengths that it determines."""
        if not {values.dtype.str[1:], values.dtype.kind} & set(self.dtypes.split()) or not values.dtype.isnative:
            raise ValueError(f"it is of dtype {values.dtype}")
        if values.ndim != len(self.shape) or (values.ndim == 2 and not values.shape[1]):
            raise ValueError(f"it has the shape {values.shape}")
        for symbol, length in zip(self.shape, values.shape, strict=True):
            if lengths.setdefault(symbol, length) != length:
                raise ValueError(f"it has the shape {values.shape}, where others have {lengths[symbol]} {symbol}")
        if values.dtype.kind not in "iuf" or not values.size:
            return
        low, high = values.min(), values.max()  # NaN if there is one
        least, most = (self.least, math.inf) if self.below is None else (0, lengths[self.below] - 1)
        if not (math.isfinite(low) and math.isfinite(high) and least <= low and high <= most):
            raise ValueError(f"its values are {low} … {high}")


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """Rising positions, from 0 to the length `of`, that cut arrays into rows."""

    of: str  # symbol of the length of these arrays
    rows: str | None = None  # symbol of the number of rows; None: any
    optional: bool = False  # whether they may be missing

    def check(self, values: NDArray[Any], lengths: Lengths) -> None:
        """Raise ValueError for anything else."""
        if values.dtype.kind != "i" or values.ndim != 1 or not len(values) or not values.dtype.isnative:
            raise ValueError(f"it has the shape {values.shape} and dtype {values.dtype}")
        if values[0] != 0 or values[-1] != lengths[self.of] or (values[1:] < values[:-1]).any():
            raise ValueError(f"its values do not increase from 0 to {lengths[self.of]}")
        if self.rows is not None and lengths.setdefault(self.rows, len(values) - 1) != len(values) - 1:
            raise ValueError(f"it is of {len(values) - 1} rows, where others have {lengths[self.rows]} {self.rows}")


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number."""

    whole: bool = False  # an integer; it then also is the length of that symbol, if a table has it
    least: float = -math.inf
    most: float = math.inf  # of an integer, 64 bits at most
    finite: bool = True  # whether infinity and NaN are excluded

    def check(self, value: Any) -> None:
        """Raise ValueError for anything else."""
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ValueError(f"it is {value!r:.60}")
        number: Any = value  # as mypy knows no order of numbers.Real
        most = min(self.most, MOST) if self.whole else self.most
        if not self.whole and not math.isfinite(value):
            if self.finite:
                raise ValueError(f"it is {value}")
        elif not self.least <= number <= most:
            raise ValueError(f"it is {value!r:.60}, outside {self.least} … {most}")


Contents = Mapping[str, Table | Offsets | Number]


def check_contents(declared: Contents, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check the numbers and arrays of a file, in the order of the declaration.

    Raises
    ------
    ValueError
        For the first one that is missing or does not fit; names it.
    """
    lengths: Lengths = {}
    for name, each in declared.items():
        found: Mapping[str, Any] = parameters if isinstance(each, Number) else arrays
        if name not in found:
            if not isinstance(each, Number) and each.optional:
                continue
            raise ValueError(f"{name} is missing")
        try:
            if not isinstance(each, Number):
                each.check(found[name], lengths)
                continue
            each.check(found[name])
            if each.whole:
                lengths[name] = found[name]
        except KeyError as error:
            raise ValueError(f"{name} refers to {error}") from error
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
