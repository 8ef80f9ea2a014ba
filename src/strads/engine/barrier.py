"""A barrier for threads in compiled code."""

from numba import njit
from numpy import int64
from numpy.typing import NDArray

from strads.engine.atomics import fetch_add, load, pause


@njit(nogil=True, cache=True)
def meet(arrivals: NDArray[int64], threads: int) -> None:
    """Return when `threads` threads have called this; reusable.

    `arrivals[0]` counts the calls; it starts at 0, and should have its own cache line.
    """
    if threads == 1:
        return
    before = fetch_add(arrivals, 0, 1)
    everyone = (before // threads + 1) * threads
    attempts = 0
    while load(arrivals, 0) < everyone:
        attempts += 1
        pause(attempts)


@njit(nogil=True, cache=True)
def meet_unless(stop: NDArray[int64], arrivals: NDArray[int64], threads: int) -> bool:
    """As `meet`, but return False as soon as `stop[0]` is set, when some thread may never arrive."""
    if threads == 1:
        return bool(load(stop, 0) == 0)
    before = fetch_add(arrivals, 0, 1)
    everyone = (before // threads + 1) * threads
    attempts = 0
    while load(arrivals, 0) < everyone:
        if load(stop, 0) != 0:
            return False
        attempts += 1
        pause(attempts)
    return bool(load(stop, 0) == 0)
