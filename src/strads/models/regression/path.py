"""Regularization paths: a sequence of solutions, each warm-started at the previous one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from strads.checkpoints import preparing
from strads.errors import ArgumentError, InputError
from strads.models._parameters import as_numbers, check_share, check_whole_number
from strads.models._stopping import wants_to_stop
from strads.models.arrays import Array
from strads.models.lasso import ElasticNet, Lasso
from strads.models.logistic_regression import LogisticRegression
from strads.models.regression.fitting import Regression, strengths_down
from strads.models.regression.inputs import (
    as_class_factors,
    as_classes,
    as_local_design,
    as_rows,
    as_sample_weights,
    count_classes,
)
from strads.models.regression.linear_model import PenalizedLinearModel

OnStep = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Solutions for many penalty strengths; also a sequence of `values, coefs, dual_gaps`.

    Attributes
    ----------
    values : ndarray of shape (steps,), float64
        alpha in decreasing order, or C in increasing order: the penalty gets weaker.
    sparse_coefs : csc_array of shape (n_features, steps), float64
        The coefficients of each step in a column.
    intercepts : ndarray of shape (steps,), float64
        0 without `fit_intercept`.
    dual_gaps : ndarray of shape (steps,), float64
        Upper bound on the suboptimality of each step's objective.
    n_iters : ndarray of shape (steps,), int64
        Number of iterations of each step.
    """

    values: Array
    sparse_coefs: scipy.sparse.csc_array
    intercepts: Array
    dual_gaps: Array
    n_iters: NDArray[np.int64]

    @property
    def coefs(self) -> Array:
        """The coefficients as a dense array of shape (n_features, steps)."""
        return np.asarray(self.sparse_coefs.toarray())

    def __iter__(self) -> Iterator[Array]:
        return iter((self.values, self.coefs, self.dual_gaps))

    def __getitem__(self, place: int) -> Array:
        return tuple(self)[place]

    def __len__(self) -> int:
        return 3


def lasso_path(
    X: Any,
    y: ArrayLike,
    *,
    eps: float = 1e-3,
    n_alphas: int = 100,
    alphas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    fit_intercept: bool = False,
    on_step: OnStep | None = None,
    **parameters: Any,
) -> RegularizationPath:
    """Fit `Lasso`, or with `l1_ratio` `ElasticNet`, for many values of alpha.

    Parameters
    ----------
    X, y, sample_weight
        As for `Lasso.fit`.
    eps : float, default 1e-3
        The smallest alpha, relative to the largest.
    n_alphas : int, default 100
        Number of values, evenly spaced on a log scale, from the smallest alpha at which all coefficients are 0.
    alphas : array of shape (steps,), optional
        Explicit values instead; used in decreasing order.
    fit_intercept : bool, default False
        As in `Lasso`; False by default as in scikit-learn's `lasso_path`, for centred X and y.
    on_step : callable, optional
        Called after each step with the estimator, fitted with this step's value; the path ends when it returns True.
    **parameters
        Further parameters of `Lasso` or `ElasticNet`: `l1_ratio`, `standardize`, `tol`, `solver`, ….

    Returns
    -------
    RegularizationPath
        Can be unpacked into alphas, coefs of shape (n_features, steps), and dual gaps.

    Raises
    ------
    ArgumentError, InputError
        For invalid parameters or data; the message names the first.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        For each alpha at which the gap is above `tol` after `max_iter` iterations.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.5], [2.0, -1.0], [-3.0, 0.5]])
    >>> alphas, coefs, dual_gaps = lasso_path(X, [1.0, 2.0, -3.0], n_alphas=3)
    >>> coefs.round(3)
    array([[0.   , 0.968, 0.999],
           [0.   , 0.   , 0.   ]])
    """
    model = _least_squares(fit_intercept=fit_intercept, **parameters)
    return _follow(model, X, y, sample_weight, _Grid(alphas, eps, n_alphas), on_step)


def logistic_path(
    X: Any,
    y: ArrayLike,
    *,
    eps: float = 1e-3,
    n_Cs: int = 100,
    Cs: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    on_step: OnStep | None = None,
    **parameters: Any,
) -> RegularizationPath:
    """Fit `LogisticRegression` for many values of C, as `lasso_path` fits `Lasso` for many values of alpha.

    Parameters
    ----------
    X, y, sample_weight
        As for `LogisticRegression.fit`.
    eps, n_Cs, Cs, on_step
        As `eps`, `n_alphas`, `alphas` and `on_step` of `lasso_path`, but in increasing order: from the largest C at
        which all coefficients are 0, of which `eps` is the ratio to the largest value.
    **parameters
        Further parameters of `LogisticRegression`: `penalty`, `l1_ratio`, `class_weight`, `standardize`, `tol`, ….

    Returns
    -------
    RegularizationPath
        Can be unpacked into Cs, coefs of shape (n_features, steps), and dual gaps.
    """
    return _follow(LogisticRegression(**parameters), X, y, sample_weight, _Grid(Cs, eps, n_Cs), on_step)


def alpha_max(X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **parameters: Any) -> float:
    """Return the smallest alpha at which all coefficients of `Lasso(**parameters)` are 0; at least 0.

    With `l1_ratio` among the parameters, that of `ElasticNet(**parameters)`.
    """
    return _critical(_least_squares(**parameters), X, y, sample_weight)


def l1_min_c(X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **parameters: Any) -> float:
    """Return the C above which `LogisticRegression(**parameters)` has nonzero coefficients; may be infinity."""
    model = LogisticRegression(**parameters)
    if count_classes(y) > 2:
        return _critical_of_classes(model, X, y, sample_weight)
    return _critical(model, X, y, sample_weight)


def _least_squares(**parameters: Any) -> ElasticNet:
    return ElasticNet(**parameters) if "l1_ratio" in parameters else Lasso(**parameters)


def _critical(model: PenalizedLinearModel, X: Any, y: Any, sample_weight: Any) -> float:
    X, regression = model._prepare(X, y, sample_weight, as_local_design)
    largest = _largest_strength(model, X, regression)
    return model._parameter(largest, regression) if largest > 0.0 or isinstance(model, ElasticNet) else np.inf


def _critical_of_classes(model: LogisticRegression, X: Any, y: Any, sample_weight: Any) -> float:
    """Return the C at which the steepest slope of the loss at W = 0, with the best intercepts, is the penalty's."""
    model._check_parameters()
    X = as_rows(model, X)
    classes, codes = as_classes(y, X.shape[0])
    weights = as_sample_weights(sample_weight, X.shape[0])
    totals = np.bincount(codes, weights, len(classes)).astype(np.float64)
    weights = weights * as_class_factors(model.class_weight, classes, totals)[codes]
    shares = np.full(len(classes), 1.0 / len(classes))
    if model.fit_intercept:
        shares = np.bincount(codes, weights, len(classes)) / weights.sum()
    slopes = X.T @ ((np.eye(len(classes))[codes] - shares) * weights[:, None])
    steepest = float(np.abs(slopes).max())
    return float(model.l1_ratio) / steepest if steepest > 0.0 else np.inf


def _largest_strength(model: PenalizedLinearModel, X: Any, regression: Regression) -> float:
    with model._explained(X):
        largest = regression.largest_strength()
        if not np.isfinite(largest):
            raise InputError("X or y: sums of products overflow: scale the columns")
    return largest


@dataclass(frozen=True)
class _Grid:
    """The values of alpha or C: explicit, or a number of evenly spaced ones."""

    values: ArrayLike | None
    eps: float
    count: int

    def check(self, name: str) -> None:
        if self.values is None:
            check_share("eps", self.eps, or_one=True)
            check_whole_number(f"n_{name}s", self.count)
            return
        values = as_numbers(f"{name}s", self.values)
        bad = ~(np.isfinite(values) & (values > 0.0))
        if bad.any():
            raise ArgumentError(f"{name}s has {values[np.argmax(bad)]:g}: give positive numbers")

    def strengths(self, model: PenalizedLinearModel, regression: Regression, largest: float) -> Array:
        """Strengths of the penalty, in decreasing order."""
        if self.values is None:
            return strengths_down(largest, self.eps, int(self.count))
        given = np.asarray(self.values, dtype=np.float64)
        return -np.sort([-model._strength_of(value, regression) for value in given])


def _follow(
    model: PenalizedLinearModel, X: Any, y: Any, sample_weight: Any, grid: _Grid, on_step: OnStep | None
) -> RegularizationPath:
    name = model._penalized_by
    grid.check(name)
    X, regression = model._prepare(X, y, sample_weight)
    strengths = grid.strengths(model, regression, _largest_strength(model, X, regression))
    start: tuple[Array | None, float] = None, 0.0
    steps: list[tuple[float, float, float, int]] = []
    columns = []
    for strength in strengths:
        setattr(model, name, model._parameter(strength, regression))
        with preparing():  # the path as a whole runs again after a restart
            solution = model._solve(X, regression, strength, start).solution()
        start = solution.coef, solution.intercept
        columns.append(scipy.sparse.csc_array(solution.coef.reshape(-1, 1)))
        steps.append(
            (getattr(model, name), regression.intercept(solution), model.dual_gap_, int(np.max(model.n_iter_)))
        )
        if on_step is not None and wants_to_stop(on_step(model)):
            break
    coefs = scipy.sparse.csc_array(scipy.sparse.hstack(columns, format="csc"))
    values, intercepts, gaps, iterations = (np.array(each) for each in zip(*steps, strict=True))
    return RegularizationPath(values, coefs, intercepts, gaps, iterations)
