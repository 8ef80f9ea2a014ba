"""Losses with an ℓ2 penalty or none, minimized by scikit-learn, with a certificate."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.linear_model import LinearRegression, Ridge

from strads.models._iterative import Epoch, Solver
from strads.models.arrays import Array
from strads.models.kernels.datafits import Datafit, fill_negative_gradient, total_loss

_PRECISION = 1e-12  # of iterative solvers
_MAX_FEATURES = 2000  # of which a Hessian is made
_LARGEST = 600.0  # of predictors whose exponentials are finite, with room for their sums


@dataclass(frozen=True, eq=False)
class RidgeMinimum:
    """The solution."""

    coef: Array  # of each feature
    intercept: float  # 0 if none is fitted
    gap: float  # duality gap, in the unit of records; infinite without a penalty


class RidgeFit(Solver):
    """Minimizes Σ_i s_i f(y_i, x_i·w + b) + l2/2 ‖w‖², in a single epoch.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (samples, features)
    loss : Datafit
        With y and s.
    l2 : float
        0 or above.
    fit_intercept, positive : bool
        Whether b is fitted, and whether w ≥ 0.
    goal : float
        Relative duality gap to reach; without a penalty, of the gradient.
    max_iter : int
        Of an iterative solver.
    """

    checkpointed = ("_coef", "_intercept", "_gap", "_reached", "_null")

    def __init__(
        self, X: Any, loss: Datafit, l2: float, *, fit_intercept: bool, positive: bool, goal: float, max_iter: int
    ):
        self._X, self._loss, self._l2, self._fit_intercept, self._positive = X, loss, l2, fit_intercept, positive
        self._goal, self._max_iter = goal, max_iter
        self._total = float(loss.weights.sum())
        self._coef, self._intercept = np.zeros(X.shape[1]), 0.0
        self._gap = self._reached = self._null = np.inf

    def run_epoch(self, number: int) -> Epoch:
        """Solve the problem; without a penalty in units of the columns' own, on which the solution does not depend."""
        X, units = self._X.astype(np.float64, copy=False), np.ones(self._X.shape[1])
        if not self._l2:
            squares = X.multiply(X) if sp.issparse(X) else np.square(X)
            units = np.sqrt(np.asarray(self._loss.weights @ squares).ravel() / self._total)
            units[units == 0.0] = 1.0
            X = X @ sp.diags_array(1.0 / units) if sp.issparse(X) else X / units
        objective = self._minimize(X)
        self._coef = self._coef / units
        figures = {
            "gap": self._gap / self._total,
            "relative_gap" if self._l2 else "relative_gradient": self._reached,
            "active": int(np.count_nonzero(self._coef)),
        }
        return Epoch(int(X.nnz if sp.issparse(X) else X.size), objective / self._total, figures, is_last=True)

    @abstractmethod
    def _minimize(self, X: Any) -> float:
        """Find the coefficients, their gap and what is compared with the goal; returns the objective."""

    def learnt(self) -> RidgeMinimum:
        """Return the solution."""
        return RidgeMinimum(self._coef, self._intercept, self._gap / self._total)

    def verdict(self) -> dict[str, Any]:
        """Return whether the goal was reached, and what was."""
        return {"converged": self._reached <= self._goal, "reached": self._reached, "null_objective": self._null}


class LeastSquaresRidgeFit(RidgeFit):
    """Least squares, f(y, z) = (y − z)² / 2; solved directly."""

    def _minimize(self, X: Any) -> float:
        shared = {"fit_intercept": self._fit_intercept, "positive": self._positive}
        if self._positive and sp.issparse(X) and not self._l2:
            X = X.toarray()  # as SciPy's solver needs it
        found = Ridge(self._l2, tol=_PRECISION, **shared) if self._l2 else LinearRegression(tol=_PRECISION, **shared)
        y, weights = self._loss.y, self._loss.weights
        found.fit(X, y, weights)
        self._coef, self._intercept = np.ravel(found.coef_), float(found.intercept_)
        residual = y - np.asarray(X @ self._coef).ravel() - self._intercept
        objective = 0.5 * float(weights @ residual**2) + 0.5 * self._l2 * float(self._coef @ self._coef)
        self._certify(X, residual, objective)
        return objective

    def _certify(self, X: Any, residual: Array, objective: float) -> None:
        """Find the gap: the best multiple of the residuals is a dual solution."""
        y, weights = self._loss.y, self._loss.weights
        mean = float(weights @ y) / float(weights.sum()) if self._fit_intercept else 0.0
        centred = y - mean
        self._null = null = 0.5 * float(weights @ centred**2)
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


class PoissonRidgeFit(RidgeFit):
    """The loss of `Poisson`: by Newton's method, or by L-BFGS with more than 2,000 features. w may have any sign."""

    def _minimize(self, X: Any) -> float:
        y, weights = self._loss.y, self._loss.weights
        constant = float(np.log(weights @ y / self._total)) if self._fit_intercept else 0.0
        null = np.full(len(y), constant)
        start, worst = self._gradient(X, null, np.zeros(X.shape[1])), float(total_loss(self._loss, null))
        self._null = worst
        largest = float(np.abs(start).max(initial=0.0))
        enough = self._goal * largest
        if self._l2:  # the objective is within ‖∇‖²/(2 l2) of the minimum
            enough = np.sqrt(2.0 * self._l2 * self._goal * worst / max(1, X.shape[1]))
        found = sklearn.linear_model.PoissonRegressor(
            alpha=self._l2 / self._total,
            fit_intercept=self._fit_intercept,
            solver="newton-cholesky" if X.shape[1] <= _MAX_FEATURES else "lbfgs",
            max_iter=self._max_iter,
            tol=max(0.1 * enough / self._total, 1e-300),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the certificate tells
            found.fit(X, y, weights)
        self._coef = np.ravel(found.coef_)
        z = np.asarray(X @ self._coef).ravel()
        if self._fit_intercept:  # the best one for these coefficients, so that the gradient is theirs alone
            top = float(z.max(initial=0.0))
            self._intercept = float(np.log(weights @ y) - np.log(weights @ np.exp(z - top)) - top)
        z = np.minimum(z + self._intercept, _LARGEST)
        slope = self._gradient(X, z, self._coef)
        objective = float(total_loss(self._loss, z)) + 0.5 * self._l2 * float(self._coef @ self._coef)
        if self._l2:
            self._gap = 0.5 * float(slope @ slope) / self._l2
            self._reached = self._gap / worst if worst > 0.0 else 0.0
        else:
            self._reached = float(np.abs(slope).max(initial=0.0)) / largest if largest > 0.0 else 0.0
        return objective

    def _gradient(self, X: Any, z: Array, coef: Array) -> Array:
        """Return the gradient of the objective with respect to the coefficients."""
        pull = np.empty(len(z))
        fill_negative_gradient(self._loss, z, pull)
        return self._l2 * coef - np.asarray(X.T @ pull).ravel()
