"""Fit an estimator by a softmax of linear functions: any number of classes, or two."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.checkpoints import learned_data
from strads.models._blas_threads import one_blas_thread
from strads.models._iterative import OnIteration
from strads.models.multinomial.class_sweeps import ClassSweeps
from strads.models.multinomial.lbfgs import PreconditionedLbfgs
from strads.models.multinomial.problem import RidgeProblem
from strads.models.multinomial.row_blocks import RowBlocks
from strads.models.regression.centring import NO_SHIFT, centre_far_columns, warn_of_rounding
from strads.models.regression.linear_estimator import LinearEstimator


def fit_softmax(
    model: LinearEstimator,
    X: Any,
    codes: NDArray[np.integer],
    weights: NDArray[np.float64],
    *,
    ridge: float,
    l1: float = 0.0,
    first: tuple[NDArray[Any], NDArray[Any]] | None = None,
    on_iteration: OnIteration | None,
    start: float,
) -> None:
    """Train a model, whose `_publish` gets a `Minimum`.

    Parameters
    ----------
    model
        Has `classes_`, `fit_intercept`, `tol`, `max_iter`, and `coef_` when it has been trained.
    X : array in C order or CSR matrix of shape (n_samples, n_features)
    codes, weights : arrays of shape (n_samples,)
        The class of each sample, from 0, of which each occurs, and the factor of its loss.
    ridge
        That of `RidgeProblem`.
    l1
        Factor of the ℓ1 norm of the coefficients in the penalty.
    first
        Coefficients of shape (n_classes, n_features) and intercepts of shape (n_classes,) to begin from, instead of 0.
    start
        When fitting began, as `time.perf_counter()`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If `tol` is not reached.
    """
    settings: Any = model
    X, shift = centre_far_columns(X, weights) if settings.fit_intercept else (X, NO_SHIFT)
    with one_blas_thread():
        blocks = RowBlocks(X, codes.astype(np.int32), weights, int(codes.max()) + 1, model._threads)
        begin = None
        if first is not None:
            intercepts = shift.inside(*first) if settings.fit_intercept else np.zeros(len(first[1]))
            begin = np.vstack([first[0].T, intercepts]).astype(np.float64)
        problem = RidgeProblem(blocks, ridge, bool(settings.fit_intercept), shift, begin)
        tol = float(settings.tol)
        with ClassSweeps(problem, l1, tol) if l1 else PreconditionedLbfgs(problem, tol) as solver:
            data = learned_data(X, codes, weights, settings.classes_)
            stopped = model._train(solver, on_iteration, seconds=time.perf_counter() - start, data=data)
    warn_of_rounding(model, problem.rounding(settings.coef_), X.dtype)
    has_gap = ridge > 0.0 or l1 > 0.0
    what = "relative duality gap" if has_gap else "gradient, relative to that at the start,"
    advice = f"increase max_iter={model.max_iter} or tol, scale the features, or penalize more"
    model._warn_unless_converged(stopped, advice, what)
