"""The optimization problem: a loss of a linear predictor plus a weighted elastic net; objective and duality gap."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from strads.models.arrays import Array
from strads.models.kernels import datafits
from strads.models.kernels.datafits import Datafit
from strads.models.kernels.penalties import elastic_net
from strads.models.regression.design import Design


@dataclass(frozen=True, eq=False)
class Problem:
    """min over w, b of Σ_i s_i f(y_i, x_iᵀw + b) + Σ_j l1_j |w_j| + l2_j w_j² / 2.

    Standardized columns need no copy of X: dividing column j by σ_j is equivalent to multiplying l1_j by σ_j and l2_j
    by σ_j², and an intercept has the effect of centring the columns.

    Attributes
    ----------
    design
        X, of shape (samples, features).
    datafit
        The loss with y and the weights s, float64 arrays of shape (samples,).
    l1, l2
        Non-negative float64 arrays of shape (features,). A feature with l1_j = 0 is left out: w_j = 0.
    fit_intercept
        Whether b is fitted; otherwise it is 0.
    positive
        Whether w ≥ 0 is required.
    """

    design: Design
    datafit: Datafit
    l1: Array
    l2: Array
    fit_intercept: bool
    positive: bool = False

    @cached_property
    def inverse_l1(self) -> Array:
        """1 / l1_j, and 0 if l1_j = 0."""
        return np.divide(1.0, self.l1, out=np.zeros_like(self.l1), where=self.l1 > 0.0)

    @cached_property
    def null_intercept(self) -> float:
        """The best intercept at w = 0; 0 if none is fitted."""
        if not self.fit_intercept:
            return 0.0
        return float(datafits.fit_intercept(self.datafit, np.zeros(self.design.shape[0])))

    @cached_property
    def null_objective(self) -> float:
        """The objective at w = 0 with the best intercept: the denominator of the relative gap."""
        return float(datafits.total_loss(self.datafit, np.full(self.design.shape[0], self.null_intercept)))

    def objective(self, z: Array, w: Array) -> float:
        """Return the objective at the predictor z = X w + b."""
        norm, ridge = elastic_net(w, self.l1, self.l2)
        return float(datafits.total_loss(self.datafit, z) + norm + 0.5 * ridge)

    def pulls(self, correlations: Array) -> Array:
        """Return how strongly each coefficient is pulled to where it may go: it leaves 0 if by more than l1_j."""
        return correlations if self.positive else np.abs(correlations)

    def dual_objective(self, u: Array, correlations: Array, w: Array) -> float:
        """Return the dual objective at the best feasible multiple of the negative gradient u.

        The ridge is treated as additional samples with negative gradients −√l2_j w_j (Zou and Hastie 2005, lemma 1).

        Parameters
        ----------
        u : array of shape (samples,)
            Sums to 0 if an intercept is fitted.
        correlations : array of shape (features,)
            Xᵀu − l2 · w.
        """
        excess = float(np.max(self.pulls(correlations) * self.inverse_l1, initial=1e-300))
        ridge = elastic_net(w, self.l1, self.l2)[1]
        return self.datafit.best_dual(u, excess, ridge, self.fit_intercept)
