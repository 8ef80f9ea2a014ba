"""L-BFGS in the coordinates of a preconditioner: in single precision as far as that goes, then in double."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from strads.models._iterative import Epoch, Solver
from strads.models.multinomial.preconditioner import Array32, precondition
from strads.models.multinomial.problem import Minimum, Point, RidgeProblem, refuse_overflow

_WORTH_SINGLE = 1 << 22  # multiplications and additions of a product from which single precision is worth it
_MEMORY = 10  # pairs of differences
_DECREASE, _CURVATURE = 1e-4, 0.9  # Wolfe's conditions
_TRIALS = 20  # of a line search
_ROUNDING = {True: 1e-5, False: 1e-12}  # of the gradient, relative to the largest possible one
_NOISE = {True: 1e-7, False: 1e-14}  # of the objective, relative, in single and in double precision


class PreconditionedLbfgs(Solver):
    """Minimizes to a relative duality gap of `tol`, in double precision; without a ridge, to a relative gradient.

    Elements of a gradient are divided by the largest possible ones: these depend on the features' units as they do.

    Used within `one_blas_thread`. An epoch is a step of L-BFGS.

    Attributes
    ----------
    is_converged
        Whether `tol` has been reached.

    Raises
    ------
    InputError
        If the objective overflows.
    """

    checkpointed = ("_problem", "_goal", "_pairs", "is_converged", "_single", "_start", "_point", "_slope", "_gap")

    def __init__(self, problem: RidgeProblem, tol: float):
        self._problem, self._tol, self._goal = problem, tol, tol
        self._pairs: deque[tuple[Array32, Array32, float]] = deque(maxlen=_MEMORY)
        self.is_converged = False
        for self._single in (problem.blocks.work >= _WORTH_SINGLE, False):
            self._start, self._point = self._evaluate(problem.start), self._evaluate(problem.begin)
            is_finite = self._is_finite(self._start) and self._is_finite(self._point)
            if is_finite and not (self._single and self._is_level()):
                break
        refuse_overflow(self._start.gradient)
        self._units = np.where(problem.largest_gradient > 0.0, problem.largest_gradient, 1.0)
        steepest = np.abs(self._start.gradient / self._units).max()
        self._steepest = 1.0 if self._is_level() else max(float(steepest), 1e-300)
        self._map = precondition(problem)
        self._slope = self._map.gradient(self._point.gradient)
        self._gap = problem.gap(self._point, self._start)

    def _evaluate(self, coefficients: NDArray[np.float64]) -> Point:
        return self._problem.evaluate(coefficients, single=self._single)

    @staticmethod
    def _is_finite(point: Point) -> bool:
        return bool(np.isfinite(point.objective) and np.isfinite(point.gradient).all())

    def _is_level(self) -> bool:
        """Whether the gradient at the start is rounding error; it only counts without a ridge."""
        if self._problem.ridge:
            return False
        rounding = _ROUNDING[self._single] * self._problem.largest_gradient
        return bool((np.abs(self._start.gradient) <= rounding).all())

    def run_epoch(self, number: int) -> Epoch:
        """Take a step; close to the minimum, see whether the tolerance has been reached."""
        has_moved = self._distance() <= self._goal or self._step()
        if not has_moved and self._single:
            self._certify()
            has_moved = self._step()
        if self._distance() <= self._goal:
            self._certify()
            self.is_converged = self._reached() <= self._tol
            self._goal = 0.5 * self._distance()
        figures: dict[str, float] = {"active": int(np.count_nonzero(self._point.coefficients[:-1]))}
        if self._problem.ridge:
            figures |= {"gap": self._gap, "relative_gap": self._reached()}
        else:
            figures |= {"relative_gradient": self._reached()}
        is_last = self.is_converged or not has_moved
        return Epoch(self._problem.blocks.rows_read, self._point.objective, figures, is_last=is_last)

    def verdict(self) -> dict[str, float]:
        """Return whether `tol` has been reached, and what has been."""
        return {"converged": self.is_converged, "reached": self.learnt().reached}

    def learnt(self) -> Minimum:
        """Return the current coefficients; their gap is computed in double precision."""
        gap = self._gap
        if self._single and self._problem.ridge:
            point, start = (
                self._problem.evaluate(coefficients, single=False)
                for coefficients in (self._point.coefficients, self._problem.start)
            )
            gap = self._problem.gap(point, start)
        coefficients = self._point.coefficients
        # What all classes share changes no prediction, and only adds to the penalty.
        return self._problem.minimum(coefficients - coefficients.mean(1, keepdims=True), gap, self._reached(gap))

    def _certify(self) -> None:
        """Go on in double precision, with better intercepts."""
        coefficients = self._point.coefficients
        if self._single:
            self._single = False
            self._start = self._evaluate(self._problem.start)
        if self._problem.fit_intercept and self._problem.ridge:
            coefficients = self._problem.refit_intercepts(coefficients)
        self._go_to(self._evaluate(coefficients))

    def _go_to(self, point: Point, slope: Array32 | None = None) -> None:
        self._point = point
        self._slope = self._map.gradient(point.gradient) if slope is None else slope
        self._gap = self._problem.gap(point, self._start)

    def _distance(self) -> float:
        """Return what the tolerance is compared with, if the intercepts are optimal: then ‖∇‖²/(2 ridge) is the gap."""
        if not self._problem.ridge:
            return float(np.abs(self._point.gradient / self._units).max()) / self._steepest
        slope = self._point.gradient[:-1]
        return 0.5 * float(np.vdot(slope, slope)) / (self._problem.ridge * self._problem.null_objective)

    def _reached(self, gap: float | None = None) -> float:
        if not self._problem.ridge:
            return self._distance()
        return (self._gap if gap is None else gap) / self._problem.null_objective

    def _step(self) -> bool:
        """Go to a point that satisfies Wolfe's conditions; returns whether there was one."""
        descent = self._direction()
        rate = float(np.vdot(self._slope, descent))
        if not rate < 0.0:
            return False
        direction = self._map.coefficients(descent)
        begin, length, low, high = self._point, 1.0, 0.0, np.inf
        slack = _NOISE[self._single] * abs(begin.objective)
        for _ in range(_TRIALS):
            point = self._evaluate(begin.coefficients + length * direction)
            if not self._is_finite(point) or point.objective > begin.objective + _DECREASE * length * rate + slack:
                high = length
            else:
                slope = self._map.gradient(point.gradient)
                if float(np.vdot(slope, descent)) >= _CURVATURE * rate:
                    self._remember(np.float32(length) * descent, slope - self._slope)
                    self._go_to(point, slope)
                    return True
                low = length
            length = 2.0 * length if high == np.inf else 0.5 * (low + high)
        return False

    def _remember(self, step: Array32, change: Array32) -> None:
        product = float(np.vdot(step, change))
        if product > 0.0:
            self._pairs.append((step, change, product))

    def _direction(self) -> Array32:
        """Return −H ∇ with the inverse Hessian H of the remembered pairs (Nocedal and Wright 2006, alg. 7.4)."""
        direction, weights = -self._slope, []
        for step, change, product in reversed(self._pairs):
            weights.append(np.float32(np.vdot(step, direction) / product))
            direction -= weights[-1] * change
        if self._pairs:
            _, change, product = self._pairs[-1]
            direction *= np.float32(product / np.vdot(change, change))
        for (step, change, product), weight in zip(self._pairs, reversed(weights), strict=True):
            direction += (weight - np.float32(np.vdot(change, direction) / product)) * step
        return direction
