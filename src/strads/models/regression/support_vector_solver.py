"""Chooses the method for a linear support vector machine by the shape of the data, the loss and the nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.models.kernels.columns import DenseColumns, matrix_of
from strads.models.regression.design import Design
from strads.models.regression.dual_sweeps import SequentialDescent
from strads.models.regression.primal_newton import PrimalNewton
from strads.models.regression.support_vectors import DualDescent, DualProblem, SupportVectorDescent

_MAX_FEATURES = 2000  # of which a Hessian is made
_FACTOR_PER_ENTRY = 1000  # features³ per stored entry of sparse data up to which a Cholesky factor is worth its time
_FINEST_HINGE = 1e-8  # relative gap for which a smoothed hinge is distinct from rounding errors
_DENSE = 0.25  # share of stored entries from which BLAS is faster on an array of all


def start_descent(
    concurrency: int,
    max_iter: int,
    threads: int | None,
    seed: int,
    problem: DualProblem,
    tol: float,
    variables: NDArray[np.float64] | None = None,
) -> SupportVectorDescent:
    """Begin with a problem, at the given variables, clipped to their bounds, or at 0; parameters are as of `LinearSVC`.

    Newton's method for data with few features, on the driver's machine; else coordinate descent on the dual. That is
    sequential on one machine; with a `concurrency` above 1, or on several nodes, it runs on the Dynamic Engine.
    """
    goal = tol * problem.null_objective
    if concurrency == 1:
        X = _of_few_features(problem.design)
        if X is not None and (problem.is_squared or tol >= _FINEST_HINGE):
            return PrimalNewton(problem, X, goal, max_iter, variables)
        if cluster.current().is_local:
            return SequentialDescent(problem, goal, max_iter, seed, variables)
    return DualDescent(problem, goal, concurrency, max_iter, threads, seed, variables)


def _of_few_features(design: Design) -> Any:
    """Return X, of shape (samples, features), as an array or in CSR, if it has few features; else None."""
    features, samples = design.shape
    columns = design.columns
    if features > min(samples, _MAX_FEATURES):
        return None
    if isinstance(columns, DenseColumns):
        return columns.values.T
    stored = len(columns.values)
    if features**3 > _FACTOR_PER_ENTRY * stored:
        return None
    X = matrix_of(columns, features).T
    return X.toarray() if stored >= _DENSE * samples * features else X
