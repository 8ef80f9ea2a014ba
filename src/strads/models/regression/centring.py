"""Shifts columns with means far from 0 before anything is summed, as rounding would leave little of their variance.

The sum of squares of a column with the mean m and the standard deviation σ is n (m² + σ²): of σ²/m² a share of 1e-16 is
rounding error. The intercept compensates for the shift, so the problem stays the same. Other columns are not touched,
and if no mean is far from 0, X is used in place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from strads.models._warnings import warn
from strads.models.arrays import Array

_FAR = 100.0  # means in units of the standard deviation that are worth a copy: 1e-12 of the variance is rounding error
# Rows by which a column is suspected; of a column that is so far, one value in 10,000 is not near the mean.
_SAMPLED = 8
_AGREE = 5  # of these …
_NEAR = 0.25  # … lie so near, relative to the value, to one of …
_REFERENCES = 3  # … the first values
_WORTH_A_WARNING = 1e-8  # of the objective, lost by rounding


@dataclass(frozen=True, eq=False)
class Shift:
    """How far columns were moved towards 0, from which intercepts are converted.

    Attributes
    ----------
    columns : int64 array of shape (k,)
        The columns that were moved.
    amounts : float64 array of shape (k,)
        What was subtracted from each.
    target : float
        What was subtracted from y.
    """

    columns: NDArray[np.int64]
    amounts: Array
    target: float = 0.0

    def inside(self, coef: NDArray[np.floating], intercept: Any) -> Any:
        """Return the intercept for the moved columns; of several outputs if `coef` has several rows."""
        return intercept + coef[..., self.columns].astype(np.float64) @ self.amounts - self.target

    def outside(self, coef: NDArray[np.floating], intercept: Any) -> Any:
        """Return the intercept for the columns as they were given."""
        return intercept - coef[..., self.columns].astype(np.float64) @ self.amounts + self.target

    def rounding(self, coef: NDArray[np.floating], dtype: np.dtype[Any]) -> float:
        """Return the largest error of a predictor that comes from rounding coefficients and intercept to `dtype`."""
        size = np.abs(coef[..., self.columns]).astype(np.float64) @ np.abs(self.amounts) + abs(self.target)
        return float(np.max(size)) * float(np.finfo(dtype).eps)


NO_SHIFT = Shift(np.empty(0, np.int64), np.empty(0))


def centre_far_columns(X: Any, weights: Array) -> tuple[Any, Shift]:
    """Return X with the columns whose mean is far from 0 moved to it, a copy if there are any.

    Parameters
    ----------
    X : ndarray in C or Fortran order, or canonical CSC or CSR matrix; float32 or float64
        Of a sparse matrix only columns without implicit zeros are moved; others spread from 0 to their mean.
    weights : float64 array of shape (samples,)
        Not all 0.
    """
    if len(weights) < _SAMPLED:
        rows = np.flatnonzero(weights)
    else:
        counted = np.flatnonzero(weights) if not weights.all() else np.arange(len(weights))
        rows = counted[np.linspace(0, len(counted) - 1, _SAMPLED).astype(np.int64)]
    if not sp.issparse(X):
        columns, amounts = _far_columns(X, weights, rows)
        if len(columns):
            X = X.copy(order="K")
            X[:, columns] -= amounts.astype(X.dtype)
        return X, Shift(columns, amounts)
    full, places = _full_columns(X)
    if len(full):
        chosen, amounts = _far_columns(X.data[places], weights, rows)
        if len(chosen):
            X = X.copy()
            X.data[places[:, chosen]] -= amounts.astype(X.dtype)
            return X, Shift(full[chosen], amounts)
    return X, NO_SHIFT


def lost_by_error(curvature: float, weight: float, error: float, null_objective: float) -> float:
    """Return the largest share of the objective at w = 0 that an error of each predictor may cost.

    `curvature` is the largest of the loss, `weight` the sum of the samples' weights.
    """
    return 0.5 * curvature * weight * error**2 / null_objective if null_objective > 0.0 else 0.0


def warn_of_rounding(estimator: Any, lost: float, dtype: np.dtype[Any]) -> None:
    """Warn if rounding coefficients to the dtype of X loses more of the objective than `tol`, relative to w = 0."""
    if lost > max(float(estimator.tol), _WORTH_A_WARNING):
        warn(
            f"{type(estimator).__name__}: X or y is so far from 0 that rounding the coefficients to {dtype.name} may "
            f"lose {lost:.2g} of the objective at w = 0, above tol={estimator.tol:g}: subtract the means"
            + (", or give float64" if dtype == np.float32 else ""),
            ConvergenceWarning,
        )


def _far_columns(
    values: NDArray[np.floating], weights: Array, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Array]:
    """Return the columns far from 0, and their means, rounded to the dtype of the values."""
    suspected = np.zeros(values.shape[1], np.bool_)
    _suspect(values, rows, min(_AGREE, len(rows)), suspected)
    columns = np.flatnonzero(suspected)
    means, deviations = means_and_deviations(values, columns, weights)
    with np.errstate(invalid="ignore"):
        far = np.isfinite(means) & (np.abs(means) > _FAR * deviations)
    return columns[far], means[far].astype(values.dtype).astype(np.float64)


def means_and_deviations(
    values: NDArray[np.floating], columns: NDArray[np.int64], weights: Array
) -> tuple[Array, Array]:
    """Return weighted means and standard deviations of dense columns, computed around a value of each."""
    means, deviations = np.empty(len(columns)), np.empty(len(columns))
    _add_up(values, columns, weights, int(np.argmax(weights > 0.0)), means, deviations)
    return means, deviations


def _full_columns(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns without implicit zeros, and the places of their entries, of shape (samples, columns)."""
    samples, features = X.shape
    if X.nnz < samples:
        return np.empty(0, np.int64), np.empty((samples, 0), np.int64)
    if X.format == "csc":
        full = np.flatnonzero(np.diff(X.indptr) == samples)
        return full, X.indptr[full].astype(np.int64) + np.arange(samples)[:, None]
    full = np.flatnonzero(np.bincount(X.indices, minlength=features) == samples)
    is_full = np.zeros(features, np.bool_)
    is_full[full] = True
    return full, np.flatnonzero(is_full[X.indices]).reshape(samples, len(full))  # canonical: sorted within rows


@njit(nogil=True, cache=True)
def _suspect(values, rows, enough, suspected):  # type: ignore[no-untyped-def]
    """Mark columns of which enough of the given rows are near to one of the first of these rows."""
    for j in range(values.shape[1]):
        for first in range(min(_REFERENCES, len(rows))):
            reference = values[rows[first], j]
            near = 0
            for i in rows:
                if abs(values[i, j] - reference) <= _NEAR * abs(reference):
                    near += 1
            if near >= enough and reference != 0.0:
                suspected[j] = True
                break


@njit(nogil=True, cache=True)
def _add_up(values, columns, weights, pivot, means, deviations):  # type: ignore[no-untyped-def]
    """Weighted means and standard deviations, of the differences to the value in the row `pivot`."""
    total = weights.sum()
    for k, j in enumerate(columns):
        centre = float(values[pivot, j])
        first = 0.0
        for i in range(len(weights)):
            first += weights[i] * (values[i, j] - centre)
        first /= total
        second = 0.0
        for i in range(len(weights)):
            rest = values[i, j] - centre - first
            second += weights[i] * rest * rest
        means[k] = centre + first
        deviations[k] = (second / total) ** 0.5
