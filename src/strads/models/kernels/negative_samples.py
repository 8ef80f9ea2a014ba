"""Words drawn at random as negative samples, and the steps of the logistic loss (Mikolov et al., NIPS 2013, §2.2)."""

from typing import Any

import numpy as np
from numba import njit

from strads.models.kernels.alias_tables import drawn_row
from strads.models.kernels.simd import (
    add,
    between,
    divide,
    load_floats,
    multiply,
    power_of_two,
    row_totals,
    splat_float,
    store_floats,
    subtract,
)
from strads.rng.philox import random_words

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_LOG2_E = np.float32(1.4426950408889634)
_LARGEST_SCORE = np.float32(16.0)  # beyond it, σ is 0 or 1 in float32
_LEAST = 1e-7  # what a probability is at least in a loss


@njit(nogil=True, cache=True)
def draw_noise(noise: Any, key: Any, stream: Any, count: Any, words: Any) -> None:
    """Fill `words` (int64) with negative samples, drawn by number `count` of a random stream under a key.

    Each takes 32 random bits: their product with the number of words is a word and a position in its column.
    """
    n = np.uint64(len(noise.shares))
    calls = np.uint64((len(words) + 3) // 4)
    a = b = np.uint64(0)
    for i in range(len(words)):
        if i % 4 == 0:
            a, b = random_words(key, stream, np.uint64(count) * calls + np.uint64(i // 4))
        bits = (a if i % 4 < 2 else b) >> (_HALF * np.uint64(i % 2))
        words[i] = drawn_row(noise, (bits & _LOW) * n)


@njit(nogil=True, cache=True)
def write_steps(partials: Any, position: Any, labels: Any, rate: Any, steps: Any) -> None:
    """Write rate · (label − σ(score)) of 16 scores to `steps`.

    Parameters
    ----------
    partials : float32 array
        Score i is the sum of the 16 numbers from 16 · (position + i) on.
    position : int
        First score.
    labels, steps : float32 arrays
        At the same positions.
    rate : float32
    """
    one = splat_float(np.float32(1.0))
    score = between(row_totals(partials, 16 * position), -_LARGEST_SCORE, _LARGEST_SCORE)
    sigma = divide(one, add(one, power_of_two(multiply(score, splat_float(-_LOG2_E)))))
    step = multiply(subtract(load_floats(labels, position), sigma), splat_float(rate))
    store_floats(steps, position, step)


@njit(nogil=True, cache=True)
def loss_of_steps(steps: Any, first: Any, targets: Any, rate: Any) -> Any:
    """−log σ(score) of a context and −log σ(−score) of its negatives, from their steps; those without a step count 0.

    Parameters
    ----------
    steps : float32 array
        As from `write_steps`.
    first, targets : int
        Position of the context, and number of targets: the context and its negatives.
    rate : float32, positive
    """
    loss = 0.0
    for i in range(first, first + targets):
        loss -= np.log(max(1.0 - abs(np.float64(steps[i])) / rate, _LEAST))
    return loss
