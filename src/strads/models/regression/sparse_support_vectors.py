"""Linear support vector machines with the penalty ℓ1 and the squared hinge loss: working sets on the primal."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from strads.cluster import ThreadTeam
from strads.models.arrays import Array
from strads.models.kernels.datafits import SquaredHinge
from strads.models.regression.design import Design
from strads.models.regression.inputs import as_design
from strads.models.regression.problem import Problem
from strads.models.regression.solver import Progress
from strads.models.regression.support_vectors import DualSolution, SupportVectorDescent
from strads.models.regression.working_set import WorkingSet


def with_constant(X: Any, constant: float, team: ThreadTeam) -> Design:
    """Return X, of shape (samples, features), with a constant feature at the end; without one if that is 0."""
    if constant:
        column = np.full((X.shape[0], 1), constant, X.dtype)
        X = sp.hstack([X, sp.csc_array(column)], format="csc") if sp.issparse(X) else np.hstack([X, column])
    return as_design(sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X), team)


def sparse_problem(design: Design, labels: Array, strengths: Array) -> Problem:
    """Return min over w of ‖w‖₁ + Σ C_i max(0, 1 − y_i x_iᵀw)²."""
    features = design.shape[1]
    return Problem(design, SquaredHinge(labels, strengths), np.ones(features), np.zeros(features), fit_intercept=False)


class SparseDescent(SupportVectorDescent):
    """Such a problem being solved; in solutions, `variables` are the weights of all features, also the constant one.

    Parameters
    ----------
    constant : float
        Value of the constant feature, the last one; 0 if there is none.
    max_iter : int
        Largest number of iterations.
    tol : float
        Duality gap to reach, relative to the objective at w = 0.
    variables : array of shape (features,), optional
        Weights to start from.
    """

    checkpointed = ("_descent", "_iteration")

    def __init__(self, constant: float, max_iter: int, problem: Problem, tol: float, variables: Array | None):
        self._constant, self._max_iter, self._iteration = constant, max_iter, 0
        self._descent = WorkingSet().start(problem, tol * problem.null_objective, variables)

    def advance(self, iteration: int) -> Progress:
        """Solve on a working set."""
        self._iteration = iteration
        return self._descent.advance(iteration)

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached, nothing improves any more, or all iterations are over."""
        return self._descent.solution().converged or self._descent.is_stuck or self._iteration >= self._max_iter

    def solution(self) -> DualSolution:
        """Return the weights that were measured last."""
        found, constant = self._descent.solution(), self._constant
        coef = found.coef[:-1] if constant else found.coef
        intercept = constant * float(found.coef[-1]) if constant else 0.0
        return DualSolution(coef.copy(), intercept, found.progress, found.null_objective, found.goal, found.coef.copy())

    def close(self) -> None:
        """Release everything."""
        self._descent.close()
