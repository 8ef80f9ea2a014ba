"""Conversion of user data to the arrays that engines work on."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.dds._dtypes import check_dtype, resolve_dtype
from strads.dds._memory import copied
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError

Storage = NDArray[Any] | RaggedArray


def as_storage(data: Any, dtype: DTypeLike | None = None, *, copy: bool = True) -> Storage:
    """Return writeable, C-contiguous arrays in native byte order with the content of `data`.

    With `copy=False`, arrays that already have this form are adopted: the result shares their memory, and the
    original arrays become read-only. All others are copied.

    Raises
    ------
    ArgumentError
        If `data` does not consist of numbers.
    """
    target = None if dtype is None else resolve_dtype(dtype)
    if isinstance(data, RaggedArray):
        if target is not None and target.names is not None:
            raise ArgumentError(f"ragged rows hold plain numbers, not records ({target!r})")
        return RaggedArray(_own(data.values, target, copy), _own(data.offsets, None, copy))
    if isinstance(data, np.ndarray):
        return _own(data, target, copy)
    if type(data).__module__.partition(".")[0] == "pyarrow":
        raise ArgumentError("this is an Arrow object: use strads.from_arrow(…)")
    return _convert(data, target)


def _own(array: NDArray[Any], dtype: np.dtype | None, copy: bool) -> NDArray[Any]:
    """Return a writeable view of `array` if possible and `copy` is False; otherwise a copy."""
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentError("a masked array has missing values: fill them first with array.filled(value)")
    check_dtype(array.dtype)
    if array.ndim == 0:
        raise ArgumentError(f"a dvector holds rows, but {array!r} is a single value: give an array of 1 or more axes")
    target = resolve_dtype(array.dtype) if dtype is None else dtype
    flags = array.flags
    adoptable = flags.c_contiguous and flags.writeable and flags.aligned and array.dtype == target
    if copy or not adoptable:
        return _cast(array, target)
    view = np.asarray(array).view(target)
    array.flags.writeable = False
    return view


def _cast(array: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    try:
        return copied(array, dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"cannot convert {array.dtype} to {dtype}: {error}") from error


def _convert(data: Any, dtype: np.dtype | None) -> Storage:
    """Convert lists, ranges, and anything else that NumPy can turn into an array."""
    try:
        array = np.array(data, dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(data, list | tuple) and any(_is_sequence(row) for row in data):
            return RaggedArray.from_rows(data, dtype)
        raise ArgumentError(f"cannot make a table of this {type(data).__name__}: {error}") from error
    if array.ndim == 0:
        raise ArgumentError(
            f"a dvector holds rows, but a {type(data).__name__} is not an array or a sequence of rows: "
            "give an ndarray or a list (list(…) for an iterator, .toarray() for a sparse matrix)"
        )
    check_dtype(array.dtype)
    return _own(array, None, copy=False)


def _is_sequence(row: Any) -> bool:
    return hasattr(row, "__len__") and not isinstance(row, str | bytes)
