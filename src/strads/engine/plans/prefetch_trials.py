"""Measures during the run whether fetching rows ahead pays off: that depends on the caches, not on the loop alone.

No result depends on it, so it may be decided by the clock.
"""

from numba import njit

from strads.engine.clock import nanoseconds
from strads.engine.compiling import INLINED

BLOCK = 2048  # tasks that are run one way or the other
TRIALS = 2  # length of the array `times` of `begin_block` and `end_block`
_TRIED, _WARMING, _PERIOD = 16, 2, 512  # of _PERIOD blocks, the first _TRIED alternate, the first _WARMING untimed


@njit(**INLINED)
def begin_block(block, times):  # type: ignore[no-untyped-def]
    """Return whether to fetch in a block, and when it began; `times` (2,) are those of blocks without and with."""
    phase = block % _PERIOD
    if phase == 0:
        times[:] = 0
    if phase < _TRIED:
        return phase % 2 == 1, nanoseconds()
    return times[1] < times[0], 0


@njit(**INLINED)
def end_block(block, began, times):  # type: ignore[no-untyped-def]
    """Add the time of a block that is tried; see `begin_block`."""
    phase = block % _PERIOD
    if _WARMING <= phase < _TRIED:
        times[phase % 2] += nanoseconds() - began
