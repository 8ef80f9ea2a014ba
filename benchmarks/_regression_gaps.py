"""Duality gaps from coefficients alone, in plain NumPy: the judge of all sides, which shares no code with any."""

from functools import cache
from typing import Any

import numpy as np
from _regression_problems import Problem, largest_correlation
from numpy.typing import NDArray


def relative_gap(problem: Problem, penalty: float, coef: NDArray[Any]) -> float:
    """Return (P(w) − D(θ)) / P(0) of the loss summed over the samples plus penalty · Σ|w_j|; no intercept.

    θ is the negative gradient of the loss at Xw, scaled to be feasible: |x_jᵀθ| ≤ penalty for each j. With the squared
    hinge loss and penalty · ‖w‖² / 2 every θ ≥ 0 is, and one θ near the best serves all sides: that of their own w
    would tell how even its errors are rather than how small.
    """
    w = np.asarray(coef, np.float64).ravel()
    X, y = problem.X, problem.y
    if problem.loss == "squared_hinge":
        return (_primal(problem, penalty, w) - _largest_dual(problem, penalty)) / len(y)
    z = np.asarray(X[:, np.flatnonzero(w)] @ w[np.flatnonzero(w)], np.float64)
    size = penalty * np.abs(w).sum()
    if problem.loss == "quadratic":
        return _quadratic(X, y, z, penalty, size)
    return _logistic(X, y, z, penalty, size)


def _quadratic(X: Any, y: NDArray[np.float64], z: NDArray[np.float64], penalty: float, size: float) -> float:
    residual = y - z
    largest = penalty / largest_correlation(X, residual)
    scale = np.clip(y @ residual / (residual @ residual), -largest, largest)  # where the dual is largest on this line
    primal = 0.5 * residual @ residual + size
    dual = 0.5 * y @ y - 0.5 * np.sum((y - scale * residual) ** 2)
    return float((primal - dual) / (0.5 * y @ y))


def _logistic(X: Any, y: NDArray[np.float64], z: NDArray[np.float64], penalty: float, size: float) -> float:
    share = 1.0 / (1.0 + np.exp(y * z))
    scale = min(1.0, penalty / largest_correlation(X, y * share))
    share *= scale
    primal = np.logaddexp(0.0, -y * z).sum() + size
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(share > 0.0, share * np.log(share), 0.0) + np.where(
            share < 1.0, (1.0 - share) * np.log1p(-share), 0.0
        )
    return float((primal + entropy.sum()) / (len(y) * np.log(2.0)))


def _primal(problem: Problem, penalty: float, w: NDArray[np.float64]) -> float:
    slack = np.maximum(1.0 - problem.y * (problem.X @ w), 0.0)
    return float(slack @ slack + 0.5 * penalty * w @ w)


@cache
def _largest_dual(problem: Problem, penalty: float) -> float:
    """Return D(s θ) = 2 s Σ slack_i − s² bend at the best s, θ = 2 slack, of a solution far tighter than the goal."""
    from sklearn.svm import LinearSVC

    peer = LinearSVC(C=1.0 / penalty, tol=1e-6, fit_intercept=False, max_iter=1_000_000, random_state=0)
    w = peer.fit(problem.X_by_rows, problem.y).coef_.ravel()
    slack = np.maximum(1.0 - problem.y * (problem.X @ w), 0.0)
    pull = problem.X.T @ (2.0 * slack * problem.y)
    bend = slack @ slack + 0.5 * pull @ pull / penalty
    dual = float(slack.sum() ** 2 / bend)
    assert _primal(problem, penalty, w) - dual <= 1e-8 * len(slack)
    return dual
