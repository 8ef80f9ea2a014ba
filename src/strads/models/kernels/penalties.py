"""Penalties of single coefficients and their exact steps, for compiled code."""

from typing import NamedTuple

from numba import njit
from numpy import float64
from numpy.typing import NDArray

from strads.engine.compiling import by_types


class ElasticNet(NamedTuple):
    """l1_j |w_j| + l2_j w_j² / 2, infinite below 0 if `positive`; a coefficient with l1_j = 0 stays 0."""

    l1: NDArray[float64]  # for each coefficient; 0 or above
    l2: NDArray[float64]  # likewise
    positive: bool = False


class Box(NamedTuple):
    """−a + ridge_i a² / 2 for a = label_i w_i within [0, upper_i], infinite outside.

    This is the dual of a linear support vector machine (Hsieh et al. 2008, eq. 4), with the labels ±1 in the variables
    rather than, as in the paper, in the columns.
    """

    labels: NDArray[float64]  # ±1, for each coefficient w_i
    upper: NDArray[float64]  # bounds, possibly infinite
    ridge: NDArray[float64]  # 0 or above


Penalty = ElasticNet | Box


@njit(nogil=True, cache=True)
def soft_threshold(z: float, threshold: float, positive: bool = False) -> float:
    """S(z, λ) = sign(z) · max(|z| − λ, 0)   (Friedman et al. 2007), or max(z − λ, 0) if `positive`."""
    if z > threshold:
        return z - threshold
    if z < -threshold and not positive:
        return z + threshold
    return 0.0


@njit(nogil=True, fastmath=True, cache=True)
def elastic_net(w, l1, l2):  # type: ignore[no-untyped-def]
    """Σ_j l1_j |w_j| and Σ_j l2_j w_j²."""
    norm = square = 0.0
    for j in range(len(w)):
        norm += l1[j] * abs(w[j])
        square += l2[j] * w[j] * w[j]
    return norm, square


def _elastic_net_step(penalty, j, value, pull, curvature):  # type: ignore[no-untyped-def]
    total = curvature + penalty.l2[j]
    if penalty.l1[j] == 0.0 or total <= 0.0:
        return 0.0
    return soft_threshold(curvature * value + pull, penalty.l1[j], penalty.positive) / total


def _box_step(penalty, j, value, pull, curvature):  # type: ignore[no-untyped-def]
    label, total = penalty.labels[j], curvature + penalty.ridge[j]
    drive = label * (curvature * value + pull) + 1.0
    if total <= 0.0:
        return label * (penalty.upper[j] if drive > 0.0 else 0.0)
    return label * min(max(drive / total, 0.0), penalty.upper[j])


_STEPS = {ElasticNet: _elastic_net_step, Box: _box_step}


@by_types()
def penalized_step(penalty, j, value, pull, curvature):  # type: ignore[no-untyped-def]
    """Return the v that minimizes curvature (v − value)² / 2 − pull (v − value) + penalty_j(v); compiled code only."""
    return _STEPS.get(penalty.instance_class)
