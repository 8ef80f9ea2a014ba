"""Least squares with an ℓ2 penalty or none, solved directly by scikit-learn, with the duality gap as certificate."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, Ridge

from strads.models._iterative import Epoch, Solver
from strads.models.arrays import Array

_PRECISION = 1e-12  # of iterative solvers


@dataclass(frozen=True, eq=False)
class RidgeMinimum:
    """The solution."""

    coef: Array  # of each feature
    intercept: float  # 0 if none is fitted
    gap: float  # duality gap, in the unit of records; infinite without a penalty


class RidgeFit(Solver):
    """Minimizes ½ Σ_i s_i (y_i − x_i·w − b)² + l2/2 ‖w‖², in a single epoch.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (samples, features)
    y, weights : float64 arrays of shape (samples,)
        Targets, and s.
    l2 : float
        0 or above.
    fit_intercept, positive : bool
        Whether b is fitted, and whether w ≥ 0.
    goal : float
        Relative duality gap to reach; without a penalty, of the gradient.
    unit : float
        Factor of objectives in records.
    """

    checkpointed = ("_coef", "_intercept", "_gap", "_reached")

    def __init__(
        self,
        X: Any,
        y: Array,
        weights: Array,
        l2: float,
        *,
        fit_intercept: bool,
        positive: bool,
        goal: float,
        unit: float,
    ):
        self._X, self._y, self._weights, self._l2 = X, y, weights, l2
        self._fit_intercept, self._positive, self._goal, self._unit = fit_intercept, positive, goal, unit
        self._coef, self._intercept = np.zeros(X.shape[1]), 0.0
        self._gap = self._reached = np.inf

    def run_epoch(self, number: int) -> Epoch:
        """Solve the problem."""
        X = self._X.astype(np.float64)
        shared = {"fit_intercept": self._fit_intercept, "positive": self._positive}
        if self._positive and sp.issparse(X) and not self._l2:
            X = X.toarray()  # as SciPy's solver needs it
        found = Ridge(self._l2, tol=_PRECISION, **shared) if self._l2 else LinearRegression(tol=_PRECISION, **shared)
        found.fit(X, self._y, self._weights)
        self._coef, self._intercept = np.ravel(found.coef_), float(found.intercept_)
        residual = self._y - np.asarray(X @ self._coef).ravel() - self._intercept
        objective = 0.5 * float(self._weights @ residual**2) + 0.5 * self._l2 * float(self._coef @ self._coef)
        self._certify(X, residual, objective)
        figures = {
            "gap": self._gap * self._unit,
            "relative_gap" if self._l2 else "relative_gradient": self._reached,
            "active": int(np.count_nonzero(self._coef)),
        }
        return Epoch(int(X.nnz if sp.issparse(X) else X.size), objective * self._unit, figures, is_last=True)

    def _certify(self, X: Any, residual: Array, objective: float) -> None:
        """Find the gap: the best multiple of the residuals is a dual solution."""
        weights = self._weights
        mean = float(weights @ self._y) / float(weights.sum()) if self._fit_intercept else 0.0
        centred = self._y - mean
        null = 0.5 * float(weights @ centred**2)
        u = weights * residual
        pull = np.asarray(X.T @ u).ravel()
        pull = np.maximum(pull, 0.0) if self._positive else pull
        if not self._l2:
            start = np.abs(np.asarray(X.T @ (weights * centred))).max(initial=0.0)
            stays = pull if not self._positive else np.where(self._coef > 0.0, np.asarray(X.T @ u).ravel(), pull)
            self._reached = float(np.abs(stays).max(initial=0.0) / start) if start > 0.0 else 0.0
            return
        response = float(u @ centred)
        bend = float(u @ residual) + float(pull @ pull) / self._l2
        dual = 0.5 * response**2 / bend if response > 0.0 and bend > 0.0 else 0.0
        self._gap = max(objective - dual, 0.0)  # negative only by rounding
        self._reached = self._gap / null if null > 0.0 else 0.0

    def learnt(self) -> RidgeMinimum:
        """Return the solution."""
        return RidgeMinimum(self._coef, self._intercept, self._gap * self._unit)

    def verdict(self) -> dict[str, Any]:
        """Return whether the goal was reached, and what was."""
        return {"is_converged": self._reached <= self._goal, "reached": self._reached}
