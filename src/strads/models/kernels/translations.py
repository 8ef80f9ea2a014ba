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

_inlined = njit(nogil=True, error_model="numpy", forceinline=True)  # a call would count references to arrays
_SMALLEST = np.float32(1e-12)
_ONE = np.float32(1.0)


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


@_inlined
def translate(anchor, row, relations, relation, direction, goal):  # type: ignore[no-untyped-def]
    """q = anchor + direction · relation, into `goal` (float32, (width,)); `direction` is 1 from a head, −1 from a tail.

    The anchor is a row of an array of vectors.
    """
    width = anchor.shape[1]
    factor = simd.splat_float(direction)
    for j in range(0, width, WIDTH):
        step = simd.multiply(factor, simd.load_floats(relations, relation * width + j))
        simd.store_floats(goal, j, simd.add(simd.load_floats(anchor, row * width + j), step))


@_inlined
def distance(goal, vectors, row, norm):  # type: ignore[no-untyped-def]
    """‖q − x‖ of a row, float32; the same bits wherever it is called."""
    width = vectors.shape[1]
    total = simd.splat_float(np.float32(0.0))
    for j in range(0, width, WIDTH):
        difference = simd.subtract(simd.load_floats(goal, j), simd.load_floats(vectors, row * width + j))
        if norm == 1:
            total = simd.add(total, simd.absolute(difference))
        else:
            total = simd.add(total, simd.multiply(difference, difference))
    return simd.total(total) if norm == 1 else np.float32(math.sqrt(simd.total(total)))


@_inlined
def approach(goal, rows, row, weight, length, norm, step, share, constraint, gradient):  # type: ignore[no-untyped-def]
    """One step on an end of a fact whose loss has the derivative `weight` with respect to its distance `length`.

    The row moves towards the goal if the weight is positive, else away from it, by `step` / √(its summed mean squared
    gradients); `share` is 1 / n_components. The gradient with respect to the goal is added to `gradient`.
    """
    width = rows.vectors.shape[1]
    scale = weight if norm == 1 else weight / max(length, _SMALLEST)
    rows.squares[row] += weight * weight * (_ONE if norm == 1 else share)
    pull = simd.splat_float(scale)
    rate = simd.splat_float(np.float32(step / math.sqrt(rows.squares[row])))
    for j in range(0, width, WIDTH):
        x = simd.load_floats(rows.vectors, row * width + j)
        difference = simd.subtract(simd.load_floats(goal, j), x)
        slope = simd.multiply(pull, simd.sign(difference) if norm == 1 else difference)
        simd.store_floats(gradient, j, simd.add(simd.load_floats(gradient, j), slope))
        simd.store_floats(rows.vectors, row * width + j, simd.add(x, simd.multiply(rate, slope)))
    constrain(rows.vectors, row, constraint)


@_inlined
def descend(rows, row, gradient, square, direction, step, constraint):  # type: ignore[no-untyped-def]
    """One step of a row against direction · `gradient`, whose mean square is `square`."""
    width = rows.vectors.shape[1]
    rows.squares[row] += square
    rate = simd.splat_float(np.float32(direction * step / math.sqrt(rows.squares[row])))
    for j in range(0, width, WIDTH):
        change = simd.multiply(rate, simd.load_floats(gradient, j))
        x = simd.load_floats(rows.vectors, row * width + j)
        simd.store_floats(rows.vectors, row * width + j, simd.subtract(x, change))
    constrain(rows.vectors, row, constraint)


@_inlined
def squared_length(vectors, row):  # type: ignore[no-untyped-def]
    """‖x‖₂² of a row, float32."""
    width = vectors.shape[1]
    total = simd.splat_float(np.float32(0.0))
    for j in range(0, width, WIDTH):
        x = simd.load_floats(vectors, row * width + j)
        total = simd.add(total, simd.multiply(x, x))
    return simd.total(total)


@_inlined
def constrain(vectors, row, constraint):  # type: ignore[no-untyped-def]
    """Scale a row to ‖x‖₂ = 1 (`SPHERE`), or to at most 1 (`BALL`)."""
    if constraint == FREE:
        return
    square = squared_length(vectors, row)
    if square <= _SMALLEST or (constraint == BALL and square <= _ONE):
        return
    width = vectors.shape[1]
    factor = simd.splat_float(np.float32(1.0 / math.sqrt(square)))
    for j in range(0, width, WIDTH):
        place = row * width + j
        simd.store_floats(vectors, place, simd.multiply(factor, simd.load_floats(vectors, place)))


@njit(nogil=True, cache=True)
def constrain_all(vectors: Any, constraint: Any) -> None:
    """Apply a constraint to all rows."""
    for row in range(len(vectors)):
        constrain(vectors, row, constraint)
