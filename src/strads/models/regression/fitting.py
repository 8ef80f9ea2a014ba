"""The data of a regression, from which problems with different strengths of the penalty are made."""

import math
from dataclasses import dataclass

import numpy as np

from strads.models.arrays import Array
from strads.models.kernels import datafits, local_columns
from strads.models.kernels.datafits import Datafit
from strads.models.regression.centring import NO_SHIFT, Shift, lost_by_error, means_and_deviations
from strads.models.regression.design import Design
from strads.models.regression.problem import Problem
from strads.models.regression.solver import Solution

_DOUBTFUL = 1e-4  # of E[x²]: a smaller variance is computed again, around the mean
_CONSTANT = 1e-15  # of the mean: a smaller standard deviation is rounding error
_AT_ONCE = 256  # columns


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
    positive
        Whether coefficients must not be negative.
    shift
        How far columns and targets were moved towards 0.
    """

    design: Design
    datafit: Datafit
    scales: Array
    l1_ratio: float
    fit_intercept: bool
    positive: bool
    shift: Shift = NO_SHIFT

    def problem(self, strength: float) -> Problem:
        """Return the problem at the strength λ."""
        return Problem(
            self.design,
            self.datafit,
            strength * self.l1_ratio * self.scales,
            strength * (1.0 - self.l1_ratio) * self.scales**2,
            self.fit_intercept,
            self.positive,
        )

    def intercept(self, solution: Solution) -> float:
        """Return the intercept of a solution, for columns and targets as they were given."""
        rounded = solution.coef.astype(self.design.dtype)  # predictions use these, so the intercept goes with them
        return float(self.shift.outside(rounded, solution.intercept))

    def rounding(self, solution: Solution) -> float:
        """Return the largest share of the objective at w = 0 that rounding coefficients to the dtype of X may cost."""
        error = self.shift.rounding(solution.coef, self.design.dtype)
        weight = float(self.datafit.weights.sum())
        return lost_by_error(self.datafit.curvature_bound, weight, error, solution.null_objective)

    def largest_strength(self) -> float:
        """Return the smallest λ at which no coefficient is nonzero: max_j |x_jᵀu| / (l1_ratio · scale_j) at w = 0.

        Without the absolute value if `positive`.
        """
        problem, samples = self.problem(1.0), self.design.shape[0]
        u = np.empty(samples)
        datafits.fill_negative_gradient(self.datafit, np.full(samples, problem.null_intercept), u)
        correlations, thresholds = problem.pulls(self.design.correlate(u)), problem.l1
        counted = thresholds > 0.0
        return float(np.max(correlations[counted] / thresholds[counted], initial=0.0))


def standard_deviations(design: Design, weights: Array) -> Array:
    """Return the weighted standard deviation of each column, 0 for constant ones; NaN if sums are not finite."""
    total = weights.sum()
    first, second = design.moments(weights)
    with np.errstate(invalid="ignore", over="ignore"):
        mean, square = first / total, second / total
        variance = square - mean**2
        doubtful = np.flatnonzero((variance < _DOUBTFUL * square) & np.isfinite(square))
        deviations = np.sqrt(np.maximum(variance, 0.0) if len(doubtful) else variance)
    for begin in range(0, len(doubtful), _AT_ONCE):
        columns = doubtful[begin : begin + _AT_ONCE]
        all_of_these, values = np.arange(len(columns)), np.empty((design.shape[0], len(columns)), order="F")
        local_columns.fill_dense(design.gather(columns), all_of_these, values)
        means, exact = means_and_deviations(values, all_of_these, weights)
        deviations[columns] = np.where(exact <= _CONSTANT * np.abs(means), 0.0, exact)
    return deviations


def strengths_down(largest: float, eps: float, count: int) -> Array:
    """Return `count` strengths from `largest` down to `eps * largest`, evenly spaced on a log scale."""
    if count == 1 or not math.isfinite(largest) or largest <= 0.0:
        return np.full(count, max(largest, np.finfo(np.float64).resolution))
    return np.geomspace(largest, eps * largest, count)
