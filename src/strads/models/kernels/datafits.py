"""Losses of linear models: elementwise over the samples for compiled code, and their dual objectives.

A loss is Σ_i s_i f(y_i, z_i) of the predictor z = X w + b. Solvers use the *negative gradient* u_i = −s_i ∂f/∂z_i,
the (weighted) residual for the quadratic loss, and the *curvature* s_i ∂²f/∂z_i². A loss is a class with

- `loss`, `negative_gradient` and `curvature`, compiled functions of y_i, s_i and z_i;
- `is_quadratic`: whether the curvature is constant, so that one Newton step minimizes exactly;
- `curvature_bound`: the largest ∂²f/∂z²;
- `best_dual`, from the conjugate of f;
- `centred`, for an intercept: the same loss with targets around 0.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit
from numpy import exp, float64, isfinite, log, log1p
from numpy.typing import NDArray

from strads.engine.compiling import by_types

_NEAR = 1e-5  # shifts of an intercept at which Newton's method converges without halving


class Samples(NamedTuple):
    """Targets and weights of samples: what all losses have, whose targets by default cannot be moved towards 0.

    Attributes
    ----------
    y, weights
        Arrays of shape (samples,).
    """

    y: NDArray[float64]
    weights: NDArray[float64]

    def centred(self) -> tuple[Self, float]:
        """Return the loss with targets around 0, which an intercept makes up for, and what was subtracted: nothing."""
        return self, 0.0


@njit(nogil=True, cache=True)
def log1p_exp(t: float) -> float:
    """log(1 + exp(t)) without overflow."""
    if t > 0.0:
        return t + log1p(exp(-t))
    return log1p(exp(t))


@njit(nogil=True, cache=True)
def _quadratic_loss(y: float, weight: float, z: float) -> float:
    return 0.5 * weight * (y - z) ** 2


@njit(nogil=True, cache=True)
def _residual(y: float, weight: float, z: float) -> float:
    return weight * (y - z)


@njit(nogil=True, cache=True)
def _weight(y: float, weight: float, z: float) -> float:
    return weight


def highest_dual(response: float, bend: float, excess: float) -> float:
    """Return the maximum of s · response − s² · bend / 2 over 0 ≤ s ≤ 1 / excess; without overflow."""
    if response <= 0.0:
        return 0.0
    limit = 1.0 / excess
    scale = response / bend if response < limit * bend else limit
    return scale * (response - 0.5 * scale * bend)


class Quadratic(Samples):
    """f(y, z) = (y − z)² / 2."""

    is_quadratic = True
    curvature_bound = 1.0
    loss, negative_gradient, curvature = _quadratic_loss, _residual, _weight

    def centred(self) -> tuple[Self, float]:
        """Return the loss with the mean subtracted from y, which an intercept makes up for, and that mean."""
        mean = float(self.weights @ self.y) / float(self.weights.sum())
        return self._replace(y=self.y - mean), mean

    def best_dual(self, u: NDArray[float64], excess: float, ridge: float, centred: bool) -> float:
        """Return the largest dual objective of the multiples s u with s ≥ 0 and s · excess ≤ 1.

        Parameters
        ----------
        u : array of shape (samples,)
            Negative gradient; sums to 0 if `centred`.
        excess : float
            Largest ratio of a correlation to its threshold.
        ridge : float
            Squared norm of the samples that stand for the ridge (Zou and Hastie 2005, lemma 1), in units of s².
        centred : bool
            Whether an intercept is fitted.
        """
        y = self.y
        if centred:  # u sums to 0 except for rounding errors, which a large mean of y would amplify
            y = y - (self.weights @ y) / self.weights.sum()
        squares = np.divide(u**2, self.weights, out=np.zeros_like(u), where=self.weights > 0.0)
        bend, response = float(squares.sum()) + ridge, float(u @ y)
        return highest_dual(response, bend, excess)


@njit(nogil=True, cache=True)
def _logistic_loss(y: float, weight: float, z: float) -> float:
    return weight * log1p_exp(-y * z)


@njit(nogil=True, cache=True)
def _logistic_negative_gradient(y: float, weight: float, z: float) -> float:
    return weight * y / (1.0 + exp(y * z))


@njit(nogil=True, cache=True)
def _logistic_curvature(y: float, weight: float, z: float) -> float:
    small = exp(-abs(z))
    return weight * small / (1.0 + small) ** 2


class Logistic(Samples):
    """f(y, z) = log(1 + exp(−y z)) with y in {−1, 1}."""

    is_quadratic = False
    curvature_bound = 0.25
    loss, negative_gradient, curvature = _logistic_loss, _logistic_negative_gradient, _logistic_curvature

    def best_dual(self, u: NDArray[float64], excess: float, ridge: float, centred: bool) -> float:
        """Return the dual objective of the largest multiple s u with s ≤ 1; see `Quadratic.best_dual`."""
        scale = min(1.0, 1.0 / excess)
        return float(-_logistic_conjugate(self, u, scale) - 0.5 * scale**2 * ridge)


@njit(nogil=True, cache=True)
def _squared_hinge_loss(y: float, weight: float, z: float) -> float:
    return weight * max(1.0 - y * z, 0.0) ** 2


@njit(nogil=True, cache=True)
def _squared_hinge_negative_gradient(y: float, weight: float, z: float) -> float:
    return 2.0 * weight * y * max(1.0 - y * z, 0.0)


@njit(nogil=True, cache=True)
def _squared_hinge_curvature(y: float, weight: float, z: float) -> float:
    return 2.0 * weight if y * z < 1.0 else 0.0


class SquaredHinge(Samples):
    """f(y, z) = max(0, 1 − y z)² with y in {−1, 1}."""

    is_quadratic = False
    curvature_bound = 2.0
    loss, negative_gradient, curvature = (
        _squared_hinge_loss,
        _squared_hinge_negative_gradient,
        _squared_hinge_curvature,
    )

    def best_dual(self, u: NDArray[float64], excess: float, ridge: float, centred: bool) -> float:
        """Return the largest dual objective of the multiples of u: f*(−y a) = a²/4 − a; see `Quadratic.best_dual`."""
        squares = np.divide(u**2, self.weights, out=np.zeros_like(u), where=self.weights > 0.0)
        return highest_dual(float(u @ self.y), 0.5 * float(squares.sum()) + ridge, excess)


@njit(nogil=True, cache=True)
def _half_deviance_at_0(y: float) -> float:
    """Return the part of the half deviance that does not depend on the predictor."""
    return y * log(y) - y if y > 0.0 else 0.0


@njit(nogil=True, cache=True)
def _poisson_loss(y: float, weight: float, z: float) -> float:
    return weight * (exp(z) - y * z + _half_deviance_at_0(y))


@njit(nogil=True, cache=True)
def _poisson_negative_gradient(y: float, weight: float, z: float) -> float:
    return weight * (y - exp(z))


@njit(nogil=True, cache=True)
def _poisson_curvature(y: float, weight: float, z: float) -> float:
    return weight * exp(z)


class Poisson(Samples):
    """f(y, z) = exp(z) − y z + y log y − y with y ≥ 0: half the deviance of counts whose mean is exp(z)."""

    is_quadratic = False
    loss, negative_gradient, curvature = _poisson_loss, _poisson_negative_gradient, _poisson_curvature

    @property
    def curvature_bound(self) -> float:
        """The largest ∂²f/∂z² where the mean is that of a target; there is none for all z."""
        return float(self.y.max(initial=0.0))

    def best_dual(self, u: NDArray[float64], excess: float, ridge: float, centred: bool) -> float:
        """Return the dual objective of the largest multiple s u with s ≤ 1; see `Quadratic.best_dual`."""
        scale = min(1.0, 1.0 / excess)
        return float(-_poisson_conjugate(self, u, scale) - 0.5 * scale**2 * ridge)


class SquaredNorm(NamedTuple("NoResponse", [])):
    """f(z) = z² / 2, of samples without a target and of weight 1. The negative gradient −z needs no separate array."""

    is_quadratic = True


Datafit = Quadratic | Logistic | SquaredHinge | Poisson


@by_types()
def loss_at(datafit, i, z):  # type: ignore[no-untyped-def]
    """s_i f(y_i, z); for compiled code only."""
    loss = datafit.instance_class.loss
    return lambda datafit, i, z: loss(datafit.y[i], datafit.weights[i], z)


@by_types()
def negative_gradient_at(datafit, i, z):  # type: ignore[no-untyped-def]
    """−s_i ∂f/∂z(y_i, z); for compiled code only."""
    negative_gradient = datafit.instance_class.negative_gradient
    return lambda datafit, i, z: negative_gradient(datafit.y[i], datafit.weights[i], z)


@by_types()
def curvature_at(datafit, i, z):  # type: ignore[no-untyped-def]
    """s_i ∂²f/∂z²(y_i, z); for compiled code only."""
    curvature = datafit.instance_class.curvature
    return lambda datafit, i, z: curvature(datafit.y[i], datafit.weights[i], z)


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
def _logistic_conjugate(datafit: Logistic, u: Any, scale: float) -> float:
    """Σ (s_i f(y_i, ·))*(−scale · u_i) ."""
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
def _poisson_conjugate(datafit: Poisson, u: Any, scale: float) -> float:
    """Σ (s_i f(y_i, ·))*(−scale · u_i), where f*(v) = q log q − q − (y log y − y) with q = y + v ≥ 0."""
    total = 0.0
    for i in range(len(u)):
        weight, y = datafit.weights[i], datafit.y[i]
        if weight == 0.0:
            continue
        mean = max(y - scale * u[i] / weight, 0.0)  # negative only by rounding
        total += weight * (_half_deviance_at_0(mean) - _half_deviance_at_0(y))
    return total


@njit(nogil=True, cache=True)
def fit_intercept(datafit: Any, z: Any) -> float:
    """Return the shift of z that minimizes the loss, by Newton steps with halving; one step if it is quadratic.

    The negative gradient then sums to 0 up to rounding errors, as the duality gap requires. So near the minimum,
    where the loss no longer tells one shift from another, it is the slope that has to decrease.
    """
    shift = 0.0
    best = total_loss(datafit, z)
    least = np.inf
    for _ in range(50):
        slope = curvature = 0.0
        for i in range(len(z)):
            slope += negative_gradient_at(datafit, i, z[i] + shift)
            curvature += curvature_at(datafit, i, z[i] + shift)
        if not (curvature > 0.0 and isfinite(slope)):
            break
        step = slope / curvature
        is_near = abs(step) <= _NEAR * (1.0 + abs(shift))
        if is_near and abs(slope) >= least:
            break
        while not is_near:
            total = 0.0
            for i in range(len(z)):
                total += loss_at(datafit, i, z[i] + shift + step)
            if total <= best:
                best = total
                break
            if abs(step) <= 1e-14 * (1.0 + abs(shift)):
                break
            step *= 0.5
        if is_near:
            least = abs(slope)
        shift += step
        if abs(step) <= 1e-13 * (1.0 + abs(shift)):
            break
    return shift
