"""The ridge-penalized problem: objective, gradient, and a lower bound from duality."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models.arrays import Array
from strads.models.multinomial.row_blocks import Evaluation, RowBlocks
from strads.models.regression.centring import NO_SHIFT, Shift, lost_by_error

_ROWS_AT_ONCE = 4096  # so that temporary arrays stay in the cache


@dataclass(frozen=True, eq=False)
class Minimum:
    """What a solver has found.

    Attributes
    ----------
    coef
        Wᵀ, of shape (classes, features), in the dtype of X.
    intercept
        b, of shape (classes,), in the dtype of X.
    gap
        Upper bound on the suboptimality; infinite without a penalty.
    reached
        What is compared with the tolerance: the gap relative to the null objective; without a penalty the largest
        element of the gradient, each divided by the largest possible one, relative to that at the start unless it is 0.
    """

    coef: NDArray[np.floating]
    intercept: NDArray[np.floating]
    gap: float
    reached: float


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at some coefficients; see `RidgeProblem`."""

    coefficients: Array  # (features + 1) × classes; the last row is b
    objective: float
    gradient: Array  # of the objective, of the same shape; the last row is 0 if b is not fitted
    evaluation: Evaluation  # the loss alone, with its gradient


def refuse_overflow(sums: NDArray[np.floating]) -> None:
    """Raise an error if sums over X, or their squares, are not finite.

    Raises
    ------
    InputError
        If one is not.
    """
    if not np.isfinite(np.vdot(sums, sums)):
        raise InputError("X is too large to compute with: scale the columns")


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """min over W, b of Σ_i c_i (log Σ_k exp Z_ik − Z_{i, y_i}) + ridge/2 ‖W‖², with Z = X W + 1 bᵀ.

    W and b are the rows of one array of coefficients of shape (features + 1, classes).

    Attributes
    ----------
    blocks
        The samples, with c and y.
    ridge
        0 or above.
    fit_intercept
        Whether b is fitted; otherwise it is 0.
    shift
        How far columns were moved towards 0.
    first
        Coefficients to begin from; None: `start`.
    """

    checkpointed = ("blocks",)

    blocks: RowBlocks
    ridge: float
    fit_intercept: bool
    shift: Shift = NO_SHIFT
    first: Array | None = None

    @property
    def begin(self) -> Array:
        """The coefficients to begin from."""
        return self.start if self.first is None else self.first

    @cached_property
    def class_weights(self) -> Array:
        """Σ c_i of the samples of each class, of shape (classes,)."""
        return np.bincount(self.blocks.codes, self.blocks.weights, self.blocks.classes).astype(np.float64)

    @cached_property
    def start(self) -> Array:
        """W = 0 with the best intercepts."""
        start = np.zeros((self.blocks.features + 1, self.blocks.classes))
        if self.fit_intercept:
            logarithms = np.log(self.class_weights)
            start[-1] = logarithms - logarithms.mean()
        return start

    @cached_property
    def null_objective(self) -> float:
        """The objective at `start`: what gaps are relative to."""
        counts = self.class_weights
        if not self.fit_intercept:
            return float(counts.sum() * np.log(len(counts)))
        return float(counts @ (np.log(counts.sum()) - np.log(counts)))

    @cached_property
    def largest_gradient(self) -> Array:
        """Σ_i c_i |x_i| and, for the intercepts, Σ_i c_i, of shape (features + 1, 1): what rounding errors go by."""
        X, c = self.blocks.X, self.blocks.weights
        parts = (slice(begin, begin + _ROWS_AT_ONCE) for begin in range(0, len(c), _ROWS_AT_ONCE))
        sums = sum(abs(X[part]).T @ c[part] for part in parts)
        return np.append(sums, c.sum())[:, np.newaxis]

    def minimum(self, coefficients: Array, gap: float, reached: float) -> Minimum:
        """Return coefficients as what was found; the intercepts, which only count up to a constant, sum to 0."""
        dtype = self.blocks.X.dtype
        coef = np.ascontiguousarray(coefficients[:-1].T, dtype)
        intercept = self.shift.outside(coef, coefficients[-1])
        intercept -= intercept.mean()
        return Minimum(coef, intercept.astype(dtype), gap, reached)

    def rounding(self, found: NDArray[np.floating]) -> float:
        """Return the largest share of the objective at `start` that rounding W to the dtype of X may cost."""
        error = self.shift.rounding(found, self.blocks.X.dtype)
        return lost_by_error(0.5, float(self.class_weights.sum()), error, self.null_objective)

    def evaluate(self, coefficients: Array, *, single: bool) -> Point:
        """Return the objective and its gradient; in single precision if so wanted."""
        evaluation = self.blocks.evaluate(coefficients, single=single)
        gradient, W = evaluation.gradient.copy(), coefficients[:-1]
        if not self.fit_intercept:
            gradient[-1] = 0.0
        objective = evaluation.loss
        if self.ridge:
            gradient[:-1] += self.ridge * W
            objective += 0.5 * self.ridge * float(np.vdot(W, W))
        return Point(coefficients, objective, gradient, evaluation)

    def refit_intercepts(self, coefficients: Array) -> Array:
        """Return the coefficients after a Newton step of the intercepts alone."""
        found = self.blocks.evaluate(coefficients, wants_curvature=True)
        moved = coefficients.copy()
        moved[-1] -= np.linalg.lstsq(found.curvature, found.gradient[-1], rcond=1e-10)[0]
        return moved

    def gap(self, point: Point, start: Point) -> float:
        """Return an upper bound on the suboptimality of a point; infinite without a ridge.

        The dual is to maximize −Σ_i c_i Σ_k Q_ik log Q_ik − ‖Xᵀ U‖²/(2 ridge) with U_i = c_i (Q_i − Y_i) over
        distributions Q of every sample; with intercepts, such that Σ_i U_i = 0. Q = P attains ‖∇‖²/(2 ridge). The
        predictions P of a point whose intercepts are not optimal do not sum to 0: a share t of one distribution r for
        all samples compensates that, and as the entropy is concave, its value at the mixture is at least the mixture
        of its values.

        Parameters
        ----------
        start : Point
            At `self.start`, where P_i are the shares π of the classes.
        """
        if not self.ridge:
            return np.inf
        G, H = point.evaluation.gradient[:-1], start.evaluation.gradient[:-1]
        counts = self.class_weights
        total = float(counts.sum())
        share, mixed, entropy = 0.0, counts / total, 0.0
        if self.fit_intercept:
            excess = point.evaluation.gradient[-1] - point.evaluation.gradient[-1].mean()  # the mean is rounding error
            share = float(np.clip(np.max(excess / (counts + excess)), 0.0, 1.0))
        square = (1.0 - share) ** 2 * float(np.vdot(G, G))
        if share > 0.0:
            mixed = np.maximum(mixed - (1.0 - share) / share * excess / total, 0.0)
            entropy = -float(mixed @ np.log(np.where(mixed > 0.0, mixed, 1.0)))
            shift, sums = mixed - counts / total, self._weighted_sums
            # Xᵀ U = (1 − t) G + t (H + Xᵀc (r − π)ᵀ)
            along = float(np.vdot(G, H)) + float((sums @ G) @ shift)
            of_mixed = float(np.vdot(H, H)) + 2.0 * float((sums @ H) @ shift) + float(sums @ sums * (shift @ shift))
            square += 2.0 * share * (1.0 - share) * along + share**2 * of_mixed
        dual = -(1.0 - share) * point.evaluation.negative_entropy + share * total * entropy - 0.5 * square / self.ridge
        return max(point.objective - dual, 0.0)  # negative only by rounding

    @cached_property
    def _weighted_sums(self) -> Array:
        """Xᵀ c, of shape (features,)."""
        return self.blocks.weighted_sums()
