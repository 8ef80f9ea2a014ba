"""Memory for tables of which a node holds a part."""

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HUGE_PAGE = 1 << 21


def mapped_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros that takes memory only where it is written.

    A node thus addresses every row of a table by the row's own number, in the same compiled code as on one
    machine, and pays for the rows that it holds: the table may be larger than the memory of a node.
    """
    nbytes = int(np.prod(shape)) * dtype.itemsize
    if nbytes < _HUGE_PAGE:
        return np.zeros(shape, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, nbytes, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # a page fault for each 4 KiB costs more than the update of its rows
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype, int(np.prod(shape))).reshape(shape)
