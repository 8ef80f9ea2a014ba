"""Arrays filled with random numbers, and the checks of their shapes."""

import math
import operator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.dds._dtypes import resolve_dtype
from strads.dds._memory import zeros
from strads.errors import ArgumentError

Shape = int | tuple[int, ...]
Seed = int | np.random.Generator | None


def check_shape(shape: Shape) -> tuple[int, ...]:
    """Return `shape` as a tuple of one or more lengths."""
    try:
        lengths = tuple(operator.index(n) for n in (shape if isinstance(shape, tuple | list) else (shape,)))
    except TypeError as error:
        raise ArgumentError(f"a shape is a number of rows or a tuple of integers, not {shape!r}") from error
    if not lengths or min(lengths) < 0:
        raise ArgumentError(f"a shape needs 1 or more lengths, none of them negative, not {shape!r}")
    return lengths


def uniform_array(shape: Shape, low: float, high: float, seed: Seed, dtype: DTypeLike) -> NDArray[np.floating]:
    """Independent numbers from [low, high), float32 or float64."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ArgumentError(f"uniform needs finite low <= high, not low={low!r}, high={high!r}")
    number = _floating(dtype)
    values = zeros(check_shape(shape), np.dtype(number))
    _generator(seed).random(dtype=number, out=values)
    values *= number(high - low)
    values += number(low)
    # Rounding may lift a number to `high` itself.
    np.minimum(values, np.nextafter(number(high), number(low)), out=values)
    return values


def normal_array(shape: Shape, mean: float, std: float, seed: Seed, dtype: DTypeLike) -> NDArray[np.floating]:
    """Independent normal numbers, float32 or float64."""
    if not (math.isfinite(mean) and math.isfinite(std) and std >= 0):
        raise ArgumentError(f"normal needs a finite mean and a finite std >= 0, not mean={mean!r}, std={std!r}")
    number = _floating(dtype)
    values = zeros(check_shape(shape), np.dtype(number))
    _generator(seed).standard_normal(dtype=number, out=values)
    values *= number(std)
    values += number(mean)
    return values


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"a seed is an integer >= 0, a NumPy Generator or None, not {seed!r}") from error


def _floating(dtype: DTypeLike) -> type[np.float32] | type[np.float64]:
    resolved = resolve_dtype(dtype)
    if resolved not in (np.float32, np.float64):
        raise ArgumentError(f"random numbers are float32 ('f4') or float64 ('f8'), not {resolved}")
    return resolved.type
