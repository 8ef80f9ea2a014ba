"""Which method learns a linear support vector machine: by the shape of the data, the loss and the nodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.models.kernels.columns import DenseColumns
from strads.models.regression.dual_sweeps import SequentialDescent
from strads.models.regression.primal_newton import PrimalNewton
from strads.models.regression.support_vectors import DualDescent, DualProblem, SupportVectorDescent

_MOST_FEATURES = 2000  # of which a Hessian is made


@dataclass(frozen=True)
class SupportVectorSolver:
    """Newton's method for dense data with few features and the squared hinge loss, else coordinate descent on the dual.

    The latter is sequential on one machine; with a `concurrency` above 1, or on several nodes, it runs on the Dynamic
    Engine. Newton's method runs on the driver's machine.

    Attributes
    ----------
    concurrency
        Largest number of variables of the dual that are updated at a time.
    max_iter
        Largest number of epochs; an epoch updates as many variables as there are.
    threads
        Threads to use on a single process; None: those of `strads.init`.
    random_state
        Seed of the draws.
    """

    concurrency: int
    max_iter: int
    threads: int | None
    random_state: int

    def start(
        self, problem: DualProblem, tol: float, variables: NDArray[np.float64] | None = None
    ) -> SupportVectorDescent:
        """Begin with a problem, at the given variables, clipped to their bounds, or at 0."""
        goal = tol * problem.null_objective
        if self.concurrency == 1:
            features, samples = problem.design.shape
            columns = problem.design.columns
            if problem.is_squared and isinstance(columns, DenseColumns) and features <= min(samples, _MOST_FEATURES):
                return PrimalNewton(problem, columns.values.T, goal, self.max_iter, variables)
            if cluster.current().is_local:
                return SequentialDescent(problem, goal, self.max_iter, self.random_state, variables)
        options = self.concurrency, self.max_iter, self.threads, self.random_state
        return DualDescent(problem, goal, *options, variables)
