"""Least squares with an elastic net on a working set: sweeps find the support, Newton steps solve on it."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from strads import cluster
from strads.models.arrays import Array
from strads.models.kernels import datafits, local_columns
from strads.models.kernels import least_squares as kernels
from strads.models.kernels.columns import Columns, DenseColumns
from strads.models.regression.gram_matrix import GramMatrix

_SMALL = 1 << 16  # entries of a support below which a second thread is not worth waking
_SWEEPS = 50  # largest number of sweeps between two Newton steps
_MIN_SWEEPS = 5  # smallest number of sweeps between two Newton steps
_COVARIANCE_SWEEPS = 50  # with few samples, columns are correlated, and these sweeps are cheap
_COVARIANCES_AN_ENTRY = 16  # elements of a Gram matrix processed in the time of one entry of X
_RIDGE = 1e-11  # relative to the diagonal: keeps the system regular with more columns than samples
_CRAWL = 8  # steps that do not halve the gap between them
_ROOT_OF_RIDGE = 1e-13  # in a QR factorization, which has only the root to be above the rounding errors
_MAX_FILLED = 1 << 20  # elements of sparse columns up to which they are made dense for it
_CG_TOLERANCE = 0.1  # an inexact step is cheap, and the next one starts where it ended
_CG_ITERATIONS = 60  # most iterations of the conjugate gradient method
_IDLE = 1e-9  # of the gap: a decrease of the objective that leads nowhere


class LeastSquares:
    """min over v, c of ½‖r − X(v − w) − c e‖² + Σ_j l1_j |v_j| + l2_j v_j² / 2, starting at v = w; v ≥ 0 if `positive`.

    Coordinate descent finds the support and the signs: a sweep over all columns adds coefficients, further sweeps over
    the support settle it. There the objective is quadratic, and a Newton step leads to its minimum, or to where the
    first signs change. On a support of dense columns both use its Gram matrix ("covariance updates", Friedman et al.
    2010, §2.2); sparse columns are swept over directly ("naive updates"), for as long as the conjugate gradients of
    the step take.

    Columns far from 0 that cannot be centred are nearly multiples of each other. Sweeps crawl there, and a Gram matrix
    does not tell the columns apart, as it holds the squares of the angles between them. So where little is gained,
    steps are solved by a QR factorization of the columns, and repeated until no sign changes: a sweep in between would
    only bring back what they have stopped at 0.

    Parameters
    ----------
    columns
        X in float64, of shape (samples, columns).
    residual
        r, of shape (samples,).
    e
        Coefficient of the intercept in each sample, of shape (samples,); None without an intercept.
    w, l1, l2
        Starting point and penalties, of shape (columns,).
    positive
        Whether w ≥ 0 and v ≥ 0.

    Attributes
    ----------
    w
        v, of shape (columns,).
    shift
        c.
    samples
        Number of entries touched so far.
    """

    def __init__(
        self, columns: Columns, residual: Array, e: Array | None, w: Array, l1: Array, l2: Array, positive: bool = False
    ):
        count = len(w)
        squares, means = np.empty(count), np.zeros(count)
        kernels.prepare(columns, np.zeros(len(residual)) if e is None else e, squares, means)
        total = 1.0 if e is None else float(e @ e)
        self._problem = kernels.Subproblem(columns, squares, means, total, l1, l2, positive)
        self._stored = residual.copy()
        self._e = e
        self._everything = np.arange(count)
        self._gram_matrix: GramMatrix | None = None
        if isinstance(columns, DenseColumns):
            self._gram_matrix = GramMatrix(columns.values, means, total)
            self._lengths = np.full(count, len(residual))
        else:
            self._lengths = np.diff(columns.indptr).astype(np.int64)
        self._step_work = 0
        self._crawls = False
        self.w = w.copy()
        self.shift = 0.0 if e is None else float(e @ residual) / total
        self.samples = 2 * int(self._lengths.sum())

    def minimize(self, target: float, limit: int = 60) -> float:
        """Sweep and step until the duality gap is at most `target`, up to `limit` times; returns the gap.

        Stops when only rounding errors are left: if neither the objective nor the gap decreases, even with QR.
        """
        gap = objective = milestone = np.inf
        steps = 0
        for _ in range(limit):
            before = objective, gap
            if self._gram_matrix is None:
                self._improve_by_columns()
            else:
                self._improve_by_covariances(self._gram_matrix)
            objective, gap = self.objective_and_gap()
            is_idle = objective >= before[0] - _IDLE * gap and gap >= before[1]
            if gap <= target or (is_idle and self._crawls):
                break
            milestone, steps = (gap, 0) if gap <= 0.5 * milestone else (milestone, steps + 1)
            self._crawls |= is_idle or steps >= _CRAWL
        return gap

    def _improve_by_columns(self) -> None:
        self._sweep(_MIN_SWEEPS, _SWEEPS, self._step_work)
        start = self.samples
        support = np.flatnonzero(self.w)
        self._newton(support, self._slopes(support), None)
        self._step_work = self.samples - start

    def _improve_by_covariances(self, gram_matrix: GramMatrix) -> None:
        """Sweep over the columns once, then over the support without accessing the samples."""
        self._sweep(1, 1, 0)
        support = np.flatnonzero(self.w)
        gram, slopes, w = gram_matrix.among(support), self._slopes(support), self.w[support]
        l1, l2 = self._problem.l1[support], self._problem.l2[support]
        kernels.covariance_sweeps(gram, slopes, w, l1, l2, self._problem.positive, _COVARIANCE_SWEEPS)
        self.samples += _COVARIANCE_SWEEPS * gram.size // _COVARIANCES_AN_ENTRY
        step = w - self.w[support]
        self._move(support, w, step, self._image(support, step))
        left = np.flatnonzero(w)
        if len(left) < len(w):
            support, slopes, gram = support[left], slopes[left], gram[left[:, None], left]
        self._newton(support, slopes, gram)

    def _sweep(self, fewest: int, most: int, enough: int) -> None:
        self.shift, touched = kernels.sweeps(self._problem, self.w, self._stored, self.shift, fewest, most, enough)
        self.samples += touched

    def objective_and_gap(self) -> tuple[float, float]:
        """Return the objective and the duality gap."""
        slopes = self._slopes(self._everything)
        w, l1, l2 = self.w, self._problem.l1, self._problem.l2
        square = float(self._stored @ self._stored)
        if self._e is not None:
            square -= self.shift**2 * self._problem.total
        ridge = float(l2 @ w**2)
        objective = 0.5 * square + float(l1 @ np.abs(w)) + 0.5 * ridge
        pulls = slopes if self._problem.positive else np.abs(slopes)
        excess = float(np.max(pulls / l1, initial=1e-300))
        response = square + ridge + float(w @ slopes)  # rᵀy, without y
        return objective, objective - datafits.highest_dual(response, square + ridge, excess)

    def _slopes(self, chosen: NDArray[np.int64]) -> Array:
        """Return x_jᵀr − l2_j w_j of the chosen columns."""
        out = np.empty(len(chosen))
        kernels.slopes(self._problem, self.w, self._stored, self.shift, chosen, out)
        self.samples += int(self._lengths[chosen].sum())
        return out

    def _newton(self, support: NDArray[np.int64], slopes: Array, gram: Array | None) -> None:
        """Take a Newton step to the minimum on the support, or to where signs change; further ones if it is by QR.

        Parameters
        ----------
        slopes : array of shape (m,)
            x_jᵀr − l2_j w_j.
        gram : array of shape (m, m)
            Gram matrix of the support; None for sparse columns.
        """
        factor: Array | None = None
        while len(support):
            w = self.w[support]
            signs = np.sign(w)
            rhs = slopes - self._problem.l1[support] * signs
            step, image, factor = self._solve(support, rhs, gram, factor)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                lengths = np.where(step * signs < 0.0, -w / step, np.inf)
            first = float(lengths.min())
            if first >= 1.0:
                self._move(support, w + step, step, image)
                return
            # The longest step that keeps all signs, or all of it with coefficients stopped at 0: whichever gains more.
            clipped = np.where(lengths < 1.0, -w, step)
            clipped_image = self._image(support, clipped)
            step, image = first * step, first * image
            if self._gain(support, rhs, clipped, clipped_image) > self._gain(support, rhs, step, image):
                self._move(support, np.where(lengths < 1.0, 0.0, w + clipped), clipped, clipped_image)
            else:
                self._move(support, np.where(lengths == first, 0.0, w + step), step, image)
            if factor is None:
                return
            left = np.flatnonzero(self.w[support])
            support, factor = support[left], factor[:, left]
            slopes = self._slopes(support)

    def _gain(self, support: NDArray[np.int64], rhs: Array, step: Array, image: Array) -> float:
        """Return the decrease of the objective by a step."""
        bend = float(image @ image) - float(self._problem.means[support] @ step) ** 2 / self._problem.total
        return float(rhs @ step) - 0.5 * (bend + float(self._problem.l2[support] @ step**2))

    def _move(self, support: NDArray[np.int64], w: Array, step: Array, image: Array) -> None:
        """Set the coefficients of the support to `w`; `step` is their change, `image` that of the predictor."""
        self.w[support] = w
        self._stored -= image
        self.shift -= float(self._problem.means[support] @ step) / self._problem.total

    def _image(self, support: NDArray[np.int64], step: Array) -> Array:
        """Return X d."""
        self.samples += int(self._lengths[support].sum())
        return np.asarray(local_columns.combine(self._problem.columns, support, step, len(self._stored)))

    def _solve(
        self, support: NDArray[np.int64], rhs: Array, gram: Array | None, factor: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Return d with H d = rhs on the support, X d, and R with RᵀR = H if QR was needed.

        `factor` is R of a larger support, without the columns of the others, or None.
        """
        count = len(support)
        if factor is None and not self._crawls and gram is not None:
            system = gram + np.diag(self._problem.l2[support] + _RIDGE * gram.diagonal())
            self.samples += count**2 * (1 + count // (3 * _COVARIANCES_AN_ENTRY))
            _, step, failed = scipy.linalg.lapack.dposv(system.T, rhs, overwrite_a=True)  # cho_solve checks take longer
            if not failed:
                return step, self._image(support, step), None
        if factor is None and gram is None and not (self._crawls and count * len(self._stored) <= _MAX_FILLED):
            return *self._solve_by_conjugate_gradients(support, rhs), None
        factor = self._rows(support) if factor is None else factor
        self.samples += 2 * factor.size * count // _COVARIANCES_AN_ENTRY
        factor = np.asarray(np.linalg.qr(factor, mode="r"))
        half = scipy.linalg.solve_triangular(factor, rhs, trans="T", check_finite=False)
        step = scipy.linalg.solve_triangular(factor, half, check_finite=False)
        return step, self._image(support, step), factor

    def _rows(self, support: NDArray[np.int64]) -> Array:
        """Return the columns of the support, centred, and below them the roots of the ridge: A with AᵀA = H."""
        problem = self._problem
        values = np.empty((len(self._stored), len(support)), order="F")
        local_columns.fill_dense(problem.columns, support, values)
        if self._e is not None:
            values -= np.outer(self._e, problem.means[support] / problem.total)
        return np.vstack(
            (
                values,
                np.diag(np.hypot(np.sqrt(problem.l2[support]), _ROOT_OF_RIDGE * np.sqrt(problem.squares[support]))),
            )
        )

    def _solve_by_conjugate_gradients(self, support: NDArray[np.int64], rhs: Array) -> tuple[Array, Array]:
        lengths = self._lengths[support]
        entries = int(lengths.sum())
        team = cluster.current().team()
        threads = team.size if entries >= _SMALL else 1
        bounds = np.searchsorted(np.cumsum(lengths), entries * np.arange(threads + 1) / threads).astype(np.int64)
        bounds[0], bounds[-1] = 0, len(support)
        step, image = np.zeros(len(support)), np.zeros(len(self._stored))
        partial, sums, barrier = np.empty((threads, len(image))), np.zeros((threads, 16)), np.zeros(8, np.int64)
        counts = np.zeros(threads, np.int64)

        def run(thread: int) -> None:
            counts[thread] = kernels.conjugate_gradients(
                self._problem,
                support,
                bounds,
                rhs,
                step,
                image,
                partial,
                sums,
                _CG_TOLERANCE,
                _CG_ITERATIONS,
                barrier,
                thread,
            )

        if threads == 1:
            run(0)
        else:
            team.run(run)
        self.samples += 2 * int(counts[0]) * entries
        return step, image
