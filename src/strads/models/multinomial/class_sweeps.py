"""Penalties with an ℓ1 norm: proximal Newton steps on working sets, each by sweeps over the classes.

The quadratic model of the loss couples all coefficients: its Hessian is Σ_i c_i (diag P_i − P_i P_iᵀ) ⊗ x_i x_iᵀ. With
the coefficients of the other classes fixed it is least squares with the weights c P_k (1 − P_k), so those of one class
are minimized over by coordinate descent on a small Gram matrix ("covariance updates", Friedman et al. 2010, §2.2), and
the next class sees the change through the predictors. Unlike there (§4), the coupling of the classes is exact: the
model is that of Newton's method.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import xlogy

from strads.models._iterative import Epoch, Solver
from strads.models.arrays import Array
from strads.models.kernels import local_columns
from strads.models.kernels.columns import Columns, DenseColumns, matrix_of, sparse_columns
from strads.models.kernels.least_squares import covariance_sweeps
from strads.models.kernels.softmax import residuals
from strads.models.multinomial.problem import Minimum, RidgeProblem, refuse_overflow
from strads.models.regression.solver import halved_length

_MIN_A_CLASS = 10  # coefficients in a working set
_GROWTH = 2  # ratio of a working set to the support
_LARGEST_GRAM = 512  # coefficients of a class that are minimized over together
_NEWTON_STEPS = 3  # with one working set
_SWEEPS = 20  # over the classes, in one Newton step
_INNER_SWEEPS = 10  # over the coefficients of a class, in one of these
_SETTLED = 1e-4  # change of the last sweep relative to that of the first
_SHARE_OF_GAP = 0.05  # decrease by a Newton step, relative to the gap, below which another working set is due
_RIDGE = 1e-9  # relative to the diagonal
_HALVINGS = 30  # most halvings of a step in a line search
_ROUNDING = 1e-14  # relative decrease of the objective that means nothing
_REFITS = 30


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Coefficients of one class that are minimized over together.

    Attributes
    ----------
    number
        Number of the class.
    rows
        Their rows in the array of a working set's coefficients, the intercept's included.
    l1, ridge
        Of each; 0 for the intercept.
    gram
        Their part of the Hessian, of shape (m, m).
    """

    number: int
    rows: NDArray[np.int64]
    l1: Array
    ridge: Array
    gram: Array


class ClassSweeps(Solver):
    """Minimizes Σ_i c_i (log Σ_k exp Z_ik − Z_{i, y_i}) + l1 Σ_jk |W_jk| + ridge/2 ‖W‖² to a relative gap of `tol`.

    Used within `one_blas_thread`. An epoch is a working set.

    Parameters
    ----------
    problem : RidgeProblem
        The loss and the ridge.
    l1 : float
        Above 0.
    tol : float
        Of the duality gap.

    Attributes
    ----------
    is_converged
        Whether `tol` has been reached.

    Raises
    ------
    InputError
        If the objective overflows.
    """

    checkpointed = ("_problem", "_coefficients", "_z", "_slopes", "_objective", "_gap")

    def __init__(self, problem: RidgeProblem, l1: float, tol: float):
        self._problem, self._blocks, self._l1, self._tol = problem, problem.blocks, l1, tol
        X = self._blocks.X
        self._columns = X.tocsc() if sp.issparse(X) else X
        self._weights = self._blocks.weights[:, None]
        self._labels = np.zeros((self._blocks.samples, self._blocks.classes))
        self._labels[np.arange(self._blocks.samples), self._blocks.codes] = 1.0
        self._coefficients = problem.begin.copy()
        self._z = np.zeros_like(self._labels)  # X W, without the intercepts
        if problem.first is not None:
            self._z += X @ problem.first[:-1]
        self._look()
        refuse_overflow(self._slopes)

    @property
    def is_converged(self) -> bool:
        """Whether `tol` has been reached."""
        return self._gap <= self._tol * self._problem.null_objective

    def run_epoch(self, number: int) -> Epoch:
        """Minimize over a working set, and look at all coefficients."""
        objective, gap, has_moved = self._objective, self._gap, False
        if not self.is_converged:
            has_moved = self._solve_on(self._choose())
            self._refit_intercepts()
            self._look()
        fall = objective - self._objective
        is_stuck = not has_moved or (fall <= _ROUNDING * abs(objective) and self._gap > 0.5 * gap)
        figures = {
            "active": int(np.count_nonzero(self._coefficients[:-1])),
            "gap": self._gap,
            "relative_gap": self._gap / self._problem.null_objective,
        }
        is_last = self.is_converged or is_stuck
        return Epoch(self._blocks.rows_read, self._objective, figures, is_last=is_last)

    def verdict(self) -> dict[str, float]:
        """Return whether `tol` has been reached, and what has been."""
        return {"converged": self.is_converged, "reached": self.learnt().reached}

    def learnt(self) -> Minimum:
        """Return the current coefficients."""
        return self._problem.minimum(self._coefficients, self._gap, self._gap / self._problem.null_objective)

    def _residuals(self, z: Array, intercept: Array) -> tuple[Array, float]:
        """Return R = c (P − Y), and the loss."""
        r = z.copy()
        loss, _ = residuals(r, self._blocks.codes, self._blocks.weights, intercept)
        return r, loss

    def _shares(self, r: Array) -> Array:
        """Return c P, given R."""
        return r + self._weights * self._labels

    def _refit_intercepts(self) -> None:
        """Minimize over the intercepts by Newton's method."""
        if not self._problem.fit_intercept:
            return
        b, total = self._coefficients[-1], float(self._weights.sum())
        r, loss = self._residuals(self._z, b)
        for _ in range(_REFITS):
            slope, shares = r.sum(0), self._shares(r)
            if np.abs(slope).max() <= 1e-13 * total:
                break
            scaled = np.divide(shares, self._weights, out=np.zeros_like(shares), where=self._weights > 0.0)
            step = np.linalg.lstsq(np.diag(shares.sum(0)) - shares.T @ scaled, slope, rcond=1e-12)[0]
            for halving in range(_HALVINGS):
                tried = b - 0.5**halving * step
                r, less = self._residuals(self._z, tried)
                if less <= loss + 1e-14 * abs(loss):
                    break
            b, loss = tried, less
        self._coefficients[-1] = b

    def _look(self) -> None:
        """Compute the gradient of loss and ridge with respect to W, the objective and the duality gap.

        For the dual, the ridge is further samples, one for each coefficient (Zou and Hastie 2005, lemma 1).
        """
        W, ridge = self._coefficients[:-1], self._problem.ridge
        found = self._blocks.evaluate(self._coefficients)
        self._slopes = found.gradient[:-1] + ridge * W
        self._objective = found.loss + self._penalty(W)
        scale = min(1.0, self._l1 / max(float(np.abs(self._slopes).max()), 1e-300))
        shares = self._shares(scale * self._residuals(self._z, self._coefficients[-1])[0])
        entropies = xlogy(shares, np.divide(shares, self._weights, out=np.ones_like(shares), where=shares > 0.0))
        dual = -float(entropies.sum()) - 0.5 * scale**2 * ridge * float(np.vdot(W, W))
        self._gap = max(self._objective - dual, 0.0)  # negative only by rounding

    def _penalty(self, W: Array) -> float:
        return self._l1 * float(np.abs(W).sum()) + 0.5 * self._problem.ridge * float(np.vdot(W, W))

    def _choose(self) -> NDArray[np.bool_]:
        """Return which coefficients form the working set: the support, and those with the largest slopes."""
        support = self._coefficients[:-1] != 0.0
        size = max(_MIN_A_CLASS * self._blocks.classes, _GROWTH * int(support.sum()) + self._blocks.classes)
        if size >= support.size:
            return np.ones_like(support)
        violations = np.abs(self._slopes)
        violations[support] = np.inf
        chosen = np.zeros(support.size, bool)
        chosen[np.argpartition(violations.ravel(), -size)[-size:]] = True
        return chosen.reshape(support.shape)

    def _gather(self, features: NDArray[np.int64]) -> Columns:
        """Return a copy of these columns of X, in float64, with a column of ones."""
        samples = self._blocks.samples
        if sp.issparse(self._columns):
            ones = sp.csc_array(np.ones((samples, 1)))
            return sparse_columns(sp.hstack([self._columns[:, features].astype(np.float64), ones], format="csc"))
        values = np.ones((samples, len(features) + 1), order="F")
        local_columns.gather_dense(self._columns, features, values[:, :-1])
        return DenseColumns(values)

    def _solve_on(self, chosen: NDArray[np.bool_]) -> bool:
        """Take Newton steps on a working set; returns whether any was taken."""
        features = np.flatnonzero(chosen.any(1))
        columns, used = self._gather(features), np.append(features, len(chosen))
        sets = list(self._sets(chosen[features]))
        for number in range(_NEWTON_STEPS):
            begin = self._coefficients[used]
            r, loss = self._residuals(self._z, begin[-1])
            shares = np.ascontiguousarray(self._shares(r).T)
            chunks = [self._chunk(k, rows, columns, shares[k]) for k, rows in sets]
            end, images = self._minimize_model(chunks, columns, np.ascontiguousarray(r.T), shares, begin)
            penalty = self._penalty(begin[:-1])
            promised = float(np.vdot(r, images)) + self._penalty(end[:-1]) - penalty
            images -= end[-1] - begin[-1]  # of W alone
            length = self._search_line(begin, end, images, loss + penalty, promised)
            if length == 0.0:
                return number > 0
            self._coefficients[used] = begin + length * (end - begin)
            self._z += length * images
            if -promised <= _SHARE_OF_GAP * self._gap:
                break
        return True

    def _sets(self, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the chunks' classes and rows."""
        for number in range(chosen.shape[1]):
            rows = np.flatnonzero(chosen[:, number])
            for part in np.array_split(rows, max(1, -(-len(rows) // _LARGEST_GRAM))):
                yield number, np.append(part, len(chosen)) if self._problem.fit_intercept else part

    def _chunk(self, number: int, rows: NDArray[np.int64], columns: Columns, shares: Array) -> _Chunk:
        weights = self._blocks.weights
        curvature = shares * (1.0 - np.divide(shares, weights, out=np.zeros_like(shares), where=weights > 0.0))
        is_penalized = np.ones(len(rows))
        if self._problem.fit_intercept:
            is_penalized[-1] = 0.0
        roots = np.sqrt(np.maximum(curvature, 0.0))[:, None]
        if isinstance(columns, DenseColumns):
            scaled = columns.values[:, rows] * roots
            gram = scaled.T @ scaled
        else:
            scaled = matrix_of(columns, len(shares))[:, rows].multiply(roots).tocsc()
            gram = (scaled.T @ scaled).toarray()
        diagonal = np.einsum("jj->j", gram)
        diagonal += _RIDGE * diagonal + 1e-14 * float(weights.sum())
        return _Chunk(
            number, rows, self._l1 * is_penalized, self._problem.ridge * is_penalized, np.ascontiguousarray(gram)
        )

    def _minimize_model(
        self, chunks: list[_Chunk], columns: Columns, slopes: Array, shares: Array, begin: Array
    ) -> tuple[Array, Array]:
        """Return the minimizer of the quadratic model, and the change of the predictors, of shape (samples, classes).

        Parameters
        ----------
        chunks, columns
            The working set, of coefficients in the columns.
        slopes, shares : arrays of shape (classes, samples)
            R, and c P.
        begin
            The coefficients where the model was made.
        """
        w, images, mean = begin.copy(), np.zeros_like(shares), np.zeros(shares.shape[1])  # mean: Σ_k P_k images_k
        weights = self._blocks.weights
        chances = np.divide(shares, weights, out=np.zeros_like(shares), where=weights > 0.0)
        first = 0.0
        for sweep in range(_SWEEPS):
            change = 0.0
            for chunk in chunks:
                k, rows = chunk.number, chunk.rows
                if not len(rows):
                    continue
                pull = np.empty(len(rows))
                vector = -slopes[k] - shares[k] * (images[k] - mean)
                local_columns.correlate(columns, vector, rows, 0, len(rows), pull)
                old, new = w[rows, k], w[rows, k]
                pull -= chunk.ridge * old
                covariance_sweeps(chunk.gram, pull, new, chunk.l1, chunk.ridge, False, _INNER_SWEEPS)
                step = new - old
                moving = np.flatnonzero(step)
                if not len(moving):
                    continue
                w[rows, k] = new
                image = local_columns.combine(columns, rows[moving], step[moving], len(mean))
                images[k] += image
                mean += chances[k] * image
                change += float(step @ chunk.gram @ step)
            first = first if sweep else change
            if change <= _SETTLED * first:
                break
        return w, np.ascontiguousarray(images.T)

    def _search_line(self, begin: Array, end: Array, images: Array, objective: float, promised: float) -> float:
        """Return the first of 1, ½, ¼ … at which the objective decreases sufficiently (Armijo's rule), or 0."""

        def after(length: float) -> float:
            tried = begin + length * (end - begin)
            _, loss = self._residuals(self._z + length * images, tried[-1])
            return loss + self._penalty(tried[:-1])

        return halved_length(after, objective, promised)
