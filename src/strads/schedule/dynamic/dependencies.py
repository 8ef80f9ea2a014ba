"""Which parameters depend too strongly on one another to be updated together (thesis §5.1.1, phase II).

The dependency of two parameters of a regression is the correlation of their columns (thesis §5.1.2, algorithm 6),
estimated from a sample of the rows. Each candidate is compared with those already kept, so L' candidates never cost
more than L' (L' − 1) / 2 correlations, and far fewer if the columns are sparse.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from strads.errors import ArgumentError


class NoDependencies(NamedTuple):
    """No dependencies: every candidate is kept."""

    taken: NDArray[np.int64]  # (2,): always 0, as the number of kept parameters is not needed


class DenseDependencies(NamedTuple):
    """The columns of `values`, of shape (sampled rows, parameters), with their `means` and inverse norms (`scales`).

    Norms are taken after subtracting the means; a column that is then all 0 has scale 0. `kept` holds the standardized
    columns kept in this round, one per row and padded with zeros, `crowds` the sum of the squared correlations of each
    with the others, and `products` the correlations of the candidate with them; `taken[0]` is their number. `noise` is
    the average amount that sampling adds to a squared correlation.
    """

    values: NDArray[Any]
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    noise: float
    kept: NDArray[np.float32]
    products: NDArray[np.float64]
    crowds: NDArray[np.float64]
    taken: NDArray[np.int64]


class SparseDependencies(NamedTuple):
    """Columns in CSC form, with their `means` and `scales`; these, `products` and `crowds` are as in the dense case.

    Column j has the values `values[indptr[j]:indptr[j + 1]]`, in the rows that `rows` holds at the same places. `kept`
    lists the columns kept in this round. Their entries form a linked list per row: `heads[i]` is the first entry of
    row i and `following` the next one of the same row; −1 ends the list. `owners` is the position in `kept` of an
    entry's column, and `entries` its value. So a candidate is compared only with columns that share a row with it.
    """

    values: NDArray[Any]
    rows: NDArray[Any]
    indptr: NDArray[Any]
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    heads: NDArray[np.int32]
    following: NDArray[np.int32]
    owners: NDArray[np.int32]
    entries: NDArray[np.float64]
    kept: NDArray[np.int64]
    products: NDArray[np.float64]
    crowds: NDArray[np.float64]
    taken: NDArray[np.int64]  # number of columns kept, and of their entries


Dependencies = NoDependencies | DenseDependencies | SparseDependencies


def no_dependencies() -> NoDependencies:
    """Return dependencies under which every candidate is kept."""
    return NoDependencies(np.zeros(2, np.int64))


def dense_dependencies(
    values: NDArray[Any], capacity: int, *, centre: bool = True, all_rows: int | None = None
) -> DenseDependencies:
    """Wrap the columns of a dense sample, without a copy.

    Parameters
    ----------
    values : array of shape (sampled rows, parameters)
    capacity
        Largest number of parameters kept together.
    all_rows
        Number of rows that `values` is a sample of; by default `values` has all rows.
    centre
        Whether to use the correlations of the centred columns, for a model with an intercept, or their cosines.
    """
    sums, squares = np.zeros((2, values.shape[1]))
    _dense_moments(values, sums, squares)
    means, scales = _standardization(sums, squares, len(values), centre=centre)
    padded = -(-len(values) // 16) * 16  # a multiple of the vector width, so that the products need no remainder loop
    noise = 0.0 if all_rows is None else max(1.0 / len(values) - 1.0 / all_rows, 0.0)
    kept = np.zeros((capacity, padded), np.float32)
    products, crowds = np.zeros((2, capacity))
    return DenseDependencies(values, means, scales, noise, kept, products, crowds, np.zeros(2, np.int64))


def sparse_dependencies(
    values: NDArray[Any],
    rows: NDArray[Any],
    indptr: NDArray[Any],
    n_rows: int,
    capacity: int,
    *,
    centre: bool = True,
) -> SparseDependencies:
    """Wrap columns in CSC form, without a copy; the other parameters are those of `dense_dependencies`."""
    sums, squares = np.zeros((2, len(indptr) - 1))
    _sparse_moments(values, indptr, sums, squares)
    means, scales = _standardization(sums, squares, n_rows, centre=centre)
    lengths = np.sort(np.diff(indptr))
    entries = int(lengths[-capacity:].sum())
    if entries >= 2**31:
        raise ArgumentError(f"{capacity} columns may have {entries} entries: choose a smaller concurrency")
    return SparseDependencies(
        values,
        rows,
        indptr,
        means,
        scales,
        np.full(n_rows, -1, np.int32),
        np.empty(entries, np.int32),
        np.empty(entries, np.int32),
        np.empty(entries),
        np.empty(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.zeros(2, np.int64),
    )


def _standardization(
    sums: NDArray[np.float64], squares: NDArray[np.float64], n_rows: int, *, centre: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means = sums / max(n_rows, 1) if centre else np.zeros_like(sums)
    rest = squares - n_rows * means**2
    constant = rest <= 1e-12 * squares  # the rest is rounding error: such a column is correlated with nothing
    return means, np.divide(1.0, np.sqrt(np.maximum(rest, 0.0)), out=np.zeros_like(rest), where=~constant)


@njit(nogil=True, cache=True)
def _dense_moments(values, sums, squares):  # type: ignore[no-untyped-def]
    for j in range(values.shape[1]):
        for i in range(values.shape[0]):
            value = np.float64(values[i, j])
            sums[j] += value
            squares[j] += value * value


@njit(nogil=True, cache=True)
def _sparse_moments(values, indptr, sums, squares):  # type: ignore[no-untyped-def]
    """Add the entries of each column to `sums` and their squares to `squares`, both (parameters,).

    Column j has the entries `values[indptr[j]:indptr[j + 1]]`.
    """
    for j in range(len(indptr) - 1):
        for place in range(indptr[j], indptr[j + 1]):
            value = np.float64(values[place])
            sums[j] += value
            squares[j] += value * value


def keep_if_safe(dependencies: Dependencies, parameter: int, threshold: float, crowding: float) -> bool:
    """Keep a parameter unless it depends too strongly on one of those kept, or on all of them together.

    A parameter beyond the last column, such as an intercept, is kept alone. For compiled code only.

    Parameters
    ----------
    threshold : float
        Largest |correlation| with any parameter kept since `forget_kept`.
    crowding : float
        Largest sum of squared correlations of the parameter, and of each kept one, with the others. Simultaneous exact
        steps decrease a quadratic objective as long as the correlation matrix of the updated parameters has no
        eigenvalue of 2 or more. For P columns whose correlations are essentially random, with squares that sum to
        s = P/n, the largest eigenvalue is about (1 + √s)² (Marčenko and Pastur 1967): so s must stay below 0.17,
        however small each correlation is.

    Returns
    -------
    bool
        Whether it was kept.
    """
    raise NotImplementedError


def forget_kept(dependencies: Dependencies) -> None:
    """Start a new round; for compiled code only."""
    raise NotImplementedError


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _product(a, b):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(nogil=True, cache=True)
def _is_crowded(products, crowds, count, noise, crowding):  # type: ignore[no-untyped-def]
    """Whether one more column is too many, given its correlations `products[:count]` with the `count` columns kept.

    Each squared correlation is reduced by `noise`. The column is too many if the sum of these squares, or the entry of
    `crowds` of a kept column with the new square added, exceeds `crowding`; if not, `crowds` is updated.
    """
    total = 0.0
    for k in range(count):
        square = products[k] * products[k] - noise
        total += square
        if total > crowding or crowds[k] + square > crowding:
            return True
    for k in range(count):
        crowds[k] += products[k] * products[k] - noise
    crowds[count] = total
    return False


@njit(nogil=True, cache=True)
def _keep_dense(dependencies, parameter, threshold, crowding):  # type: ignore[no-untyped-def]
    """Implement `keep_if_safe(dependencies, parameter, threshold, crowding)` for `DenseDependencies`."""
    d = dependencies
    count = d.taken[0]
    if parameter >= len(d.means):
        d.taken[0] = len(d.crowds) if count == 0 else count
        return count == 0
    if count == len(d.crowds):
        return False
    candidate = d.kept[count]
    mean, scale = d.means[parameter], d.scales[parameter]
    for i in range(d.values.shape[0]):
        candidate[i] = (d.values[i, parameter] - mean) * scale
    for k in range(count):
        d.products[k] = _product(candidate, d.kept[k])
        if abs(d.products[k]) > threshold:
            return False
    if _is_crowded(d.products, d.crowds, count, d.noise, crowding):
        return False
    d.taken[0] += 1
    return True


@njit(nogil=True, cache=True)
def _keep_sparse(dependencies, parameter, threshold, crowding):  # type: ignore[no-untyped-def]
    """Implement `keep_if_safe(dependencies, parameter, threshold, crowding)` for `SparseDependencies`."""
    d = dependencies
    count = d.taken[0]
    if parameter >= len(d.means):
        d.taken[0] = len(d.crowds) if count == 0 else count
        return count == 0
    if count == len(d.crowds):
        return False
    d.products[:count] = 0.0
    first, last = d.indptr[parameter], d.indptr[parameter + 1]
    for place in range(first, last):
        value = d.values[place]
        entry = d.heads[d.rows[place]]
        while entry >= 0:
            d.products[d.owners[entry]] += value * d.entries[entry]
            entry = d.following[entry]
    mean, scale = d.means[parameter] * len(d.heads), d.scales[parameter]
    for k in range(count):
        other = d.kept[k]
        d.products[k] = (d.products[k] - mean * d.means[other]) * scale * d.scales[other]
        if abs(d.products[k]) > threshold:
            return False
    if _is_crowded(d.products, d.crowds, count, 0.0, crowding):
        return False
    for place in range(first, last):
        entry, row = d.taken[1], d.rows[place]
        d.owners[entry], d.entries[entry] = count, d.values[place]
        d.following[entry], d.heads[row] = d.heads[row], entry
        d.taken[1] += 1
    d.kept[count] = parameter
    d.taken[0] += 1
    return True


@njit(nogil=True, cache=True)
def _forget_sparse(dependencies):  # type: ignore[no-untyped-def]
    d = dependencies
    for k in range(d.taken[0] if d.taken[1] > 0 else 0):
        for place in range(d.indptr[d.kept[k]], d.indptr[d.kept[k] + 1]):
            d.heads[d.rows[place]] = -1
    d.taken[:] = 0


@overload(keep_if_safe)
def _keep_if_safe(dependencies, parameter, threshold, crowding):  # type: ignore[no-untyped-def]
    if dependencies.instance_class is DenseDependencies:
        return lambda dependencies, parameter, threshold, crowding: _keep_dense(
            dependencies, parameter, threshold, crowding
        )
    if dependencies.instance_class is SparseDependencies:
        return lambda dependencies, parameter, threshold, crowding: _keep_sparse(
            dependencies, parameter, threshold, crowding
        )
    return lambda dependencies, parameter, threshold, crowding: True


@overload(forget_kept)
def _forget_kept(dependencies):  # type: ignore[no-untyped-def]
    if dependencies.instance_class is SparseDependencies:
        return lambda dependencies: _forget_sparse(dependencies)

    def forget(dependencies):  # type: ignore[no-untyped-def]
        dependencies.taken[0] = 0

    return forget
