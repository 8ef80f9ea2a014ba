"""Philox2x64-10, a counter-based generator: every number is a function of a key and a counter (Salmon et al. 2011).

There is no state to hand from task to task, so that what a task draws depends on neither timing nor threads.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_MULTIPLIER, _WEYL = np.uint64(0xD2B74407B1CE6E93), np.uint64(0x9E3779B97F4A7C15)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ROUNDS = 10


@intrinsic
def _product(typing_context: Any, a: Any, b: Any) -> Any:
    """The upper and the lower half of the product of two uint64."""
    signature = types.UniTuple(types.uint64, 2)(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (upper, builder.trunc(product, word)))

    return signature, generate


@njit(nogil=True, cache=True)
def random_words(key: Any, stream: Any, count: Any) -> Any:
    """Return two random 64-bit words: number `count` of a stream under a key.

    Parameters
    ----------
    key, stream, count : uint64
        For example: a seed, a task, and how many draws the task has made before. The counter is (`count`, `stream`).

    Returns
    -------
    tuple of two uint64
    """
    a, b = count, stream
    for _ in range(_ROUNDS):
        upper, lower = _product(_MULTIPLIER, a)
        a, b = upper ^ key ^ b, lower
        key += _WEYL
    return a, b


@njit(nogil=True, cache=True)
def random_half_words(key: Any, stream: Any, count: Any) -> Any:
    """Return four random 32-bit words, as uint64: the halves of `random_words`, the upper ones first."""
    a, b = random_words(key, stream, count)
    return a >> _HALF, a & _LOW, b >> _HALF, b & _LOW


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
    return np.int64(_product(word, np.uint64(bound))[0])


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
