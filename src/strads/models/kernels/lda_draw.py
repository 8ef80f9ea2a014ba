"""Draw a position in proportion to weights that were summed lane by lane.

16·J weights w, position 16·j + l in lane l of vector j: `sums` is Σ_j w over all vectors, and `running` holds
Σ_{i ≤ j} w_i for each j. A draw picks the lane first, then the vector. The cumulative sum runs over the positions of a
lane consecutively; this order does not change the distribution.
"""

import numpy as np
from numba import njit

from strads.models.kernels.simd import count_at_most, lane

# The largest float32 below 1: x times it is below x, so that every remainder is exceeded by some sum.
BELOW_ONE = np.float32(1.0 - 2.0**-24)
_FEW = 8  # number of vectors up to which linear search is faster than bisection


@njit(nogil=True, cache=True)
def pick_lane(sums, prefix, place):  # type: ignore[no-untyped-def]
    """The lane that `place` (below the last prefix sum) falls in, and the remainder, below the lane's sum."""
    chosen = count_at_most(prefix, place)
    own = lane(sums, chosen)
    if own <= np.float32(0.0):
        # Prefix sums round differently in each lane: one may appear to increase over an empty lane.
        while chosen > 0 and own <= np.float32(0.0):
            chosen -= 1
            own = lane(sums, chosen)
        while own <= np.float32(0.0) and chosen < 15:
            chosen += 1
            own = lane(sums, chosen)
    rest = max(place - (lane(prefix, chosen) - own), np.float32(0.0))
    return chosen, min(rest, own * BELOW_ONE)


@njit(nogil=True, cache=True)
def pick(running, vectors, sums, prefix, place):  # type: ignore[no-untyped-def]
    """The position that `place` (below the last prefix sum) falls on, and the remainder.

    `running` is a float32 array of shape (16 · `vectors`,); `sums` and `prefix`, the prefix sums of its lanes, are
    vector registers.
    """
    chosen, rest = pick_lane(sums, prefix, place)
    low = 0
    if vectors <= _FEW:
        for j in range(vectors - 1):
            low += running[16 * j + chosen] <= rest
    else:
        size = vectors
        while size > 1:
            half = size >> 1
            if running[16 * (low + half - 1) + chosen] <= rest:
                low += half
            size -= half
    below = running[16 * (low - 1) + chosen] if low > 0 else np.float32(0.0)
    return 16 * low + chosen, rest - below
