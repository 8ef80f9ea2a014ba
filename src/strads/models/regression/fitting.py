"""From data to problems with different penalty strengths."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels import datafits
from strads.models.kernels.datafits import Datafit
from strads.models.regression.design import Design
from strads.models.regression.problem import Problem

# Relative to E[x²]: a smaller variance is rounding error of the difference from which it is computed.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Regression:
    """Data, loss and kind of penalty; with a strength λ of the penalty this is a `Problem`.

    Attributes
    ----------
    design
        X, of shape (samples, features).
    datafit
        The loss, with y and the samples' weights.
    scales
        float64 array of shape (features,): divisor of each column before its coefficient is penalized; columns with 0
        are left out.
    l1_ratio
        Share of the ℓ1 norm in the penalty λ(l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖²) of the scaled columns.
    fit_intercept
        Whether an intercept is fitted.
    """

    design: Design
    datafit: Datafit
    scales: NDArray[np.float64]
    l1_ratio: float
    fit_intercept: bool

    def problem(self, strength: float) -> Problem:
        """Return the problem at the strength λ."""
        return Problem(
            self.design,
            self.datafit,
            strength * self.l1_ratio * self.scales,
            strength * (1.0 - self.l1_ratio) * self.scales**2,
            self.fit_intercept,
        )

    def largest_strength(self) -> float:
        """Return the smallest λ at which no coefficient is nonzero: max_j |x_jᵀu| / (l1_ratio · scale_j) at w = 0."""
        problem, samples = self.problem(1.0), self.design.shape[0]
        u = np.empty(samples)
        datafits.fill_negative_gradient(self.datafit, np.full(samples, problem.null_intercept), u)
        correlations, thresholds = np.abs(self.design.correlate(u)), problem.l1
        counted = thresholds > 0.0
        return float(np.max(correlations[counted] / thresholds[counted], initial=0.0))


def standard_deviations(design: Design, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted standard deviation of each column, 0 for constant ones; NaN if sums are not finite."""
    total = weights.sum()
    first, second = design.moments(weights)
    with np.errstate(invalid="ignore", over="ignore"):
        mean, square = first / total, second / total
        variance = square - mean**2
        return np.sqrt(np.where(variance <= _ROUNDING * square, 0.0, variance))


def strengths_down(largest: float, eps: float, count: int) -> NDArray[np.float64]:
    """Return `count` strengths from `largest` down to `eps * largest`, evenly spaced on a log scale."""
    if count == 1 or not math.isfinite(largest) or largest <= 0.0:
        return np.full(count, max(largest, np.finfo(np.float64).resolution))
    return np.geomspace(largest, eps * largest, count)
