"""SplitMix64 (Steele et al. 2014): number n of a stream is the finalizer `mix`, applied to key + n · `GAMMA`."""

from typing import Any

import numpy as np
from numba import njit

GAMMA = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True, inline="always")
def mix(number: Any) -> Any:
    """Hash an int64 or a uint64; no two numbers have the same hash.

    Returns
    -------
    uint64
    """
    h = np.uint64(number)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
