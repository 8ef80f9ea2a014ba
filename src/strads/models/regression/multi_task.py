"""The descent of linear models with several outputs, which share the features that count.

Minimizes ½ Σ_i s_i ‖y_i − x_i W − b‖² + l1 Σ_j ‖W_j‖ + l2/2 ‖W‖². As in `WorkingSet`, passes over all columns find the
duality gap and the columns that violate the optimality conditions most; on these, `block_descent` sweeps, with
Anderson's extrapolation of the last iterates (Bertrand and Massias 2021).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from strads.models._iterative import Epoch, Solver
from strads.models.arrays import Array
from strads.models.kernels import block_descent
from strads.models.kernels.datafits import highest_dual
from strads.models.regression.solver import Stagnation

_FIRST_SET = 100  # features of the first working set
_GROWTH = 2  # ratio of a working set to the support
_AT_ONCE = 512  # columns of a pass over all
_SWEEPS = 5  # between two evaluations of the gap of a working set; so many iterates are extrapolated
_MAX_LOOKS = 100  # most evaluations of the gap
_SHARE_OF_GAP = 0.1  # target gap over a working set, relative to that over all columns


@dataclass(frozen=True, eq=False)
class MultiTaskMinimum:
    """What was learnt so far."""

    coef: Array  # outputs × features; a view that the next epoch changes
    intercept: Array  # of each output
    gap: float  # duality gap, divided by Σ s_i


class MultiTaskDescent(Solver):
    """Block coordinate descent over working sets.

    Parameters
    ----------
    X : ndarray or CSC matrix of shape (samples, features)
        Finite numbers.
    Y : float64 array of shape (samples, outputs)
    weights : float64 array of shape (samples,)
        s.
    l1, l2 : float
        Strengths of the penalties.
    goal : float
        Relative duality gap to reach.
    start : array of shape (features, outputs), optional
    """

    checkpointed = ("_W", "_size", "_samples", "_pulls", "_gap", "_objective", "_stagnation", "_is_evaluated")
    is_intact = False  # only between epochs

    def __init__(
        self,
        X: Any,
        Y: Array,
        weights: Array,
        l1: float,
        l2: float,
        *,
        fit_intercept: bool,
        goal: float,
        start: Array | None = None,
    ):
        self._X, self._l1, self._l2, self._goal = X, l1, l2, goal
        features = X.shape[1]
        self._total, self._roots, self._fit_intercept = float(weights.sum()), np.sqrt(weights), fit_intercept
        self._y_means = weights @ Y / self._total if fit_intercept else np.zeros(Y.shape[1])
        self._Y = np.ascontiguousarray(((Y - self._y_means) * self._roots[:, None]).T)
        self._means = np.asarray(X.T @ weights).ravel() / self._total if fit_intercept else np.zeros(features)
        self._null = 0.5 * float(np.vdot(self._Y, self._Y))
        self._W = np.zeros((features, Y.shape[1])) if start is None else np.array(start, np.float64)
        self._size = min(_FIRST_SET, features)
        self._samples = 0
        self._pulls = np.zeros(features)
        self._gap = self._objective = np.inf
        self._stagnation = Stagnation()
        self._is_evaluated = False

    def run_epoch(self, number: int) -> Epoch:
        """Solve on a working set, then look at all columns; the first epoch only looks."""
        if self._is_evaluated:
            self._improve()
        self._look()
        self._is_evaluated = True
        self._stagnation.see(self._objective, self._gap)
        figures = {
            "gap": self._gap / self._total,
            "relative_gap": self._relative_gap,
            "active": int(np.count_nonzero(self._W.any(1))),
        }
        is_last = self._relative_gap <= self._goal or self._stagnation.is_over
        return Epoch(self._samples, self._objective / self._total, figures, is_last=is_last)

    @property
    def _relative_gap(self) -> float:
        return self._gap / self._null if self._null > 0.0 else 0.0

    def learnt(self) -> MultiTaskMinimum:
        """Return the coefficients, which the next epoch changes."""
        intercept = self._y_means - self._means @ self._W
        return MultiTaskMinimum(self._W.T, intercept, self._gap / self._total)

    def verdict(self) -> dict[str, Any]:
        """Return whether the goal was reached, the relative gap, and the objective at W = 0."""
        reached = self._relative_gap
        return {"converged": reached <= self._goal, "reached": reached, "null_objective": self._null}

    def _look(self) -> None:
        """Find the objective, the gap, and how strongly each column is pulled away from 0."""
        residuals, W = self._residuals(), self._W
        pulls = np.empty(len(W))
        for begin in range(0, len(W), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            columns = self._X[:, part].T
            weighted = (residuals * self._roots).T
            correlations = (columns if sp.issparse(columns) else columns.astype(np.float64)) @ weighted
            pulls[part] = np.linalg.norm(correlations - self._l2 * W[part], axis=1)
        self._samples += self._X.nnz if sp.issparse(self._X) else self._X.size
        self._pulls = pulls
        self._objective, self._gap = self._objective_and_gap(residuals, W, float(pulls.max(initial=0.0)))

    def _residuals(self) -> Array:
        """Return Y − X W for centred columns, times the roots of weights, of shape (outputs, samples).

        No rounding adds up in them.
        """
        support = np.flatnonzero(self._W.any(1))
        W = self._W[support]
        X = self._X[:, support]
        fitted = np.asarray(X @ W if sp.issparse(X) else X.astype(np.float64) @ W) - self._means[support] @ W
        residuals = np.ascontiguousarray(self._Y - fitted.T * self._roots)
        if self._fit_intercept:
            residuals -= (residuals @ self._roots / self._total)[:, None] * self._roots
        return residuals

    def _objective_and_gap(self, residuals: Array, W: Array, pull: float) -> tuple[float, float]:
        """Return both for coefficients W of some columns; `pull` is the largest of theirs."""
        square, ridge = float(np.vdot(residuals, residuals)), self._l2 * float(np.vdot(W, W))
        norms = float(np.linalg.norm(W, axis=1).sum())
        objective = 0.5 * square + self._l1 * norms + 0.5 * ridge
        response = float(np.vdot(residuals, self._Y))
        dual = highest_dual(response, max(square + ridge, 1e-300), max(pull / self._l1, 1e-300))
        return objective, max(objective - dual, 0.0)  # negative only by rounding

    def _improve(self) -> None:
        active = self._W.any(1)
        self._size = min(max(self._size, _GROWTH * int(active.sum())), len(self._W))
        wanted = np.where(active, np.inf, self._pulls)
        chosen = np.sort(np.argpartition(-wanted, self._size - 1)[: self._size])
        columns = _Columns(self._X[:, chosen], self._means[chosen], self._roots)
        W, residuals = self._W[chosen], self._residuals()
        enough = max(0.3 * self._goal * self._null, _SHARE_OF_GAP * self._gap)
        everything = np.arange(len(chosen))
        for look in range(_MAX_LOOKS):
            iterates = [W.copy()]
            for _ in range(_SWEEPS):
                columns.sweep(everything if look == 0 else np.flatnonzero(W.any(1)), self._l1, self._l2, W, residuals)
                iterates.append(W.copy())
            self._extrapolate(columns, iterates, W, residuals)
            columns.sweep(everything, self._l1, self._l2, W, residuals)
            self._samples += columns.entries * (_SWEEPS + 1)
            pulls = np.linalg.norm(columns.correlate(residuals) - self._l2 * W, axis=1)
            gap = self._objective_and_gap(residuals, W, float(pulls.max(initial=0.0)))[1]
            if gap <= enough or np.array_equal(W, iterates[-1]):
                break
        self._W[chosen] = W

    def _extrapolate(self, columns: "_Columns", iterates: list[Array], W: Array, residuals: Array) -> None:
        """Replace W by a combination of iterates if that lowers the objective."""
        steps = np.stack([(b - a).ravel() for a, b in pairwise(iterates)])
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] += 1e-12 * np.trace(gram)
        try:
            shares = np.linalg.solve(gram, np.ones(len(gram)))
        except np.linalg.LinAlgError:
            return
        if not np.isfinite(shares).all() or shares.sum() == 0.0:
            return
        shares /= shares.sum()
        better = np.tensordot(shares, np.stack(iterates[1:]), 1)
        moved = residuals - columns.combine(better - W)
        if self._value(moved, better) < self._value(residuals, W):
            W[:], residuals[:] = better, moved

    def _value(self, residuals: Array, W: Array) -> float:
        norms = float(np.linalg.norm(W, axis=1).sum())
        return 0.5 * float(np.vdot(residuals, residuals)) + self._l1 * norms + 0.5 * self._l2 * float(np.vdot(W, W))


class _Columns:
    """Some columns, centred, times the roots of weights, to sweep over."""

    def __init__(self, X: Any, means: Array, roots: Array):
        self._means, self._roots = means, roots
        total = float(roots @ roots)
        if sp.issparse(X):
            self._sparse = sp.csc_array(X.astype(np.float64).multiply(roots[:, None]))
            squares = np.asarray(self._sparse.multiply(self._sparse).sum(0)).ravel()
            self.norms = np.maximum(squares - total * means**2, 0.0)
            self.norms[self.norms <= 1e-12 * squares] = 0.0  # constant
            self.entries = int(X.nnz)
            return
        self._sparse = None
        self._dense = (np.ascontiguousarray(X.T, np.float64) - means[:, None]) * roots
        self.norms = np.einsum("ij,ij->i", self._dense, self._dense)
        self.norms[np.sqrt(self.norms / total) <= 1e-14 * np.abs(means)] = 0.0
        self.entries = int(X.size)

    def sweep(self, order: NDArray[np.int64], l1: float, l2: float, W: Array, residuals: Array) -> None:
        """Update the blocks of W in this order, and the residuals."""
        if self._sparse is None:
            block_descent.sweep_dense(self._dense, self.norms, order, l1, l2, W, residuals)
            return
        matrix, offsets = self._sparse, np.zeros(len(residuals))
        parts = matrix.data, matrix.indices, matrix.indptr
        means = self._means, self._roots
        block_descent.sweep_sparse(*parts, *means, self.norms, order, l1, l2, W, residuals, offsets)
        residuals += offsets[:, None] * self._roots

    def correlate(self, residuals: Array) -> Array:
        """Return the inner products with residuals whose weighted sum is 0, of shape (columns, outputs)."""
        X = self._dense if self._sparse is None else self._sparse.T
        return np.asarray(X @ residuals.T)

    def combine(self, W: Array) -> Array:
        """Return what coefficients predict, of shape (outputs, samples)."""
        if self._sparse is None:
            return np.asarray(W.T @ self._dense)
        return np.asarray((self._sparse @ W).T) - (W.T @ self._means)[:, None] * self._roots
