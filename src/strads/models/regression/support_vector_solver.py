"""Which method learns a linear support vector machine: by the shape of the data, the loss and the nodes."""

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.models.kernels.columns import DenseColumns
from strads.models.regression.dual_sweeps import SequentialDescent
from strads.models.regression.primal_newton import PrimalNewton
from strads.models.regression.support_vectors import DualDescent, DualProblem, SupportVectorDescent

_MOST_FEATURES = 2000  # of which a Hessian is made


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

    Newton's method for dense data with few features and the squared hinge loss, on the driver's machine; else
    coordinate descent on the dual. That is sequential on one machine; with a `concurrency` above 1, or on several
    nodes, it runs on the Dynamic Engine.
    """
    goal = tol * problem.null_objective
    if concurrency == 1:
        features, samples = problem.design.shape
        columns = problem.design.columns
        if problem.is_squared and isinstance(columns, DenseColumns) and features <= min(samples, _MOST_FEATURES):
            return PrimalNewton(problem, columns.values.T, goal, max_iter, variables)
        if cluster.current().is_local:
            return SequentialDescent(problem, goal, max_iter, seed, variables)
    return DualDescent(problem, goal, concurrency, max_iter, threads, seed, variables)
