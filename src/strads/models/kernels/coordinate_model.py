"""A linear model for coordinate descent, as `engine.coordinate_rounds` needs it: any columns, loss and penalty.

Rows and coefficients are separate: on several nodes the workers hold the rows, and the coordinator the coefficients.
"""

from math import exp
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from strads.engine.compiling import by_types
from strads.engine.dynamic import coordinate_rounds
from strads.models.kernels.columns import Columns, DenseColumns, column_add, column_dot, column_weighted_square
from strads.models.kernels.datafits import Datafit, Logistic, SquaredNorm, curvature_at, negative_gradient_at
from strads.models.kernels.penalties import Penalty, penalized_step

_STRIP = 2048  # rows that stay in the L1 cache while all columns of a round are added

OFFSET, RATE, TOTAL_WEIGHT, SAMPLES = range(4)  # fields of `scalars`
_BOUND = Logistic.curvature_bound


class Rows(NamedTuple):
    """A set of samples: their entries, their loss, and quantities derived from their predictor z.

    Parameter number p, after those of the p columns, is the intercept: a column of ones.

    Attributes
    ----------
    columns, datafit
        Columns and loss of n samples.
    predictor, gradient, curvature
        Shape (n,): z, u = −∂loss/∂z and ∂²loss/∂z². The latter two are not stored for a squared norm.
    """

    columns: Columns
    datafit: Datafit | SquaredNorm
    predictor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]


class Coefficients(NamedTuple):
    """The coefficients, and the data that their updates need besides the gradients.

    Besides its column, every coefficient may act through one more entry, `sums_j`, on the *offset*, a number shared by
    all samples: the offset changes by `RATE` · sums_j · δ_j, and the pull on coefficient j decreases by
    offset · sums_j. For least squares with an intercept, the offset is the intercept that minimizes the loss for these
    coefficients: then `sums_j` is Σ s_i x_ij, the rate is −1 / Σ s_i, and `squares_j` are those of the centred columns.
    For a support vector machine it is the weight of the constant feature.

    Attributes
    ----------
    penalty
        Penalty of the p coefficients.
    squares, sums, largest
        Shape (p,): Σ s_i x_ij² (see above); as above; largest |x_ij|, for the logistic loss.
    entries
        Shape (p,) or (p + 1,): numbers of stored entries of the columns, and n for the intercept.
    coef
        Shape (p,) or, with the intercept as a parameter, (p + 1,).
    scalars
        Offset, rate, Σ s_i, and the number of entries touched so far.
    """

    penalty: Penalty
    squares: NDArray[np.float64]
    sums: NDArray[np.float64]
    largest: NDArray[np.float64]
    entries: NDArray[np.int64]
    coef: NDArray[np.float64]
    scalars: NDArray[np.float64]


class CoordinateModel(NamedTuple):
    """All rows and the coefficients, on one node."""

    rows: Rows
    coefficients: Coefficients


def make_rows(columns: Columns, datafit: Datafit | SquaredNorm, predictor: NDArray[np.float64]) -> Rows:
    """Return the rows at the given predictor, which is modified in place from now on."""
    rows = Rows(columns, datafit, predictor, *np.zeros((2, len(predictor))))
    fill_rows(rows, 0, len(predictor))
    return rows


@by_types(inline="always")
def refresh_row(rows, i):  # type: ignore[no-untyped-def]
    """Recompute u and the curvature of a sample from its predictor; for compiled code only."""
    if _loss_of(rows) is SquaredNorm:
        return lambda rows, i: None
    if _loss_of(rows).is_quadratic:

        def quadratic(rows, i):  # type: ignore[no-untyped-def]
            rows.gradient[i] = negative_gradient_at(rows.datafit, i, rows.predictor[i])

        return quadratic

    def logistic(rows, i):  # type: ignore[no-untyped-def]
        rows.gradient[i] = negative_gradient_at(rows.datafit, i, rows.predictor[i])
        rows.curvature[i] = curvature_at(rows.datafit, i, rows.predictor[i])

    return logistic


@njit(nogil=True, cache=True)
def fill_rows(rows: Any, first: int, last: int) -> None:
    """Recompute u and the curvature of the samples first..last - 1."""
    for i in range(first, last):
        refresh_row(rows, i)


def _is_coordinate_model(model: Any) -> bool:
    """Whether it is a model of this file: the rounds run others, too."""
    return getattr(model, "instance_class", None) is CoordinateModel


def _loss_of(rows: Any) -> Any:
    return rows.types[rows.fields.index("datafit")].instance_class


def _is_dense(rows: Any) -> bool:
    return rows.types[rows.fields.index("columns")].instance_class is DenseColumns


@by_types()
def column_pull(rows, j):  # type: ignore[no-untyped-def]
    """x_jᵀu; for compiled code only."""
    if _loss_of(rows) is SquaredNorm:
        return lambda rows, j: -column_dot(rows.columns, j, rows.predictor)
    return lambda rows, j: column_dot(rows.columns, j, rows.gradient)


@njit(nogil=True, cache=True)
def pull_of(rows: Any, j: int, count: int) -> float:
    """x_jᵀu, where column `count` is that of the intercept."""
    if j < count:
        return column_pull(rows, j)
    total = 0.0
    for i in range(len(rows.gradient)):
        total += rows.gradient[i]
    return total


@njit(nogil=True, cache=True)
def curvature_of(rows: Any, j: int, count: int) -> float:
    """Σ ∂²loss/∂z_i² x_ij², where column `count` is that of the intercept."""
    if j < count:
        return column_weighted_square(rows.columns, j, rows.curvature)
    total = 0.0
    for i in range(len(rows.curvature)):
        total += rows.curvature[i]
    return total


@njit(nogil=True, cache=True)
def safe_curvature(curvature: float, bound: float, change: float) -> float:
    """Return a curvature whose quadratic model bounds the logistic loss from above for changes of up to this size.

    As |f‴| ≤ f″, f″ grows by at most exp(t) over a distance t of the predictor (Bach 2010), so that a quadratic model
    with the curvature f″ · 2 (exp(t) − t − 1) / t² lies above the loss up to t; f″ ≤ 1/4 gives another.

    Parameters
    ----------
    curvature : float
        Σ f″(z_i) x_ij² at the current predictor.
    bound : float
        Σ x_ij² / 4.
    change : float
        Largest change of a predictor that a step would make, t.
    """
    if change > 30.0:
        return bound
    if change < 1e-3:
        return min(bound, curvature * (1.0 + 0.5 * change))
    return min(bound, curvature * 2.0 * (exp(change) - change - 1.0) / (change * change))


@njit(nogil=True, cache=True)
def quadratic_change(coefficients: Any, j: int, pull: float) -> float:
    """The change of coefficient j that minimizes a quadratic loss with the penalty (Friedman et al. 2007)."""
    value = coefficients.coef[j]
    return penalized_step(coefficients.penalty, j, value, pull, coefficients.squares[j]) - value


@njit(nogil=True, cache=True)
def logistic_change(coefficients: Any, j: int, pull: float, curvature: float) -> float:
    """The change of coefficient j by a step that decreases the logistic loss with the penalty."""
    curvature = max(curvature, 1e-300)  # it underflows far from the optimum, where the bound still holds
    if j == len(coefficients.squares):
        bound = _BOUND * coefficients.scalars[TOTAL_WEIGHT]
        return pull / safe_curvature(curvature, bound, abs(pull / curvature))
    value, penalty = coefficients.coef[j], coefficients.penalty
    change = penalized_step(penalty, j, value, pull, curvature) - value
    safe = safe_curvature(curvature, _BOUND * coefficients.squares[j], abs(change) * coefficients.largest[j])
    return penalized_step(penalty, j, value, pull, safe) - value


@overload(coordinate_rounds.coordinate_change)
def _coordinate_change(model, parameter):  # type: ignore[no-untyped-def]
    if not _is_coordinate_model(model):
        return None
    if _loss_of(model.types[0]).is_quadratic:

        def quadratic(model, parameter):  # type: ignore[no-untyped-def]
            coefficients = model.coefficients
            pull = column_pull(model.rows, parameter)
            pull -= coefficients.scalars[OFFSET] * coefficients.sums[parameter]
            return quadratic_change(coefficients, parameter, pull)

        return quadratic

    def logistic(model, parameter):  # type: ignore[no-untyped-def]
        coefficients = model.coefficients
        count = len(coefficients.squares)
        pull = pull_of(model.rows, parameter, count)
        if (
            parameter < count
            and coefficients.coef[parameter] == 0.0
            and abs(pull) <= coefficients.penalty.l1[parameter]
        ):
            return 0.0
        return logistic_change(coefficients, parameter, pull, curvature_of(model.rows, parameter, count))

    return logistic


@njit(nogil=True, cache=True)
def add_changes(rows: Any, parameters: Any, changes: Any, count: int, first: int, last: int, intercept: int) -> None:
    """Apply changes of parameters to the predictors of the samples first..last - 1, and refresh what depends on them.

    `changes[k]` (float64) is the change of parameter `parameters[k]` (int64), for k below `count`; parameter number
    `intercept` is the intercept. `rows` are the `Rows` of all samples.
    """
    for k in range(count):
        if parameters[k] == intercept and changes[k] != 0.0:
            for i in range(first, last):
                rows.predictor[i] += changes[k]
            fill_rows(rows, first, last)
    add_columns(rows, parameters, changes, count, first, last, intercept)


@by_types()
def add_columns(rows, parameters, changes, count, first, last, intercept):  # type: ignore[no-untyped-def]
    """Like `add_changes`, without the intercept; for compiled code only."""
    if _is_dense(rows):
        return lambda rows, parameters, changes, count, first, last, intercept: _add_dense(
            rows, parameters, changes, count, first, last, intercept
        )
    if _loss_of(rows) is SquaredNorm:
        return lambda rows, parameters, changes, count, first, last, intercept: _add_to_norm(
            rows, parameters, changes, count, first, last, intercept
        )
    return lambda rows, parameters, changes, count, first, last, intercept: _add_sparse(
        rows, parameters, changes, count, first, last, intercept
    )


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _add_scaled(vector, amount, column):  # type: ignore[no-untyped-def]
    for i in range(len(vector)):
        vector[i] += amount * column[i]


@njit(nogil=True, cache=True)
def _add_dense(rows, parameters, changes, count, first, last, intercept):  # type: ignore[no-untyped-def]
    """Like `add_changes` for `rows` with dense columns, strip by strip, without the `intercept`.

    The first `count` of `parameters` and `changes` are applied to the samples `first`..`last` - 1.
    """
    for begin in range(first, last, _STRIP):
        end = min(begin + _STRIP, last)
        changed = False
        for k in range(count):
            if changes[k] != 0.0 and parameters[k] != intercept:
                changed = True
                _add_scaled(rows.predictor[begin:end], changes[k], rows.columns.values[begin:end, parameters[k]])
        if changed:
            fill_rows(rows, begin, end)


@njit(nogil=True, cache=True)
def _first_from(rows, place, end, row):  # type: ignore[no-untyped-def]
    """First of the positions place..end - 1 whose row is at least `row`, or `end`; rows are ascending."""
    while place < end:
        middle = (place + end) >> 1
        if rows[middle] < row:
            place = middle + 1
        else:
            end = middle
    return place


@njit(nogil=True, cache=True)
def _add_sparse(rows, parameters, changes, count, first, last, intercept):  # type: ignore[no-untyped-def]
    """Like `add_changes` for `rows` with sparse columns, without the `intercept`.

    The first `count` of `parameters` and `changes` are applied to the samples `first`..`last` - 1.
    """
    columns, predictor = rows.columns, rows.predictor
    for turn in range(2):  # touched rows are refreshed once all their changes are applied
        for k in range(count):
            if changes[k] == 0.0 or parameters[k] == intercept:
                continue
            place, end = np.int64(columns.indptr[parameters[k]]), np.int64(columns.indptr[parameters[k] + 1])
            if last - first < len(predictor):
                place = _first_from(columns.rows, place, end, first)
                end = _first_from(columns.rows, place, end, last)
            for entry in range(place, end):
                row = columns.rows[entry]
                if turn == 0:
                    predictor[row] += changes[k] * columns.values[entry]
                else:
                    refresh_row(rows, row)


@njit(nogil=True, cache=True)
def _add_to_norm(rows, parameters, changes, count, first, last, intercept):  # type: ignore[no-untyped-def]
    """Like `_add_sparse`, for a squared norm, after which nothing needs refreshing.

    If `first`..`last` - 1 are all of the `rows`, whole columns are added without searching them: `changes[k]` times
    column `parameters[k]`, for k below `count`, except for the `intercept`.
    """
    if last - first < len(rows.predictor):
        _add_sparse(rows, parameters, changes, count, first, last, intercept)
        return
    for k in range(count):
        if changes[k] != 0.0 and parameters[k] != intercept:
            column_add(rows.columns, parameters[k], changes[k], rows.predictor)


@overload(coordinate_rounds.commit_rows)
def _commit_rows(model, parameters, changes, count, thread, threads):  # type: ignore[no-untyped-def]
    def commit(model, parameters, changes, count, thread, threads):  # type: ignore[no-untyped-def]
        rows = len(model.rows.predictor)
        first, last = rows * thread // threads, rows * (thread + 1) // threads
        add_changes(model.rows, parameters, changes, count, first, last, len(model.coefficients.squares))

    return commit if _is_coordinate_model(model) else None


@njit(nogil=True, cache=True)
def change_coefficients(coefficients: Any, parameters: Any, changes: Any, count: int) -> None:
    """Update the coefficients and the offset, and count the entries touched: one read, and another if committed."""
    scalars = coefficients.scalars
    for k in range(count):
        j = parameters[k]
        scalars[SAMPLES] += coefficients.entries[j]
        if changes[k] != 0.0:
            scalars[SAMPLES] += coefficients.entries[j]
            coefficients.coef[j] += changes[k]
            if j < len(coefficients.sums):
                scalars[OFFSET] += scalars[RATE] * coefficients.sums[j] * changes[k]


@overload(coordinate_rounds.commit_parameters)
def _commit_parameters(model, parameters, changes, count):  # type: ignore[no-untyped-def]
    if not _is_coordinate_model(model):
        return None
    return lambda model, parameters, changes, count: change_coefficients(model.coefficients, parameters, changes, count)


@njit(nogil=True, cache=True)
def fill_pulls(rows: Any, parameters: Any, count: int, pulls: Any) -> None:
    """Write x_jᵀu of the given parameters, and the curvature if `pulls` has two columns."""
    for k in range(len(parameters)):
        pulls[k, 0] = pull_of(rows, parameters[k], count)
        if pulls.shape[1] == 2:
            pulls[k, 1] = curvature_of(rows, parameters[k], count)


@njit(nogil=True, cache=True)
def fill_changes(coefficients: Any, parameters: Any, pulls: Any, changes: Any) -> None:
    """Write the changes that result from the output of `fill_pulls`, summed over all rows."""
    for k in range(len(parameters)):
        if pulls.shape[1] == 2:
            changes[k] = logistic_change(coefficients, parameters[k], pulls[k, 0], pulls[k, 1])
        else:
            changes[k] = quadratic_change(coefficients, parameters[k], pulls[k, 0])
