"""Labels of any type that can be compared and saved; others are refused by name."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import ArgumentError, InputError

_INSTEAD = "give numbers, strings, booleans or dates of NumPy, for example y.astype(str)"
_MISSING = {"nan", "NaT", "<NA>", "None"}


def as_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array of one type; objects that are numbers or booleans become those of NumPy.

    Raises
    ------
    ArgumentError, InputError
        If a label is missing, or labels are of several types, or of one that is not supported; names the first.
    """
    found = np.asarray(y)
    if found.dtype.kind in "mM" and np.isnat(found).any():
        _refuse_missing(int(np.isnat(found).ravel().argmax()), "NaT")
    if found.dtype.kind == "U" and isinstance(y, list | tuple):  # np.asarray makes strings of numbers among strings
        _kind_of(y)
    return _of_objects(found) if found.dtype == object else found


def _of_objects(found: NDArray[Any]) -> NDArray[Any]:
    values = found.ravel().tolist()
    kind = _kind_of(values)
    if kind in ("string", "bytes", "array"):  # an array: what the user gave has rows of several lengths
        return found
    if kind == "boolean":
        return found.astype(np.bool_)
    if any(isinstance(value, float | np.floating) for value in values):
        return found.astype(np.float64)
    try:
        return found.astype(np.int64 if max(values) < 1 << 63 else np.uint64)
    except OverflowError as error:
        raise ArgumentError(f"y: labels beyond 64-bit integers, such as {max(values, key=abs)}: {_INSTEAD}") from error


def _kind_of(values: Any) -> str:
    """Return what all labels are."""
    first: dict[str, int] = {}  # of each kind
    for row, value in enumerate(values):
        first.setdefault(_kind(value), row)
    if "missing" in first:
        _refuse_missing(first["missing"], values[first["missing"]])
    if len(first) > 1:
        (one, at), (other, then), *_ = first.items()
        raise ArgumentError(
            f"y: entry {at} is a {one}, {values[at]!r}, and entry {then} a {other}, {values[then]!r}: labels cannot be "
            "sorted unless they are of one type, for example strings: [str(label) for label in y]"
        )
    return next(iter(first), "string")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if value is None or str(value) in _MISSING:
        return "missing"
    if isinstance(value, int | float | np.number):
        return "number"
    if isinstance(value, list | tuple | np.ndarray):
        return "array"
    raise ArgumentError(f"y: labels of type {type(value).__name__}, such as {value}: {_INSTEAD}")


def _refuse_missing(row: int, value: Any) -> None:
    raise InputError(f"y: entry {row} is missing ({value}): y contains NaN or NA; remove the row or give it a label")
