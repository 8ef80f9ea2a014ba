"""The problems of the benchmark of multinomial logistic regression: spoken letters, and generated samples."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Samples = tuple[NDArray[np.floating], NDArray[np.int64]]


def isolet() -> Samples:
    """1,560 × 617, 26 classes."""
    import scipy.io

    found = scipy.io.loadmat(DATA / "isolet" / "isolet.mat")
    return np.ascontiguousarray(found["fea"], np.float64), found["gnd"].ravel().astype(np.int64) - 1


def planted(scale: float, *, mixed: bool) -> Samples:
    """50,000 × 2,000, 100 classes at scale 1: normal features, independent or mixed, and planted coefficients."""
    rows, features, classes = (max(4, round(count * scale)) for count in (50_000, 2_000, 100))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features))
    if mixed:  # correlated: the Hessian's condition is about 10⁴
        X = X @ (rng.standard_normal((features, features)) * np.arange(1, features + 1)[:, None] ** -0.7)
        X /= X.std(0)
    W = rng.standard_normal((features, classes)) * 3.0 / np.sqrt(features)
    return X, (X @ W + rng.gumbel(size=(rows, classes))).argmax(1)


PROBLEMS: dict[str, Callable[[float], Samples]] = {
    "isolet": lambda scale: isolet(),
    "independent": partial(planted, mixed=False),
    "correlated": partial(planted, mixed=True),
}


def ridge_objective(X: NDArray[np.floating], y: NDArray[np.int64], C: float, W: NDArray, b: NDArray) -> float:
    """C Σ −log P(y_i | x_i) + ½ ‖W‖², in double precision, from W of shape (classes, features)."""
    from scipy.special import logsumexp

    z = X @ W.T.astype(np.float64) + b
    return float(C * (logsumexp(z, axis=1) - z[np.arange(len(y)), y]).sum() + 0.5 * (W.astype(np.float64) ** 2).sum())


def l1_gap(X: NDArray[np.floating], y: NDArray[np.int64], C: float, W: NDArray, b: NDArray) -> float:
    """(P − D) / P(W = 0) of C Σ −log P(y_i | x_i) + ‖W‖₁: the judge of both sides, which shares no code with either.

    The intercepts are first made optimal, for whatever W.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax, xlogy

    Y = (y[:, None] == np.arange(len(b))).astype(np.float64)
    z = X @ W.T.astype(np.float64)

    def loss(b: NDArray) -> tuple[float, NDArray]:
        return float(logsumexp(z + b, axis=1).sum() - (Y @ b).sum()), (softmax(z + b, axis=1) - Y).sum(0)

    b = minimize(loss, b, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    P = softmax(z + b, axis=1)
    scale = min(1.0, 1.0 / (C * np.abs(X.T @ (P - Y)).max()))
    dual = -C * xlogy(Q := scale * P + (1.0 - scale) * Y, Q).sum()
    primal = C * (logsumexp(z + b, axis=1) - ((z + b) * Y).sum(1)).sum() + np.abs(W).sum()
    shares = Y.mean(0)
    return float((primal - dual) / (-C * len(y) * xlogy(shares, shares).sum()))
