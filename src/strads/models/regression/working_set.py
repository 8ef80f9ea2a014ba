"""Working sets by violation of the optimality conditions, each solved by sweeps and Newton steps on its support.

With many columns, passes over all of them dominate the cost. So there are two levels: a full pass finds the duality gap
and the columns near their thresholds; among these, working sets are chosen until the gap over them is small. The
columns of a working set are copied contiguously, and `LeastSquares` solves their problem. A logistic loss is first
replaced by its quadratic model, with a line search along the step (proximal Newton, Lee et al. 2014).
"""

import math
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.errors import ArgumentError
from strads.models._blas_threads import one_blas_thread
from strads.models.arrays import Array
from strads.models.kernels import datafits, local_columns
from strads.models.kernels.columns import Columns, scaled_rows
from strads.models.regression.least_squares import LeastSquares
from strads.models.regression.problem import Problem
from strads.models.regression.solver import Descent, LinearSolver, Progress, Solution, Stagnation, halved_length

_LARGEST_FIRST_SET = 1000  # features
_GROWTH = 3  # ratio of a working set to the support
_LONG_LOOK = 1 << 22  # entries from which a pass over all columns is worth avoiding
_NEAR_SHARE = 8  # one in this many columns is considered near its threshold …
_NEAR_SETS = 4  # … but at least enough for this many working sets
_LOOKS_NEAR = 10  # most working sets of the near columns before all columns are evaluated again
_SHARE_NEAR = 0.1  # target gap over the near columns, relative to the gap over all columns
_SHARE_OF_GAP = 0.05  # target gap over a working set, relative to the former
_NEWTON_STEPS = 10  # most steps for one working set
_MIN_CURVATURE = 1e-10  # smallest curvature of a sample, relative to its weight


@dataclass(frozen=True)
class WorkingSet(LinearSolver):
    """Working sets of growing size, by violation of the optimality conditions: the fastest on one machine."""

    def start(self, problem: Problem, goal: float, coef: Array | None = None, intercept: float = 0.0) -> Descent:
        """Begin with a problem; an iteration is a working set and a pass over all columns."""
        return _WorkingSets(problem, goal, coef, intercept)


class _WorkingSets(Descent):
    checkpointed = (
        "_w",
        "_intercept",
        "_z",
        "_u",
        "_samples",
        "_size",
        "_correlations",
        "_progress",
        "_stagnation",
    )

    def __init__(self, problem: Problem, goal: float, coef: Array | None, intercept: float):
        self._problem, self._datafit, self._goal = problem, problem.datafit, goal
        samples, features = problem.design.shape
        self._w = np.zeros(features) if coef is None else np.array(coef, np.float64)
        self._w[problem.l1 <= 0.0] = 0.0
        starts_at_0 = not self._w.any()
        self._intercept = intercept if problem.fit_intercept and not starts_at_0 else problem.null_intercept
        self._z = np.full(samples, self._intercept)
        if not starts_at_0:
            self._z += problem.design.predict(self._w)
            if not problem.objective(self._z, self._w) <= problem.null_objective:  # 0 is better, or X holds NaN
                self._intercept = problem.null_intercept
                self._w[:], self._z[:] = 0.0, self._intercept
        self._u = np.empty(samples)
        self._samples = 0
        self._stagnation = Stagnation()
        self._size = min(_LARGEST_FIRST_SET, max(100, 2 * samples))
        self._correlations: Array = np.empty(0)
        self._progress = Progress(0, 0, math.inf, math.inf, 0)
        # BLAS threads would spin alongside ours, and the systems are too small to parallelize.
        self._limit = ExitStack()
        self._limit.enter_context(one_blas_thread())

    def advance(self, iteration: int) -> Progress:
        """Solve on the columns near their thresholds, then look at all."""
        if iteration > 1:
            self._improve()
        self._correlations, objective, gap = self._look(None)
        active = int(np.count_nonzero(self._w))
        if iteration > 1:
            self._stagnation.see(objective, gap)
        self._progress = Progress(iteration, self._samples, objective, gap, active)
        return self._progress

    @property
    def is_stuck(self) -> bool:
        """Whether neither the objective nor the gap has decreased for some iterations."""
        return self._stagnation.is_over

    def solution(self) -> Solution:
        """Return the coefficients, which the next iteration changes."""
        return Solution(self._w, self._intercept, self._progress, self._problem.null_objective, self._goal)

    def close(self) -> None:
        """Let BLAS use its threads again."""
        self._limit.close()

    def _improve(self) -> None:
        design, count = self._problem.design, len(self._w)
        if design.reads_columns and design.entries >= _LONG_LOOK:
            count = max(count // _NEAR_SHARE, _NEAR_SETS * self._size)
        near = self._choose(self._correlations, np.arange(len(self._w)), count)
        self._solve_near(self._correlations, near, self._progress.gap, self._goal)

    def _look(self, near: NDArray[np.int64] | None) -> tuple[Array, float, float]:
        """Return Xᵀu − l2 · w, the objective and the duality gap, over all columns or restricted to those in `near`."""
        if self._problem.fit_intercept:
            shift = float(datafits.fit_intercept(self._datafit, self._z))
            self._intercept += shift
            self._z += shift
        datafits.fill_negative_gradient(self._datafit, self._z, self._u)
        design, w = self._problem.design, self._w
        if near is None:
            correlations = design.correlate(self._u)
            self._samples += design.entries
        else:
            correlations = np.zeros(len(w))
            correlations[near] = design.correlate(self._u, near)
            self._samples += design.entries * len(near) // len(w)
        support = np.flatnonzero(w)
        correlations[support] -= self._problem.l2[support] * w[support]
        objective = self._problem.objective(self._z, w)
        self._check_finite(correlations, objective)
        gap = objective - self._problem.dual_objective(self._u, correlations, w)
        return correlations, objective, max(gap, 0.0)  # negative only by rounding

    def _solve_near(self, correlations: Array, near: NDArray[np.int64], gap: float, goal: float) -> None:
        """Solve the problem of the columns in `near` by a sequence of working sets, to a tenth of the gap."""
        enough = max(0.3 * goal, _SHARE_NEAR * gap)
        looks = 1 if len(near) == len(self._w) else _LOOKS_NEAR
        for look in range(looks):
            self._size = max(self._size, _GROWTH * int(np.count_nonzero(self._w)))
            chosen = self._choose(correlations, near, self._size)
            self._solve_on(chosen, max(0.3 * goal, _SHARE_OF_GAP * gap))
            if look + 1 < looks:
                correlations, _, gap = self._look(near)
                if gap <= enough:
                    break

    def _choose(self, correlations: Array, columns: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the support and the columns that violate the optimality conditions most, in ascending order."""
        count = len(columns)
        if most >= count:
            return columns
        these = slice(None) if count == len(self._w) else columns  # a view is cheaper than a full copy
        excess = self._problem.pulls(correlations[these]) * self._problem.inverse_l1[these]
        excess[self._w[these] != 0.0] = np.inf
        return np.sort(columns[np.argpartition(excess, count - most)[count - most :]])

    def _solve_on(self, chosen: NDArray[np.int64], goal: float) -> None:
        """Solve the problem of these columns alone to a duality gap of `goal`."""
        problem = self._problem
        chosen = chosen[problem.l1[chosen] > 0.0]
        columns, w = problem.design.gather(chosen), self._w[chosen]
        l1, l2 = problem.l1[chosen], problem.l2[chosen]
        for number in range(_NEWTON_STEPS):
            datafits.fill_negative_gradient(self._datafit, self._z, self._u)
            model = self._model(columns, w, l1, l2)
            if self._datafit.is_quadratic:
                model.minimize(goal)
            else:
                gap = model.objective_and_gap()[1]
                if number > 0 and gap <= goal:  # always take the first step: the model's gap is not the loss's
                    break
                model.minimize(0.1 * gap)
            self._samples += model.samples
            step = model.w - w
            image = local_columns.combine(columns, np.arange(len(step)), step, len(self._z)) + model.shift
            length = self._search_line(w, step, image, l1, l2)
            w = model.w if length == 1.0 else w + length * step
            self._z += length * image
            self._intercept += length * model.shift
            if self._datafit.is_quadratic or length == 0.0:
                break
        self._w[chosen] = w

    def _model(self, columns: Columns, w: Array, l1: Array, l2: Array) -> LeastSquares:
        """Return the quadratic model of the loss around z, as least squares over scaled columns."""
        curvature = np.empty(len(self._z))
        datafits.fill_curvature(self._datafit, self._z, curvature)
        np.maximum(curvature, _MIN_CURVATURE * self._datafit.weights, out=curvature)
        roots = np.sqrt(curvature)
        residual = np.divide(self._u, roots, out=np.zeros_like(roots), where=roots > 0.0)
        if np.any(roots != 1.0):
            columns = scaled_rows(columns, roots)
        problem = self._problem
        return LeastSquares(columns, residual, roots if problem.fit_intercept else None, w, l1, l2, problem.positive)

    def _search_line(self, w: Array, step: Array, image: Array, l1: Array, l2: Array) -> float:
        """Return the first of 1, ½, ¼ … at which the step decreases the objective sufficiently (Armijo's rule)."""
        if self._datafit.is_quadratic:
            return 1.0

        def objective(length: float) -> float:
            moved = w + length * step
            penalty = float(l1 @ np.abs(moved)) + 0.5 * float(l2 @ moved**2)
            return float(datafits.total_loss(self._datafit, self._z + length * image)) + penalty

        promised = -float(self._u @ image) + float(l1 @ (np.abs(w + step) - np.abs(w))) + float(l2 @ (w * step))
        return halved_length(objective, objective(0.0), promised)

    def _check_finite(self, correlations: Array, objective: float) -> None:
        finite = np.isfinite(correlations)
        if not finite.all():
            column = int(np.argmin(finite))
            raise ArgumentError(self._problem.design.describe_column(column))
        if not np.isfinite(objective):
            raise ArgumentError("the objective is not finite: values of X or y are too large; scale them")
