"""Least squares with an elastic-net penalty on a working set: sweeps find the support, Newton steps solve on it."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from strads import cluster
from strads.models.kernels import least_squares as kernels
from strads.models.kernels import local_columns
from strads.models.kernels.columns import Columns, DenseColumns

_SMALL = 1 << 16  # entries of a support below which a second thread is not worth waking
_PRODUCT = 1 << 25  # multiplications of a Gram matrix for which it is
_SWEEPS = 50  # most of them between two Newton steps
_FEWEST_SWEEPS = 5
_FEWEST_SWEEPS_DENSE = 20  # columns of few samples are correlated, and a sweep over them costs little
_RIDGE = 1e-11  # share of the largest diagonal: more columns than samples need a direction too
_CG_TOLERANCE = 0.1  # a rough step costs little, and the next one starts where it ended
_CG_ITERATIONS = 60


class LeastSquares:
    """min over v, c of ½‖r − X(v − w) − c e‖² + Σ_j l1_j |v_j| + l2_j v_j² / 2, from v = w.

    Coordinate descent finds the support and the signs: a sweep over all columns lets them in, further ones over the
    support settle it. There the objective is a parabola, to whose minimum a Newton step leads, or to where the first
    signs change. Sweeps and steps get the same share of the work.

    Parameters
    ----------
    columns
        X in float64, of shape (samples, columns).
    residual
        r, of shape (samples,).
    e
        What the intercept adds to each sample, of shape (samples,); None without an intercept.
    w, l1, l2
        Of shape (columns,).

    Attributes
    ----------
    w
        v, of shape (columns,).
    shift
        c.
    samples
        Entries touched so far.
    """

    def __init__(
        self,
        columns: Columns,
        residual: NDArray[np.float64],
        e: NDArray[np.float64] | None,
        w: NDArray[np.float64],
        l1: NDArray[np.float64],
        l2: NDArray[np.float64],
    ):
        count = len(w)
        squares, means = np.empty(count), np.zeros(count)
        kernels.prepare(columns, np.zeros(len(residual)) if e is None else e, squares, means)
        total = 1.0 if e is None else float(e @ e)
        self._problem = kernels.Subproblem(columns, squares, means, total, l1, l2)
        self._stored = residual.copy()
        self._has_intercept = e is not None
        self._everything = np.arange(count)
        self._gram: NDArray[np.float64] | None = None
        if isinstance(columns, DenseColumns):
            self._lengths = np.full(count, len(residual))
        else:
            self._lengths = np.diff(columns.indptr).astype(np.int64)
        self.w = w.copy()
        self.shift = 0.0 if e is None else float(e @ residual) / total
        self.samples = 2 * int(self._lengths.sum())

    def minimize(self, target: float, limit: int = 60) -> float:
        """Sweep and step until the duality gap is at most `target`, at most `limit` times; returns the gap."""
        gap, step_work = np.inf, 0
        fewest = _FEWEST_SWEEPS_DENSE if isinstance(self._problem.columns, DenseColumns) else _FEWEST_SWEEPS
        for _ in range(limit):
            self.shift, touched = kernels.sweeps(
                self._problem, self.w, self._stored, self.shift, fewest, _SWEEPS, step_work
            )
            self.samples += touched
            start = self.samples
            self._newton()
            step_work = self.samples - start
            gap = self.objective_and_gap()[1]
            if gap <= target:
                break
        return gap

    def objective_and_gap(self) -> tuple[float, float]:
        """Return the objective and the duality gap."""
        slopes = self._slopes(self._everything)
        w, l1, l2 = self.w, self._problem.l1, self._problem.l2
        square = float(self._stored @ self._stored)
        if self._has_intercept:
            square -= self.shift**2 * self._problem.total
        ridge = float(l2 @ w**2)
        objective = 0.5 * square + float(l1 @ np.abs(w)) + 0.5 * ridge
        excess = float(np.max(np.abs(slopes) / l1, initial=1e-300))
        response = square + ridge + float(w @ slopes)  # rᵀy, without y
        scale = min(max(response / max(square + ridge, 1e-300), -1.0 / excess), 1.0 / excess)
        return objective, objective - scale * response + 0.5 * scale**2 * (square + ridge)

    def _slopes(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return x_jᵀr − l2_j w_j of some columns."""
        out = np.empty(len(chosen))
        kernels.slopes(self._problem, self.w, self._stored, self.shift, chosen, out)
        self.samples += int(self._lengths[chosen].sum())
        return out

    def _newton(self) -> None:
        """Step to the minimum on the support, or to where signs change."""
        support = np.flatnonzero(self.w)
        if len(support) == 0:
            return
        w = self.w[support]
        signs = np.sign(w)
        rhs = self._slopes(support) - self._problem.l1[support] * signs
        step, image = self._solve(support, rhs)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lengths = np.where(step * signs < 0.0, -w / step, np.inf)
        first = float(lengths.min())
        if first >= 1.0:
            self._move(support, w + step, step, image)
            return
        # The longest step that keeps all signs, or one to the end on which coefficients stop at 0: what gains more.
        clipped = np.where(lengths < 1.0, -w, step)
        clipped_image = self._image(support, clipped)
        step, image = first * step, first * image
        if self._gain(support, rhs, clipped, clipped_image) > self._gain(support, rhs, step, image):
            self._move(support, np.where(lengths < 1.0, 0.0, w + clipped), clipped, clipped_image)
        else:
            self._move(support, np.where(lengths == first, 0.0, w + step), step, image)

    def _gain(
        self,
        support: NDArray[np.int64],
        rhs: NDArray[np.float64],
        step: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> float:
        """Return by how much a step lowers the objective."""
        bend = float(image @ image) - float(self._problem.means[support] @ step) ** 2 / self._problem.total
        return float(rhs @ step) - 0.5 * (bend + float(self._problem.l2[support] @ step**2))

    def _move(
        self,
        support: NDArray[np.int64],
        w: NDArray[np.float64],
        step: NDArray[np.float64],
        image: NDArray[np.float64],
    ) -> None:
        self.w[support] = w
        self._stored -= image
        self.shift -= float(self._problem.means[support] @ step) / self._problem.total

    def _image(self, support: NDArray[np.int64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X d."""
        self.samples += int(self._lengths[support].sum())
        return np.asarray(local_columns.combine(self._problem.columns, support, step, len(self._stored)))

    def _solve(
        self, support: NDArray[np.int64], rhs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return d with H d = rhs on the support, and X d."""
        if isinstance(self._problem.columns, DenseColumns):
            step = self._solve_directly(support, rhs)
            if step is not None:
                return step, self._image(support, step)
        return self._solve_by_conjugate_gradients(support, rhs)

    def _solve_directly(self, support: NDArray[np.int64], rhs: NDArray[np.float64]) -> NDArray[np.float64] | None:
        if self._gram is None:
            self._gram = self._make_gram()
        system = self._gram[np.ix_(support, support)]
        diagonal = np.diag_indices_from(system)
        system[diagonal] += self._problem.l2[support] + _RIDGE * system[diagonal].max()
        self.samples += len(support) ** 2 * (1 + len(support) // 48)  # some 16 multiplications are as one entry
        _, step, failed = scipy.linalg.lapack.dposv(system.T, rhs, overwrite_a=True)  # cho_solve checks for longer
        return None if failed else np.asarray(step)

    def _make_gram(self) -> NDArray[np.float64]:
        values, means = self._problem.columns.values, self._problem.means
        gram = np.empty((len(means), len(means)))
        team = cluster.current().team()
        parts = team.size if gram.size * len(values) >= _PRODUCT else 1
        bounds = len(means) * np.arange(parts + 1) // parts

        def multiply(part: int) -> None:
            rows = slice(bounds[part], bounds[part + 1])
            np.matmul(values[:, rows].T, values, out=gram[rows])
            if self._has_intercept:
                gram[rows] -= np.outer(means[rows], means / self._problem.total)

        team.for_each(multiply, parts) if parts > 1 else multiply(0)
        return gram

    def _solve_by_conjugate_gradients(
        self, support: NDArray[np.int64], rhs: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
