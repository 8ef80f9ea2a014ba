"""Losses of linear models, elementwise over the samples, for compiled code.

Both losses are Σ_i s_i f(y_i, z_i) of the predictor z = X w + b. Solvers use the *negative gradient*
u_i = −s_i ∂f/∂z_i, which is the (weighted) residual for the quadratic loss, and the *curvature* s_i ∂²f/∂z_i².
"""

from typing import Any, NamedTuple

from numba import njit
from numba.extending import overload
from numpy import exp, float64, isfinite, log, log1p
from numpy.typing import NDArray


class Quadratic(NamedTuple):
    """f(y, z) = (y − z)² / 2."""

    y: NDArray[float64]
    weights: NDArray[float64]


class Logistic(NamedTuple):
    """f(y, z) = log(1 + exp(−y z)) with y in {−1, 1}."""

    y: NDArray[float64]
    weights: NDArray[float64]


class SquaredNorm(NamedTuple):
    """f(z) = z² / 2 with weight 1, for samples without a response. The negative gradient −z needs no separate array."""


Datafit = Quadratic | Logistic


@njit(nogil=True, cache=True)
def log1p_exp(t: float) -> float:
    """log(1 + exp(t)) without overflow."""
    if t > 0.0:
        return t + log1p(exp(-t))
    return log1p(exp(t))


def loss_at(datafit: Datafit, i: int, z: float) -> float:
    """s_i f(y_i, z); for compiled code only."""
    raise NotImplementedError


def negative_gradient_at(datafit: Datafit, i: int, z: float) -> float:
    """−s_i ∂f/∂z(y_i, z); for compiled code only."""
    raise NotImplementedError


def curvature_at(datafit: Datafit, i: int, z: float) -> float:
    """s_i ∂²f/∂z²(y_i, z); for compiled code only."""
    raise NotImplementedError


@overload(loss_at)
def _loss_at(datafit, i, z):  # type: ignore[no-untyped-def]
    if datafit.instance_class is Quadratic:
        return lambda datafit, i, z: 0.5 * datafit.weights[i] * (datafit.y[i] - z) ** 2
    return lambda datafit, i, z: datafit.weights[i] * log1p_exp(-datafit.y[i] * z)


@overload(negative_gradient_at)
def _negative_gradient_at(datafit, i, z):  # type: ignore[no-untyped-def]
    if datafit.instance_class is Quadratic:
        return lambda datafit, i, z: datafit.weights[i] * (datafit.y[i] - z)
    return lambda datafit, i, z: datafit.weights[i] * datafit.y[i] / (1.0 + exp(datafit.y[i] * z))


@overload(curvature_at)
def _curvature_at(datafit, i, z):  # type: ignore[no-untyped-def]
    if datafit.instance_class is Quadratic:
        return lambda datafit, i, z: datafit.weights[i]

    def logistic(datafit, i, z):  # type: ignore[no-untyped-def]
        small = exp(-abs(z))
        return datafit.weights[i] * small / (1.0 + small) ** 2

    return logistic


@njit(nogil=True, cache=True)
def total_loss(datafit: Any, z: Any) -> float:
    """Σ s_i f(y_i, z_i)."""
    total = 0.0
    for i in range(len(z)):
        total += loss_at(datafit, i, z[i])
    return total


@njit(nogil=True, cache=True)
def fill_negative_gradient(datafit: Any, z: Any, out: Any) -> None:
    """u_i = −s_i ∂f/∂z_i."""
    for i in range(len(z)):
        out[i] = negative_gradient_at(datafit, i, z[i])


@njit(nogil=True, cache=True)
def fill_curvature(datafit: Any, z: Any, out: Any) -> None:
    """Write s_i ∂²f/∂z_i²."""
    for i in range(len(z)):
        out[i] = curvature_at(datafit, i, z[i])


@njit(nogil=True, cache=True)
def total_conjugate(datafit: Logistic, u: Any, scale: float) -> float:
    """Σ (s_i f(y_i, ·))*(−scale · u_i) of the logistic loss."""
    total = 0.0
    for i in range(len(u)):
        weight = datafit.weights[i]
        if weight == 0.0:
            continue
        share = scale * u[i] * datafit.y[i] / weight
        if share > 0.0:
            total += weight * share * log(share)
        if share < 1.0:
            total += weight * (1.0 - share) * log(1.0 - share)
    return total


@njit(nogil=True, cache=True)
def fit_intercept(datafit: Any, z: Any) -> float:
    """Return the shift of z that minimizes the loss, by Newton steps with halving; one step if it is quadratic."""
    shift = 0.0
    best = total_loss(datafit, z)
    for _ in range(50):
        slope = curvature = 0.0
        for i in range(len(z)):
            slope += negative_gradient_at(datafit, i, z[i] + shift)
            curvature += curvature_at(datafit, i, z[i] + shift)
        if not (curvature > 0.0 and isfinite(slope)):
            break
        step = slope / curvature
        while True:
            total = 0.0
            for i in range(len(z)):
                total += loss_at(datafit, i, z[i] + shift + step)
            if total <= best or abs(step) <= 1e-14 * (1.0 + abs(shift)):
                break
            step *= 0.5
        shift += step
        best = min(best, total)
        if abs(step) <= 1e-13 * (1.0 + abs(shift)):
            break
    return shift
