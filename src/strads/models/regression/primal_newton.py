"""Newton's method on the primal of a linear support vector machine with few features."""

from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models._blas_threads import one_blas_thread
from strads.models.arrays import Array
from strads.models.kernels.csr_rows import add_gram
from strads.models.regression.centring import NO_SHIFT, centre_far_columns
from strads.models.regression.solver import Progress
from strads.models.regression.support_vectors import DualProblem, DualSolution, SupportVectorDescent

_SUFFICIENT = 1e-4  # of the promised decrease (Armijo's rule)
_HALVINGS = 40  # most halvings of a step in a line search
_ROUNDING = 4.0 * np.finfo(np.float64).eps  # of the objective: a smaller decrease can't be seen in it
_SETTLED = 0.1  # of the gap that smoothing leaves: where the rest of it is less, the loss is smoothed less …
_FASTEST = 0.1  # … by this factor at most
_MIN_WIDTH = 1e-12  # below it, margins are rounding errors
_REGULAR = 1e-13  # added to the diagonal, and ten times as much as long as rounding errors make a factor fail


class PrimalNewton(SupportVectorDescent):
    """Minimizes ½‖w‖² + ½v² + Σ C_i ℓ(1 − y_i z_i) over w and v, with z = X w + c v (Keerthi and DeCoste 2005).

    The squared hinge is ℓ(t) = max(0, t)². The hinge max(0, t) is smoothed where t is between 0 and ε, to t²/(2ε), and
    t − ε/2 beyond (Chapelle 2007, §3.2); ε decreases as far as the gap needs it.

    The objective is piecewise quadratic: the Hessian I + Xᵀ C ℓ″ X of the samples where ℓ is curved changes by few of
    them from step to step. Its condition does not matter, since its diagonal is scaled: columns may be of any size.
    Columns far from 0 are moved there, to D = X − m: with β = c v + mᵀw the predictor is D w + β, and only the penalty
    of v = (β − mᵀw)/c knows of m; in the Hessian it is a matrix of rank 1. v is kept beside w and β, and changed by the
    steps of both: the difference of β and mᵀw would be rounding errors where m is large.

    Parameters
    ----------
    problem : DualProblem
    X : array or canonical CSR matrix of shape (samples, features)
    goal : float
        Duality gap to reach: half the squared norm of the gradient, as the penalty has curvature 1, and for the
        smoothed hinge Σ C_i t (1 − t/ε) of the samples where it is curved.
    max_iter : int
        Largest number of steps.
    variables : array of shape (samples,), optional
        y_i a_i to start from.
    """

    checkpointed = (
        *("_theta", "_v", "_z", "_hessian", "_is_active", "_steps", "_read", "_is_stuck", "_slopes", "_progress"),
        *("_width", "_next_width", "_dual", "_pulls"),
    )

    def __init__(self, problem: DualProblem, X: Any, goal: float, max_iter: int, variables: Array | None = None):
        self._problem, self._goal, self._max_iter = problem, goal, max_iter
        self._c, features = problem.constant, X.shape[1]
        self._shift = NO_SHIFT
        D: Any = X.astype(np.float64, copy=False) if sp.issparse(X) else np.ascontiguousarray(X, np.float64)
        if self._c:
            D, self._shift = centre_far_columns(D, problem.strengths)
        self._D = D
        self._m = np.zeros(features)
        self._m[self._shift.columns] = self._shift.amounts
        self._theta, self._z = np.zeros(features + 1), np.zeros(D.shape[0])  # w and β, and the predictor
        self._v = 0.0  # the weight of the constant feature
        self._steps = self._read = 0
        self._is_stuck = False
        self._limit = ExitStack()
        self._limit.enter_context(one_blas_thread())
        if variables is not None:
            signed = problem.start(variables)
            self._theta[:-1] = self._transposed(signed) + self._m * signed.sum()
            self._v = self._c * float(signed.sum())
            self._theta[-1] = self._c * self._v + self._m @ self._theta[:-1]
            self._z = D @ self._theta[:-1] + self._theta[-1]
        self._hessian = np.zeros((features + 1, features + 1))  # of the loss
        self._is_active = np.zeros(D.shape[0], np.bool_)
        self._width = self._next_width = np.inf if problem.is_squared else 1.0  # ε
        self._dual: float | None = None  # with the hinge: the largest dual objective so far …
        self._pulls: Array | None = None  # … and where it was
        self._slopes: Array | None = None  # the gradient where we are, once it is known

    def close(self) -> None:
        """Let BLAS use its threads again."""
        self._limit.close()

    def advance(self, iteration: int) -> Progress:
        """Take a step and evaluate the gap; the first iteration only evaluates."""
        missing = self._missing()
        if iteration > 1:
            if self._next_width < self._width:
                self._narrow()
            self._step(missing, self._gradient(missing) if self._slopes is None else self._slopes)
            self._steps += 1
            missing = self._missing()
        gradient = self._slopes = self._gradient(missing)
        objective, gap = self._objective(missing), self._distance(gradient)
        if self._problem.is_squared:
            gap = min(gap, objective)  # the dual objective is 0 at 0
        else:
            objective, gap = self._measure_hinge(missing, gap)
        self._progress = Progress(self._steps, self._read, objective, gap, int(np.count_nonzero(missing)))
        return self._progress

    def _measure_hinge(self, missing: Array, distance: float) -> tuple[float, float]:
        """Return the objective and the gap without smoothing, and choose how much to smooth next.

        The gap is the distance to the best point of the dual so far: with less smoothing, those after it may be worse.
        """
        pull = self._pull(missing)
        slack = float((self._problem.strengths - pull) @ missing)
        objective = self._norm() + float(self._problem.strengths @ missing)
        if self._dual is None or objective - distance - slack > self._dual:
            self._dual, self._pulls = max(objective - distance - slack, 0.0), pull
        is_settled = distance <= (1.0 if self._is_stuck else _SETTLED) * slack
        if is_settled and slack > 0.0 and self._width > _MIN_WIDTH:
            self._is_stuck = False
            self._next_width = self._width * min(max(0.5 * self._goal / slack, _FASTEST), 0.5)
        return objective, max(objective - self._dual, _ROUNDING * objective)

    def _narrow(self) -> None:
        """Smooth the loss less."""
        self._hessian[:], self._is_active = 0.0, np.zeros_like(self._is_active)
        self._width, self._slopes = self._next_width, None

    @property
    def is_over(self) -> bool:
        """Whether the goal is reached, all steps are taken, or none decreases the objective."""
        return super().is_over or self._is_stuck

    def solution(self) -> DualSolution:
        """Return w, the constant and the variables that were evaluated last, with the hinge the best ones."""
        problem = self._problem
        pulls = self._pull(self._missing()) if self._pulls is None else self._pulls
        return DualSolution(
            self._theta[:-1],
            self._c * self._v,
            self._progress,
            problem.null_objective,
            self._goal,
            problem.labels * pulls,
        )

    def _transposed(self, vector: Array) -> Array:
        self._read += self._D.size
        return np.asarray(vector @ self._D)

    def _missing(self) -> Array:
        """max(0, 1 − y_i z_i)."""
        return np.maximum(1.0 - self._problem.labels * self._z, 0.0)

    def _bounded(self, missing: Array) -> Array:
        return missing if self._problem.is_squared else np.minimum(missing, self._width)

    @property
    def _bend(self) -> float:
        """ℓ″ where the loss is curved."""
        return 2.0 if self._problem.is_squared else 1.0 / self._width

    def _pull(self, missing: Array) -> Array:
        """C_i ℓ′: a point of the dual."""
        return self._problem.strengths * (self._bend * self._bounded(missing))

    def _norm(self) -> float:
        """½‖w‖² + ½v²."""
        w, v = self._theta[:-1], self._v
        return 0.5 * (float(w @ w) + v * v)

    def _objective(self, missing: Array) -> float:
        return self._norm() + float(self._pull(missing) @ (missing - 0.5 * self._bounded(missing)))

    def _gradient(self, missing: Array) -> Array:
        """With respect to w and β."""
        u = self._problem.labels * self._pull(missing)
        gradient = np.zeros(len(self._theta))
        gradient[:-1] = self._theta[:-1] - self._transposed(u)
        if self._c:
            gradient[:-1] -= self._m * (self._v / self._c)
            gradient[-1] = self._v / self._c - u.sum()
        return gradient

    def _distance(self, gradient: Array) -> float:
        """Half the squared norm of the gradient with respect to w and v."""
        inner, outer = gradient[:-1] + self._m * gradient[-1], self._c * gradient[-1]
        return 0.5 * float(inner @ inner + outer**2)

    def _step(self, missing: Array, gradient: Array) -> None:
        """Take a Newton step, shortened until the objective (or, where rounding hides it, the gradient) decreases."""
        self._update_hessian((missing > 0.0) & (missing < self._width))
        step = self._solve(-gradient)
        image = self._D @ step[:-1] + step[-1]
        self._read += self._D.size
        start, slope = self._objective(missing), float(gradient @ step)
        change = float(step[-1] - self._m @ step[:-1]) / self._c if self._c else 0.0
        theta, v, z, length = self._theta, self._v, self._z, 1.0
        for _ in range(_HALVINGS):
            self._theta, self._v, self._z = theta + length * step, v + length * change, z + length * image
            found = self._missing()
            if -slope <= _ROUNDING * start:
                if self._distance(self._gradient(found)) < self._distance(gradient):
                    return
                break
            reached = self._objective(found)
            if reached <= start + _SUFFICIENT * length * slope or (length == 1.0 and reached < start):
                return
            length *= 0.5
        self._theta, self._v, self._z = theta, v, z
        self._is_stuck = True  # in rounding errors

    def _update_hessian(self, is_active: NDArray[np.bool_]) -> None:
        """Add the samples that now have a loss, and remove those that no longer have one."""
        changed = np.flatnonzero(is_active != self._is_active)
        if len(changed) > np.count_nonzero(is_active):
            self._hessian[:] = 0.0
            changed = np.flatnonzero(is_active)
        signs = np.where(is_active[changed], 1.0, -1.0)
        self._is_active = is_active
        weights = self._bend * self._problem.strengths[changed]
        if sp.issparse(self._D):
            add_gram(self._D.indptr, self._D.indices, self._D.data, changed, signs * weights, self._hessian)
            self._read += len(changed) * self._D.nnz // len(is_active)
            return
        rows = self._D if len(changed) == len(self._D) else self._D[changed]
        for sign in (1.0, -1.0):
            chosen = signs == sign
            if not chosen.any():
                continue
            some = rows if chosen.all() else rows[chosen]
            roots = np.sqrt(weights[chosen])
            scaled = some * roots[:, None] if np.any(roots != roots[0]) else some
            factor = 1.0 if scaled is not some else float(weights[chosen][0])
            self._hessian[:-1, :-1] += sign * factor * (scaled.T @ scaled)
            sums = sign * (weights[chosen] @ some)
            self._hessian[-1, :-1] += sums
            self._hessian[:-1, -1] += sums
            self._hessian[-1, -1] += sign * float(weights[chosen].sum())
        self._read += len(changed) * self._D.shape[1]

    def _solve(self, rhs: Array) -> Array:
        """Return H⁻¹ rhs, H = diag(1, …, 1, 0) + the Hessian of the loss + q qᵀ with q = (−m, 1)/c."""
        size = len(rhs) if self._c else len(rhs) - 1
        system = self._hessian[:size, :size].copy()
        system[np.arange(len(rhs) - 1), np.arange(len(rhs) - 1)] += 1.0
        q = np.append(-self._m, 1.0)[:size] / self._c if self._c else np.zeros(size)
        is_far = len(self._shift.columns) > 0
        if not is_far:
            system += np.outer(q, q)
        elif system[-1, -1] <= 0.0:  # no sample has a loss
            system[-1, -1] = 1.0
        scale = 1.0 / np.sqrt(np.diagonal(system))
        factor = _factor(system * np.outer(scale, scale))

        def apply(vector: Array) -> Array:
            return scale * scipy.linalg.cho_solve(factor, scale * vector, check_finite=False)

        out = np.zeros(len(rhs))
        found = apply(rhs[:size])
        if is_far:
            along = apply(q)
            found -= along * (float(q @ found) / (1.0 + float(q @ along)))
        out[:size] = found
        return out


def _factor(system: Array) -> Any:
    """Return the Cholesky factor of a matrix with ones on its diagonal, which is made regular if it is not."""
    if not np.isfinite(system).all():
        raise InputError("X and C are too large to compute with: scale the features, or choose a smaller C")
    ridge = _REGULAR
    while True:
        regular = system + np.diag(np.full(len(system), ridge))
        try:
            return scipy.linalg.cho_factor(regular, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            ridge *= 10.0
