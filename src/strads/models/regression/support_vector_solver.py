"""Which method learns a linear support vector machine: by the shape of the data, the loss and the nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.models.kernels.columns import DenseColumns
from strads.models.regression.dual_sweeps import SequentialDescent
from strads.models.regression.primal_newton import PrimalNewton
from strads.models.regression.support_vectors import DualCoordinateDescent, DualProblem, SupportVectorDescent

_MOST_FEATURES = 2000  # of which a Hessian is made


@dataclass(frozen=True)
class SupportVectorSolver:
    """Newton's method for dense data with few features and the squared hinge loss, else coordinate descent on the dual.

    The latter is sequential on one machine; with a `concurrency` above 1, or on several nodes, it runs on the Dynamic
    Engine. Newton's method runs on the driver's machine.

    Attributes
    ----------
    dual : DualCoordinateDescent
        Options of the dual methods, and the seed.
    """

    dual: DualCoordinateDescent

    def start(
        self, problem: DualProblem, tol: float, variables: NDArray[np.float64] | None = None
    ) -> SupportVectorDescent:
        """Begin with a problem, at the given variables, clipped to their bounds, or at 0."""
        dual, goal = self.dual, tol * problem.null_objective
        if dual.concurrency > 1:
            return dual.start(problem, tol, variables)
        features, samples = problem.design.shape
        columns = problem.design.columns
        if problem.is_squared and isinstance(columns, DenseColumns) and features <= min(samples, _MOST_FEATURES):
            return PrimalNewton(problem, columns.values.T, goal, dual.max_iter, variables)
        if cluster.current().is_local:
            return SequentialDescent(problem, goal, dual.max_iter, dual.random_state, variables)
        return dual.start(problem, tol, variables)
