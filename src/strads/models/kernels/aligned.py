"""Tables whose rows are whole SIMD vectors, and start at cache lines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.simd import WIDTH

_LINE = 64  # bytes; vectors that cross a cache line load at half the speed


def padded(columns: int) -> int:
    """Columns of a row, rounded up to whole vectors of 16."""
    return -(-columns // WIDTH) * WIDTH


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that is aligned to a cache line."""
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def padded_rows(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return an aligned float32 copy of rows, padded with zeros to whole vectors."""
    copy: NDArray[np.float32] = aligned_zeros((len(rows), padded(rows.shape[1])), np.float32)
    copy[:, : rows.shape[1]] = rows
    return copy


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros aligned to a cache line."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)
