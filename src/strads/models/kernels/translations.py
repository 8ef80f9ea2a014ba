"""Rows of vectors in TransE: their distances, and gradient steps on them, 16 columns at a time.

A fact (head, relation, tail) holds if head + relation is near tail (Bordes et al. 2013). Both ends are treated alike:
from the *anchor*, one end, the relation leads to the *goal* q = head + relation or q = tail − relation, and the other
end should be nearer to q than others. Distances are ‖q − x‖₁ or ‖q − x‖₂.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels import simd
from strads.models.kernels.simd import WIDTH

FREE, SPHERE, BALL = 0, 1, 2  # what is done to the norms of entities

# Inlined and without reference counts, which are atomic: on a row of 50 numbers they cost as much as its arithmetic.
inlined = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)
_SMALLEST = np.float32(1e-12)  # lengths below it are not divided by
_ONE = np.float32(1.0)
_FLOAT_BYTES = 4


class Rows(NamedTuple):
    """Vectors of entities or relations, and what AdaGrad knows of them.

    Attributes
    ----------
    vectors : float32 array of shape (rows, width)
        The columns from `n_components` to `width`, a multiple of 16, are 0.
    squares : float32 array of shape (rows,)
        Summed mean squared gradients; positive.
    """

    vectors: NDArray[np.float32]
    squares: NDArray[np.float32]


class Row(NamedTuple):
    """Where a row lies; valid as long as its `Rows` live.

    Attributes
    ----------
    vector, square : int
        Addresses of its vector and of its summed squares.
    """

    vector: int
    square: int


@inlined
def row_of(rows, number):  # type: ignore[no-untyped-def]
    """One of some `Rows`, as a `Row`."""
    return Row(simd.address(rows.vectors, number * rows.vectors.shape[1]), simd.address(rows.squares, number))


@inlined
def row_of_blocks(first, second, number):  # type: ignore[no-untyped-def]
    """Row `number` of two blocks of `Rows`, numbered consecutively, as a `Row`.

    Has no branch, because which block it is in is unpredictable.
    """
    split = len(first.vectors)
    later = np.int64(number >= split)
    inside = number - later * split
    vector, of_second = simd.address(first.vectors, 0), simd.address(second.vectors, 0)
    square, square_of_second = simd.address(first.squares, 0), simd.address(second.squares, 0)
    vector += later * (of_second - vector) + inside * first.vectors.shape[1] * _FLOAT_BYTES
    square += later * (square_of_second - square) + inside * _FLOAT_BYTES
    return Row(vector, square)


@inlined
def translate(anchor, relation, direction, goal):  # type: ignore[no-untyped-def]
    """q = anchor + direction · relation, into `goal` (float32, (width,)); `direction` is 1 from a head, −1 from a tail.

    The anchor and the relation are addresses of vectors.
    """
    factor = simd.splat_float(direction)
    for j in range(0, len(goal), WIDTH):
        step = simd.multiply(factor, simd.load_floats(relation, j))
        simd.store_floats(goal, j, simd.add(simd.load_floats(anchor, j), step))


@inlined
def distance(goal, vector, norm):  # type: ignore[no-untyped-def]
    """‖q − x‖ of the vector at an address, float32; the same bits wherever it is called."""
    total = simd.splat_float(np.float32(0.0))
    for j in range(0, len(goal), WIDTH):
        difference = simd.subtract(simd.load_floats(goal, j), simd.load_floats(vector, j))
        if norm == 1:
            total = simd.add(total, simd.absolute(difference))
        else:
            total = simd.add(total, simd.multiply(difference, difference))
    return simd.total(total) if norm == 1 else np.float32(math.sqrt(simd.total(total)))


@inlined
def approach(goal, row, weight, length, objective, step, gradient):  # type: ignore[no-untyped-def]
    """One step on an end of a fact whose loss has the derivative `weight` with respect to its distance `length`.

    The `Row` moves towards the goal if the weight is positive, else away from it, by `step` / √(its summed mean
    squared gradients). The gradient with respect to the goal is added to `gradient`. Of the `objective`, this needs
    `norm`, `share` (1 / n_components) and `constraint`.
    """
    norm, share, constraint = objective.norm, objective.share, objective.constraint
    scale = weight if norm == 1 else weight / max(length, _SMALLEST)
    pull = simd.splat_float(scale)
    rate = simd.splat_float(_rate(row.square, weight * weight * (_ONE if norm == 1 else share), step))
    for j in range(0, len(gradient), WIDTH):
        x = simd.load_floats(row.vector, j)
        difference = simd.subtract(simd.load_floats(goal, j), x)
        slope = simd.multiply(pull, simd.sign(difference) if norm == 1 else difference)
        simd.store_floats(gradient, j, simd.add(simd.load_floats(gradient, j), slope))
        simd.store_floats(row.vector, j, simd.add(x, simd.multiply(rate, slope)))
    constrain(row.vector, len(gradient), constraint)


@inlined
def descend(row, gradient, square, step, constraint):  # type: ignore[no-untyped-def]
    """One step of a `Row` against `gradient`, whose mean square is `square`; along it, if `step` is negative."""
    rate = simd.splat_float(_rate(row.square, square, step))
    for j in range(0, len(gradient), WIDTH):
        change = simd.multiply(rate, simd.load_floats(gradient, j))
        simd.store_floats(row.vector, j, simd.subtract(simd.load_floats(row.vector, j), change))
    constrain(row.vector, len(gradient), constraint)


@inlined
def _rate(summed, square, step):  # type: ignore[no-untyped-def]
    """AdaGrad's step size, after `square` is added to the sum at an address."""
    known = simd.load_float(summed, 0) + square
    simd.store_float(summed, 0, known)
    return np.float32(step / np.float32(math.sqrt(known)))


@inlined
def squared_length(vector, width):  # type: ignore[no-untyped-def]
    """‖x‖₂² of the vector at an address, float32."""
    total = simd.splat_float(np.float32(0.0))
    for j in range(0, width, WIDTH):
        x = simd.load_floats(vector, j)
        total = simd.add(total, simd.multiply(x, x))
    return simd.total(total)


@inlined
def constrain(vector, width, constraint):  # type: ignore[no-untyped-def]
    """Scale the vector at an address to ‖x‖₂ = 1 (`SPHERE`), or to at most 1 (`BALL`)."""
    if constraint == FREE:
        return
    square = squared_length(vector, width)
    if square <= _SMALLEST or (constraint == BALL and square <= _ONE):
        return
    factor = simd.splat_float(np.float32(1.0 / math.sqrt(square)))
    for j in range(0, width, WIDTH):
        simd.store_floats(vector, j, simd.multiply(factor, simd.load_floats(vector, j)))


@njit(nogil=True, cache=True)
def constrain_all(vectors: Any, constraint: Any) -> None:
    """Apply a constraint to all rows of a float32 array."""
    width = vectors.shape[1]
    for row in range(len(vectors)):
        constrain(simd.address(vectors, row * width), width, constraint)
