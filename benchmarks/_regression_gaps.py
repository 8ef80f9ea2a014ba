"""Duality gaps from coefficients alone, in plain NumPy: the judge of all sides, which shares no code with any."""

from typing import Any

import numpy as np
from _regression_problems import largest_correlation
from numpy.typing import NDArray


def relative_gap(loss: str, X: Any, y: NDArray[np.float64], penalty: float, coef: NDArray[Any]) -> float:
    """Return (P(w) − D(θ)) / P(0) of the loss summed over the samples plus penalty · Σ|w_j|; no intercept.

    θ is the negative gradient of the loss at Xw, scaled to be feasible: |x_jᵀθ| ≤ penalty for each j.
    """
    w = np.asarray(coef, np.float64).ravel()
    z = np.asarray(X[:, np.flatnonzero(w)] @ w[np.flatnonzero(w)], np.float64)
    size = penalty * np.abs(w).sum()
    if loss == "quadratic":
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
