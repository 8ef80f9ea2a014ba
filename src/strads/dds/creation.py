"""Arrays filled with random numbers, and the checks of their shapes."""

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
    number = _floating(dtype)
    if not (low <= high and _are_finite(number, low, high, high - low)):
        raise ArgumentError(
            f"uniform needs low <= high, and a range within that of {number.__name__}, not low={low!r}, high={high!r}"
        )
    values = zeros(check_shape(shape), np.dtype(number))
    _generator(seed).random(dtype=number, out=values)
    values *= number(high - low)
    values += number(low)
    # Rounding may lift a number to `high` itself.
    np.minimum(values, np.nextafter(number(high), number(low)), out=values)
    return values


def normal_array(shape: Shape, mean: float, std: float, seed: Seed, dtype: DTypeLike) -> NDArray[np.floating]:
    """Independent normal numbers, float32 or float64."""
    number = _floating(dtype)
    if not (std >= 0 and _are_finite(number, mean, std)):
        raise ArgumentError(
            f"normal needs a mean and a std >= 0 within the range of {number.__name__}, not mean={mean!r}, std={std!r}"
        )
    values = zeros(check_shape(shape), np.dtype(number))
    _generator(seed).standard_normal(dtype=number, out=values)
    values *= number(std)
    values += number(mean)
    return values


def _are_finite(number: type[np.floating], *values: float) -> bool:
    """Whether all values are finite in a dtype."""
    return all(abs(float(value)) <= float(np.finfo(number).max) for value in values)


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
