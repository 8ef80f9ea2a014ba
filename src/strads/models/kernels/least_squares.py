"""Weighted least squares with an elastic-net penalty on a few columns: sweeps of coordinate descent, Newton steps.

The problem is min over w of ½‖r‖² + Σ_j l1_j |w_j| + l2_j w_j² / 2, where r is the residual. With an intercept, the
columns and r are implicitly orthogonalized to a vector e (√s of the samples' weights s): r = stored − c · e with
c = eᵀstored / E, E = eᵀe, and x_jᵀr = x_jᵀstored − c · a_j with a_j = x_jᵀe. So nothing is centred in memory. Without
an intercept a = 0 and E = 1.
"""

from typing import Any, NamedTuple

from numba import njit
from numpy import empty, float64, int64, zeros
from numpy.typing import NDArray

from strads.engine.barrier import meet
from strads.models.kernels.columns import column_add, column_dot, column_length, column_weighted_square
from strads.models.kernels.penalties import soft_threshold

_FLAT = 1e-12  # a column is constant if centring reduces its square to this fraction


class Subproblem(NamedTuple):
    """The problem: columns and penalty. Arrays have an element for each column."""

    columns: Any  # `Columns` x_j in float64, not centred
    squares: NDArray[float64]  # ‖x_j‖²
    means: NDArray[float64]  # a
    total: float  # E
    l1: NDArray[float64]  # weights of |w_j| in the penalty
    l2: NDArray[float64]  # weights of w_j² / 2
    positive: bool = False  # whether w ≥ 0


@njit(nogil=True, fastmath=True, cache=True)
def prepare(columns, e, squares, means):  # type: ignore[no-untyped-def]
    """Write Σ_i x_ij² to `squares` and a to `means`; the vector `e`, of shape (samples,), is 0 without an intercept."""
    ones = zeros(len(e))
    ones[:] = 1.0
    for j in range(len(squares)):
        squares[j] = column_weighted_square(columns, j, ones)
        means[j] = column_dot(columns, j, e)


@njit(nogil=True, fastmath=True, cache=True, forceinline=True)
def _descend(problem, j, w, stored, shift):  # type: ignore[no-untyped-def]
    """Minimize the `problem`, a `Subproblem`, over coefficient j of `w`, which is updated together with `stored`.

    `shift` is c.

    Returns
    -------
    The new shift, and the number of entries read and written.
    """
    columns, squares, means, total, l1, l2, positive = problem
    length = column_length(columns, j)
    square = squares[j] - means[j] * means[j] / total
    new = 0.0  # for a constant or empty column, which may have a coefficient from a warm start
    if square > _FLAT * squares[j]:
        slope = column_dot(columns, j, stored) - shift * means[j] + square * w[j]
        new = soft_threshold(slope, l1[j], positive) / (square + l2[j])
    step = new - w[j]
    if step == 0.0:
        return shift, length
    w[j] = new
    column_add(columns, j, -step, stored)
    return shift - step * means[j] / total, 2 * length


@njit(nogil=True, fastmath=True, cache=True)
def sweeps(problem, w, stored, shift, fewest, most, enough):  # type: ignore[no-untyped-def]
    """Pass over all columns by coordinate descent, then repeatedly over the support.

    Stops after `most` passes, or after at least `fewest` once they have touched `enough` entries. `w` and `stored` are
    updated; `shift` is c.

    Returns
    -------
    The shift c, and the number of entries touched.
    """
    work = 0
    support = empty(len(w), int64)
    size = len(w)
    for j in range(size):
        support[j] = j
    for count in range(most):
        if count >= fewest and work >= enough:
            break
        left = 0
        for k in range(size):
            j = support[k]
            shift, touched = _descend(problem, j, w, stored, shift)
            work += touched
            if w[j] != 0.0:
                support[left] = j
                left += 1
        size = left
    return shift, work


@njit(nogil=True, fastmath=True, cache=True)
def covariance_sweeps(gram, slopes, w, l1, l2, positive, count):  # type: ignore[no-untyped-def]
    """Pass over a support by coordinate descent, using the products of its columns instead of the columns.

    Parameters
    ----------
    gram : array of shape (m, m)
        XᵀX − a aᵀ / E of the support; no element of its diagonal is 0.
    slopes : array of shape (m,)
        x_jᵀr − l2_j w_j; kept up to date.
    w, l1, l2 : arrays of shape (m,)
    positive
        Whether coefficients stay at 0 or above.
    count
        Number of passes.
    """
    for _ in range(count):
        for j in range(len(w)):
            covariances = gram[j]
            bend = covariances[j] + l2[j]
            new = soft_threshold(slopes[j] + bend * w[j], l1[j], positive) / bend
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for k in range(len(w)):
                    slopes[k] -= step * covariances[k]
                slopes[j] -= step * l2[j]


@njit(nogil=True, fastmath=True, cache=True, forceinline=True)
def slopes(problem, w, stored, shift, order, out):  # type: ignore[no-untyped-def]
    """Write x_jᵀr − l2_j w_j to `out[k]` for each column j = `order[k]` of the `problem`, a `Subproblem`.

    r is given by `stored` and c, the `shift`; `w` are the coefficients of all columns.
    """
    for k in range(len(order)):
        j = order[k]
        out[k] = column_dot(problem.columns, j, stored) - shift * problem.means[j] - problem.l2[j] * w[j]


@njit(nogil=True, fastmath=True, cache=True, forceinline=True)
def _share(sums, place):  # type: ignore[no-untyped-def]
    total = 0.0
    for thread in range(len(sums)):
        total += sums[thread, place]
    return total


@njit(nogil=True, fastmath=True, cache=True)
def conjugate_gradients(  # type: ignore[no-untyped-def]
    problem, support, bounds, rhs, solution, image, partial, sums, tolerance, limit, barrier, thread
):
    """Solve (XᵀX − a aᵀ / E + l2) d = rhs on the support, preconditioned by the diagonal.

    All threads call it together. Each has its part of the columns and of the samples; sums over columns go through
    the thread's own row of `partial`, so that no element is written by two threads.

    Parameters
    ----------
    support : int64 array of shape (m,)
    bounds : int64 array of shape (threads + 1,)
        Bounds of each thread's part of the support.
    rhs, solution : arrays of shape (m,)
        The solution is initially all zeros.
    image : array of shape (samples,)
        Becomes X d; initially all zeros.
    partial : array of shape (threads, samples)
    sums : array of shape (threads, 16)
    tolerance
        Tolerance of the residual's norm relative to that of rhs, both weighted by the inverse diagonal.
    limit
        Largest number of iterations.

    Returns
    -------
    The number of iterations taken.
    """
    threads, samples = partial.shape
    begin, end = bounds[thread], bounds[thread + 1]
    first, last = samples * thread // threads, samples * (thread + 1) // threads
    columns, means, l2 = problem.columns, problem.means, problem.l2
    size = end - begin
    residual, direction, product, inverse = rhs[begin:end].copy(), zeros(size), zeros(size), zeros(size)
    mine, own = sums[thread], partial[thread]
    total = 0.0
    for k in range(size):
        j = support[begin + k]
        diagonal = problem.squares[j] - means[j] * means[j] / problem.total + l2[j]
        inverse[k] = 1.0 / diagonal if diagonal > _FLAT * problem.squares[j] else 0.0
        direction[k] = inverse[k] * residual[k]
        total += residual[k] * direction[k]
    mine[0] = total
    meet(barrier, threads)
    square = _share(sums, 0)
    goal = tolerance * tolerance * square
    count = 0
    while count < limit and square > goal and square > 0.0:
        own[:] = 0.0
        total = 0.0
        for k in range(size):
            if direction[k] != 0.0:
                column_add(columns, support[begin + k], direction[k], own)
                total += means[support[begin + k]] * direction[k]
        mine[1] = total
        meet(barrier, threads)
        for other in range(1, threads):
            for i in range(first, last):
                partial[0, i] += partial[other, i]
        shift = _share(sums, 1) / problem.total
        meet(barrier, threads)
        total = 0.0
        for k in range(size):
            j = support[begin + k]
            product[k] = column_dot(columns, j, partial[0]) - shift * means[j] + l2[j] * direction[k]
            total += direction[k] * product[k]
        mine[2] = total
        meet(barrier, threads)
        bend = _share(sums, 2)
        if bend <= 0.0:
            break
        length = square / bend
        total = 0.0
        for k in range(size):
            solution[begin + k] += length * direction[k]
            residual[k] -= length * product[k]
            product[k] = inverse[k] * residual[k]
            total += residual[k] * product[k]
        for i in range(first, last):
            image[i] += length * partial[0, i]
        mine[3] = total
        meet(barrier, threads)
        fresh = _share(sums, 3)
        for k in range(size):
            direction[k] = product[k] + fresh / square * direction[k]
        square = fresh
        count += 1
    meet(barrier, threads)
    return count
