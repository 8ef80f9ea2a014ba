"""Memory for tables of which a node holds only a part."""

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HUGE_PAGE = 1 << 21  # bytes


def mapped_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros that takes memory only where it is written.

    A node thus addresses every row of a table by its global number, in the same compiled code as on one machine,
    but pays memory only for the rows that it holds: the table may exceed the memory of a node.
    """
    nbytes = int(np.prod(shape)) * dtype.itemsize
    if nbytes < _HUGE_PAGE:
        return np.zeros(shape, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, nbytes, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # a page fault for each 4 KiB costs more than the update of its rows
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, int(np.prod(shape))).reshape(shape)


def release(array: NDArray[Any], low: int, high: int) -> None:
    """Reset rows `low..high - 1` of a `mapped_array` to zeros and release their memory."""
    memory = _mapping(array)
    rows = array[low:high]
    if memory is None or not hasattr(mmap, "MADV_DONTNEED"):
        rows[...] = np.zeros((), array.dtype)
        return
    start = low * (array.nbytes // max(len(array), 1))
    end = start + rows.nbytes
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = end // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last:
        rows[...] = np.zeros((), array.dtype)
        return
    memory.madvise(mmap.MADV_DONTNEED, first, last - first)
    raw = array.reshape(-1).view(np.uint8)
    raw[start:first] = 0
    raw[last:end] = 0


def _mapping(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    memory = base.obj if isinstance(base, memoryview) else base
    return memory if isinstance(memory, mmap.mmap) else None
