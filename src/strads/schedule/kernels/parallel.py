"""Parallelizes large passes over tasks, by a callable that the caller passes in."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Parallel = Callable[[Callable[[int], None], int], None]
"""`parallel(function, chunks)` calls `function(c)` for c = 0..chunks-1, in any order, and waits for all."""

SMALLEST_CHUNK = 65_536  # tasks; below this, starting a thread costs more than the pass
TILE = 4096  # tasks that a kernel processes for all columns while their rows are in the L1 cache


def sequential(function: Callable[[int], None], chunks: int) -> None:
    """Call `function` for each chunk in sequence."""
    for chunk in range(chunks):
        function(chunk)


def chunk_bounds(tasks: int, threads: int) -> NDArray[np.int64]:
    """Cut 0..tasks into equal chunks, at most one per thread; chunk c is `bounds[c]:bounds[c + 1]`."""
    chunks = max(1, min(threads, tasks // SMALLEST_CHUNK))
    return np.arange(chunks + 1, dtype=np.int64) * tasks // chunks


def index_dtype(count: int) -> np.dtype[np.signedinteger]:
    """Smallest signed type that can number `count` items."""
    return np.dtype(np.int32 if count < 2**31 else np.int64)
