"""SplitMix64 (Steele et al. 2014): number n of a stream is the finalizer `mix`, applied to key + n · `GAMMA`."""

from typing import Any

import numpy as np
from numba import njit

# 2⁶⁴ / golden ratio: the step of a stream, and the multiplier of Fibonacci hashing (Knuth, vol. 3, §6.4), which spreads
# consecutive numbers.
GAMMA = np.uint64(0x9E3779B97F4A7C15)
# Factors of the finalizer.
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(nogil=True, cache=True, inline="always")
def mix(number: Any) -> Any:
    """Hash an int64 or a uint64; no two numbers have the same hash.

    Returns
    -------
    uint64
    """
    h = np.uint64(number)
    h = (h ^ (h >> np.uint64(30))) * FIRST_FACTOR
    h = (h ^ (h >> np.uint64(27))) * SECOND_FACTOR
    return h ^ (h >> np.uint64(31))
