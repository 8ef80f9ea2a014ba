"""Memory for the rows of tables: huge pages, which take few entries of the processor's page tables."""

import itertools
import math
import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HUGE_PAGE = 1 << 21  # bytes
_WORTHWHILE = _HUGE_PAGE // 8  # bytes of the last huge page that must be used; fewer lie on small pages
_LINE = 64  # bytes of a cache line
_STARTS = mmap.PAGESIZE // _LINE

_turns = itertools.count()


class _Memory(mmap.mmap):
    """Memory that only arrays refer to, as `checkpoints.is_shared` asks."""

    is_private = True


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any], *, reserve: bool = True) -> NDArray[Any]:
    """Return an array of zeros, whose pages take memory only once they are written to.

    From 2 MiB on it lies on huge pages if the system has them: rows that a loop reads at random are then found up to
    a sixth faster than on pages of 4 KiB wherever the heap had room. Arrays start at different cache lines of a page,
    as rows of the same number in several tables would otherwise compete for the same lines of the caches.

    With `reserve=False` the array may exceed the memory of the machine: a node thus addresses every row of a table by
    its global number, in the same compiled code as on one machine, but pays memory only for the rows that it holds.
    """
    count = math.prod(shape)
    nbytes = count * dtype.itemsize
    if nbytes < _HUGE_PAGE:
        return np.zeros(shape, dtype)
    start = next(_turns) % _STARTS * _LINE
    used = start + nbytes
    huge = used // _HUGE_PAGE + (used % _HUGE_PAGE >= _WORTHWHILE)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0 if reserve else getattr(mmap, "MAP_NORESERVE", 0))
    try:
        memory = _Memory(-1, max(huge * _HUGE_PAGE, used) + _HUGE_PAGE, flags=flags)
    except OSError:  # too little memory: NumPy's error says how much was asked for
        return np.zeros(shape, dtype)
    first = -_address(memory) % _HUGE_PAGE
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # Python was built where the constant exists; this kernel may lack huge pages
            memory.madvise(mmap.MADV_HUGEPAGE, first, huge * _HUGE_PAGE)
    return np.frombuffer(memory, dtype, count, offset=first + start).reshape(shape)


def copied(array: NDArray[Any], dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
    """Return a C-contiguous copy of an array, cast to `dtype` if given, in memory as that of `zeros`."""
    dtype = array.dtype if dtype is None else dtype
    if array.size * dtype.itemsize < _HUGE_PAGE:
        return np.array(array, dtype, order="C", copy=True, subok=False)
    copy = zeros(array.shape, dtype)
    copy[...] = array
    return copy


def release(array: NDArray[Any], low: int, high: int) -> None:
    """Reset rows `low..high - 1` of an array from `zeros` to zeros and release their memory."""
    memory = _mapping(array)
    rows = array[low:high]
    if memory is None or rows.nbytes == 0 or not hasattr(mmap, "MADV_DONTNEED"):
        rows[...] = np.zeros((), array.dtype)
        return
    start = rows.ctypes.data - _address(memory)
    end = start + rows.nbytes
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = end // mmap.PAGESIZE * mmap.PAGESIZE
    if first >= last:
        rows[...] = np.zeros((), array.dtype)
        return
    memory.madvise(mmap.MADV_DONTNEED, first, last - first)
    raw = np.frombuffer(memory, np.uint8)
    raw[start:first] = 0
    raw[last:end] = 0


def _address(memory: mmap.mmap) -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data


def _mapping(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    memory = base.obj if isinstance(base, memoryview) else base
    return memory if isinstance(memory, mmap.mmap) else None
