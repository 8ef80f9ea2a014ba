"""Philox4x32-10, a counter-based generator: every number is a function of a key and a counter (Salmon et al. 2011).

There is no state to hand from task to task, so that what a task draws depends on neither timing nor threads.
"""

from typing import Any

import numpy as np
from numba import njit

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10


@njit(nogil=True, cache=True)
def philox4x32(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Return the four random 32-bit words that belong to a counter under a key.

    Parameters
    ----------
    c0, c1, c2, c3 : uint64, each below 2³²
        The words of the counter.
    k0, k1 : uint64, each below 2³²
        The words of the key.

    Returns
    -------
    tuple of four uint64, each below 2³²
    """
    for _ in range(_ROUNDS):
        p0, p1 = _MULTIPLIER_0 * c0, _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@njit(nogil=True, cache=True)
def random_words(key: Any, stream: Any, count: Any) -> Any:
    """Return two random 64-bit words: number `count` of a stream under a key.

    Parameters
    ----------
    key, stream, count : uint64
        For example: a seed, a task, and how many draws the task has made before.

    Returns
    -------
    tuple of two uint64
    """
    a, b, c, d = philox4x32(count & _LOW, count >> _HALF, stream & _LOW, stream >> _HALF, key & _LOW, key >> _HALF)
    return (a << _HALF) | b, (c << _HALF) | d


@njit(nogil=True, cache=True)
def unit_interval(word: Any) -> Any:
    """A random 64-bit word as a float64 in [0, 1), a multiple of 2⁻⁵³."""
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@njit(nogil=True, cache=True)
def below(word: Any, bound: Any) -> Any:
    """A random 64-bit word as an integer from 0 to `bound` − 1: the upper half of their 128-bit product.

    No number is more likely than another by more than `bound` · 2⁻⁶⁴ (Lemire 2019, without rejection, so that a draw
    takes one word).

    Parameters
    ----------
    word : uint64
    bound : int64 or uint64, 1 or more

    Returns
    -------
    int64
        Of a `bound` over 2⁶³, the bits of an uint64.
    """
    n = np.uint64(bound)
    high, low = word >> _HALF, word & _LOW
    n_high, n_low = n >> _HALF, n & _LOW
    middle = high * n_low + ((low * n_low) >> _HALF)
    carried = low * n_high + (middle & _LOW)
    return np.int64(high * n_high + (middle >> _HALF) + (carried >> _HALF))


@njit(nogil=True, cache=True)
def mixed_key(seed: Any, purpose: Any, moment: Any) -> Any:
    """Derive a key from a seed, what it is for, and when (such as an epoch): unrelated for any two that differ.

    Parameters
    ----------
    seed, purpose, moment : uint64

    Returns
    -------
    uint64
    """
    return random_words(seed, purpose, moment)[0]
