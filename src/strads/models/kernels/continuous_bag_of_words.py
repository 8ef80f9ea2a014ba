"""Continuous bag of words with negative sampling, one window after another (Mikolov et al., ICLR and NIPS 2013)."""

from typing import Any

import numpy as np
from numba import njit

from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.negative_samples import draw_noise, loss_of_steps, write_steps
from strads.models.kernels.simd import WIDTH, load_floats, multiply_add, splat_float, store_floats
from strads.models.kernels.word_windows import SENTENCE_END

_MEASURED = 32  # one window in this many is measured for the loss
_ZERO = np.float32(0.0)


@njit(nogil=True, fastmath=True, cache=True)
def train_windows(  # type: ignore[no-untyped-def]
    inputs, outputs, words, reaches, noise, negative, mean, key, stream, rates, memory
):
    """Take a step for every window, in order: the words around predict the one in the middle.

    Parameters
    ----------
    inputs, outputs : float32 arrays of shape (rows, dimensions)
        Word vectors and context vectors of all words; dimensions are a multiple of 16.
    words, reaches
        As from `subsample`; codes are rows.
    noise : AliasTable
    negative : int
        Negative samples of a window. One that is the word in the middle is left out.
    mean : bool
        Whether the mean of the vectors around predicts, or their sum. As in gensim, with the mean each of them takes
        the whole step of the hidden vector, with the sum its share.
    key, stream : uint64
        Random stream of the negatives.
    rates : pair of float32
        Learning rate of the first window and after the last; linear between.
    memory : float32 array
        As from `window_memory`.

    Returns
    -------
    Sum of the losses of the windows that were measured, and their number.
    """
    size, length = inputs.shape[1], len(words)
    targets = 1 + negative
    rows = np.empty(negative, np.int64)
    hidden, change = memory[0, :size], memory[1, :size]
    steps, labels, partials = memory[2], memory[3], memory[4:].reshape(-1)
    loss, measured = 0.0, 0
    for middle in range(length):
        if words[middle] == SENTENCE_END:
            continue
        first, end = _window(words, middle, np.int64(reaches[middle]))
        around = end - first - 1
        if around == 0:
            continue
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * (middle / length))
        mean_share = np.float32(1.0 / around)
        share, back = (mean_share, np.float32(1.0)) if mean else (np.float32(1.0), mean_share)
        draw_noise(noise, key, stream, middle, rows)
        _sum_rows(inputs, words, first, middle, end, share, hidden)
        for target in range(targets):
            row = np.int64(words[middle]) if target == 0 else rows[target - 1]
            _multiply_lanes(hidden, outputs, row * size, partials, target * WIDTH)
        for position in range(0, targets, WIDTH):
            write_steps(partials, position, labels, rate, steps)
        change[:] = _ZERO
        for target in range(targets):
            row = np.int64(words[middle]) if target == 0 else rows[target - 1]
            if target and row == words[middle]:
                steps[target] = _ZERO
            else:
                _take_step(hidden, outputs, row * size, steps[target], change)
        if middle % _MEASURED == 0:
            loss += loss_of_steps(steps, 0, targets, rate)
            measured += 1
        for place in range(first, end):
            if place != middle:
                _add_row(inputs, np.int64(words[place]) * size, back, change)
    return loss, measured


def window_memory(dimensions: int, negative: int) -> Any:
    """Memory of one job: vectors of a window, steps and labels of its targets, and lanes of their scores."""
    targets = -(-(1 + negative) // WIDTH) * WIDTH
    width = max(targets, dimensions)
    memory = aligned_zeros((4 + -(-targets * WIDTH // width), width), np.float32)
    memory[3, 0] = 1.0
    return memory


@njit(nogil=True, cache=True)
def _window(words: Any, middle: Any, reach: Any) -> Any:
    """First position of the window around a position, and the one after its last."""
    first = end = middle
    while first > 0 and middle - first < reach and words[first - 1] != SENTENCE_END:
        first -= 1
    end += 1
    while end < len(words) and end - middle <= reach and words[end] != SENTENCE_END:
        end += 1
    return first, end


@njit(nogil=True, cache=True)
def _sum_rows(inputs, words, first, middle, end, share, hidden):  # type: ignore[no-untyped-def]
    """Write `share` times the sum of the word vectors of a window to `hidden`, a float32 array of shape (dimensions,).

    The window is `words[first:end]` without the word at `middle`, whose codes are rows of `inputs`.
    """
    size = inputs.shape[1]
    for step in range(0, size, WIDTH):
        total = splat_float(_ZERO)
        for place in range(first, end):
            if place != middle:
                row = load_floats(inputs, np.int64(words[place]) * size + step)
                total = multiply_add(row, splat_float(share), total)
        store_floats(hidden, step, total)


@njit(nogil=True, cache=True)
def _multiply_lanes(hidden, outputs, place, partials, at):  # type: ignore[no-untyped-def]
    """Write the 16 lanes whose sum is the inner product of `hidden` and a context vector to `partials[at : at + 16]`.

    The context vector starts at element `place` of `outputs`, counted over all of its rows.
    """
    total = splat_float(_ZERO)
    for step in range(0, len(hidden), WIDTH):
        total = multiply_add(load_floats(hidden, step), load_floats(outputs, place + step), total)
    store_floats(partials, at, total)


@njit(nogil=True, cache=True)
def _take_step(hidden, outputs, place, rate, change):  # type: ignore[no-untyped-def]
    """Move a context vector by `rate` · `hidden`, and add `rate` times its former value to `change`.

    `rate` is the step of this target, from `write_steps`. The vector starts at element `place` of `outputs`; `change`,
    a float32 array of shape (dimensions,), sums up how the word vectors of the window are to move.
    """
    factor = splat_float(rate)
    for step in range(0, len(hidden), WIDTH):
        h, c = load_floats(hidden, step), load_floats(outputs, place + step)
        store_floats(change, step, multiply_add(factor, c, load_floats(change, step)))
        store_floats(outputs, place + step, multiply_add(factor, h, c))


@njit(nogil=True, cache=True)
def _add_row(inputs, place, share, change):  # type: ignore[no-untyped-def]
    """Add `share` · `change` to the word vector that starts at element `place` of `inputs`."""
    for step in range(0, len(change), WIDTH):
        moved = multiply_add(load_floats(change, step), splat_float(share), load_floats(inputs, place + step))
        store_floats(inputs, place + step, moved)
