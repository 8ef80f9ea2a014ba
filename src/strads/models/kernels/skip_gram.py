"""Skip-gram with negative sampling on pairs of words, eight at a time (Mikolov et al., NIPS 2013; Ji et al. 2016).

A word vector w of the input table predicts the context vector c of the pair's other word against negatives that the
eight pairs share. So scores and steps are small matrix products: a negative's row is loaded once for eight pairs, and
its change is written once. The steps of a group start from the vectors as they were before it; so its pairs come from
eight parts of the list, where they seldom have a word in common.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.negative_samples import draw_noise, loss_of_steps, write_steps
from strads.models.kernels.simd import WIDTH, add, load_floats, multiply_add, prefetch, splat_float, store_floats

GROUP = 8  # pairs that share negatives
TILE = 5  # negatives whose rows are kept in registers together
_TARGETS = 1 + TILE
_SCORES = GROUP * _TARGETS  # three vectors
_MEASURED = 32  # one group in this many is measured for the loss

_ZERO = np.float32(0.0)


class Scratch(NamedTuple):
    """Memory of one job.

    Attributes
    ----------
    partials : float32 array of shape (48 · 16,)
        Lanes of each score, before they are summed.
    steps : float32 array of shape (48,)
        Of pair g and target t at 6 g + t; target 0 is the context.
    labels : float32 array of shape (48,)
        1 for contexts.
    places : int64 array of shape (16,)
        Where the input rows and the context rows of the group start.
    """

    partials: NDArray[np.float32]
    steps: NDArray[np.float32]
    labels: NDArray[np.float32]
    places: NDArray[np.int64]


def scratch() -> Scratch:
    """Memory for one job."""
    labels = aligned_zeros(_SCORES, np.float32)
    labels[::_TARGETS] = 1.0
    return Scratch(
        aligned_zeros(_SCORES * WIDTH, np.float32),
        aligned_zeros(_SCORES, np.float32),
        labels,
        np.zeros(2 * GROUP, np.int64),
    )


@njit(nogil=True, fastmath=True, cache=True)
def train_pairs(  # type: ignore[no-untyped-def]
    inputs, outputs, input_rows, output_rows, noise, negative, key, stream, rates, scratch
):
    """Take a step for every pair. With n groups, group g has the pairs g, g + n, …, g + 7 n.

    Parameters
    ----------
    inputs, outputs : float32 arrays of shape (rows, dimensions)
        Word vectors and context vectors; dimensions are a multiple of 16.
    input_rows, output_rows : int32 arrays of shape (pairs,)
        Rows of each pair.
    noise : AliasTable
        Of the rows of `outputs`.
    negative : int
        Negative samples of a pair. One that is the pair's own context is left out.
    key, stream : uint64
        Random stream of the negatives.
    rates : pair of float32
        Learning rate of the first pair and after the last; linear between.
    scratch : Scratch

    Returns
    -------
    Sum of the losses of the pairs that were measured, and their number.
    """
    tiles = (negative + TILE - 1) // TILE
    negatives = np.empty(tiles * TILE, np.int64)  # where their rows start
    pairs = len(input_rows)
    groups = (pairs + GROUP - 1) // GROUP
    loss, measured = 0.0, 0
    for group in range(groups):
        size = 1 + (pairs - 1 - group) // groups
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * (group / groups))
        draw_noise(noise, key, stream, group, negatives)
        negatives *= inputs.shape[1]
        _fetch(inputs, outputs, input_rows, output_rows, group + 1, groups)
        _find_places(input_rows, output_rows, group, groups, inputs.shape[1], scratch.places)
        for tile in range(tiles):
            _find_steps(inputs, outputs, negatives, tile, rate, scratch)
            _leave_out(scratch, size, negatives, tile, min(TILE, negative - tile * TILE))
            if group % _MEASURED == 0:
                for pair in range(size):
                    loss += loss_of_steps(scratch.steps, pair * _TARGETS, _TARGETS, rate)
            _take_steps(inputs, outputs, negatives, tile, scratch)
        if group % _MEASURED == 0:
            measured += size
    return loss, measured


@njit(nogil=True, cache=True)
def _fetch(inputs: Any, outputs: Any, input_rows: Any, output_rows: Any, group: Any, groups: Any) -> None:
    """Prefetch the rows of a group's pairs."""
    size = inputs.shape[1]
    for pair in range(group, len(input_rows), groups):
        for step in range(0, size, WIDTH):
            prefetch(inputs, np.int64(input_rows[pair]) * size + step)
            prefetch(outputs, np.int64(output_rows[pair]) * size + step)


@njit(nogil=True, cache=True)
def _find_places(input_rows: Any, output_rows: Any, group: Any, groups: Any, size: Any, places: Any) -> None:
    """Write to `places` where the rows of a group's pairs start; `size` is the number of dimensions."""
    pair = group
    for number in range(GROUP):  # an incomplete group is filled up with its last pair, which then takes no step
        places[number] = np.int64(input_rows[pair]) * size
        places[GROUP + number] = np.int64(output_rows[pair]) * size
        if pair + groups < len(input_rows):
            pair += groups


@njit(nogil=True, cache=True)
def _find_steps(inputs, outputs, negatives, tile, rate, scratch):  # type: ignore[no-untyped-def]
    """Write the steps of all pairs and targets, rate · (label − σ(⟨w, c⟩)), to `scratch.steps`.

    The targets are the contexts, at `scratch.places`, and the `TILE` negatives number `tile`: the positions
    `TILE * tile …` of `negatives` (int64) say where these start in `outputs`, counted over all of its rows. `inputs`,
    `outputs` and `scratch` are as in `train_pairs`.
    """
    size = inputs.shape[1]
    at = tile * TILE
    n0, n1, n2, n3, n4 = negatives[at], negatives[at + 1], negatives[at + 2], negatives[at + 3], negatives[at + 4]
    partials, places = scratch.partials, scratch.places
    for pair in range(GROUP):
        w_at, c_at = places[pair], places[GROUP + pair]
        s0 = s1 = s2 = s3 = s4 = s5 = splat_float(_ZERO)
        for step in range(0, size, WIDTH):
            w = load_floats(inputs, w_at + step)
            s0 = multiply_add(w, load_floats(outputs, c_at + step), s0)
            s1 = multiply_add(w, load_floats(outputs, n0 + step), s1)
            s2 = multiply_add(w, load_floats(outputs, n1 + step), s2)
            s3 = multiply_add(w, load_floats(outputs, n2 + step), s3)
            s4 = multiply_add(w, load_floats(outputs, n3 + step), s4)
            s5 = multiply_add(w, load_floats(outputs, n4 + step), s5)
        at = pair * _TARGETS * WIDTH
        store_floats(partials, at, s0)
        store_floats(partials, at + WIDTH, s1)
        store_floats(partials, at + 2 * WIDTH, s2)
        store_floats(partials, at + 3 * WIDTH, s3)
        store_floats(partials, at + 4 * WIDTH, s4)
        store_floats(partials, at + 5 * WIDTH, s5)
    for position in range(0, _SCORES, WIDTH):
        write_steps(partials, position, scratch.labels, rate, scratch.steps)


@njit(nogil=True, cache=True)
def _leave_out(scratch: Any, size: Any, negatives: Any, tile: Any, used: Any) -> None:
    """Take no step where there is no pair or negative, for a negative that is the context, or for a context again."""
    steps, contexts = scratch.steps, scratch.places[GROUP:]
    for pair in range(GROUP):
        at = pair * _TARGETS
        if pair >= size or tile > 0:
            steps[at] = _ZERO
        for number in range(TILE):
            if pair >= size or number >= used or negatives[tile * TILE + number] == contexts[pair]:
                steps[at + 1 + number] = _ZERO


@njit(nogil=True, cache=True)
def _take_steps(inputs, outputs, negatives, tile, scratch):  # type: ignore[no-untyped-def]
    """w += Σ step · c over the pair's targets; c += step · w. A row that occurs twice gets both changes.

    `inputs` and `outputs` are changed by the steps in `scratch`; `negatives` and `tile` are as in `_find_steps`.
    """
    size = inputs.shape[1]
    at = tile * TILE
    n0, n1, n2, n3, n4 = negatives[at], negatives[at + 1], negatives[at + 2], negatives[at + 3], negatives[at + 4]
    steps, places = scratch.steps, scratch.places
    for step in range(0, size, WIDTH):
        c0, c1, c2 = load_floats(outputs, n0 + step), load_floats(outputs, n1 + step), load_floats(outputs, n2 + step)
        c3, c4 = load_floats(outputs, n3 + step), load_floats(outputs, n4 + step)
        d0 = d1 = d2 = d3 = d4 = splat_float(_ZERO)
        for pair in range(GROUP):
            w_at, c_at = places[pair] + step, places[GROUP + pair] + step
            at = pair * _TARGETS
            w, c = load_floats(inputs, w_at), load_floats(outputs, c_at)
            e0, e1, e2 = splat_float(steps[at]), splat_float(steps[at + 1]), splat_float(steps[at + 2])
            e3, e4, e5 = splat_float(steps[at + 3]), splat_float(steps[at + 4]), splat_float(steps[at + 5])
            store_floats(outputs, c_at, multiply_add(e0, w, c))
            moved = multiply_add(e2, c1, multiply_add(e1, c0, multiply_add(e0, c, w)))
            moved = multiply_add(e5, c4, multiply_add(e4, c3, multiply_add(e3, c2, moved)))
            store_floats(inputs, w_at, moved)
            d0, d1, d2 = multiply_add(e1, w, d0), multiply_add(e2, w, d1), multiply_add(e3, w, d2)
            d3, d4 = multiply_add(e4, w, d3), multiply_add(e5, w, d4)
        store_floats(outputs, n0 + step, add(load_floats(outputs, n0 + step), d0))
        store_floats(outputs, n1 + step, add(load_floats(outputs, n1 + step), d1))
        store_floats(outputs, n2 + step, add(load_floats(outputs, n2 + step), d2))
        store_floats(outputs, n3 + step, add(load_floats(outputs, n3 + step), d3))
        store_floats(outputs, n4 + step, add(load_floats(outputs, n4 + step), d4))
