"""The coordinates in which L-BFGS works: by the Hessian at zero coefficients, so that the first step is Newton's."""

import numpy as np
import scipy.linalg.lapack
import scipy.sparse as sp
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.models.arrays import Array
from strads.models.multinomial.problem import RidgeProblem, refuse_overflow
from strads.models.multinomial.row_blocks import in_slabs

_MAX_FEATURES = 4096  # of which a factorization is affordable
_ROWS_A_FEATURE = 4, 32  # of the sample from which the Hessian is estimated
_JITTER = 1e-6  # of the trace, and so of the largest eigenvalue: products are in single precision

Array32 = NDArray[np.float32]


class Preconditioner:
    """A linear map T of the features' coordinates: coefficients are Tᵀ v, and the gradient in v is T g.

    T = L⁻¹ diag(1 / √h_j), with h the Hessian's diagonal, and L Lᵀ the Hessian of the features, each divided by √h_j,
    or the identity if it is not given.
    """

    def __init__(self, diagonal: Array, hessian: Array | None = None, team: ThreadTeam | None = None):
        self._scale = (1.0 / np.sqrt(diagonal))[:, None]
        self._inverse: Array32 | None = None
        self._team = team
        if hessian is None:
            return
        factor, failed = scipy.linalg.lapack.dpotrf(hessian.T, lower=False, overwrite_a=True)  # Lᵀ in Fortran order
        if failed:
            raise np.linalg.LinAlgError("the Hessian is not positive definite")
        inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=False, overwrite_c=True)
        self._inverse = np.tril(inverse.T.astype(np.float32))

    def gradient(self, g: Array) -> Array32:
        """Return T g, for g of shape (features + 1, classes)."""
        return self._in_slabs((self._scale * g).astype(np.float32), transposed=False)

    def coefficients(self, v: Array32) -> Array:
        """Return Tᵀ v."""
        return self._scale * self._in_slabs(v, transposed=True)

    def _in_slabs(self, x: Array32, *, transposed: bool) -> Array32:
        if self._inverse is None or self._team is None:
            return x
        T, out = self._inverse, np.empty_like(x)

        def multiply(begin: int, end: int) -> None:
            if transposed:
                out[begin:end] = T[begin:, begin:end].T @ x[begin:]
            else:
                out[begin:end] = T[begin:end, :end] @ x[:end]

        in_slabs(multiply, len(T), T.size * x.shape[1] // 2, self._team)
        return out


def precondition(problem: RidgeProblem) -> Preconditioner:
    """Return a preconditioner from the Hessian at W = 0 with equal intercepts.

    There it is ((I − 11ᵀ/K) / K) ⊗ (X̃ᵀ diag(c) X̃) + ridge, where X̃ has a column of ones for the intercepts: for
    coefficients that sum to 0 over the classes, as those of all iterates do, the same matrix for every class. Böhning
    (1992) has a bound on the Hessian of this form. It is estimated from a sample of the rows, except for its diagonal,
    by which features are scaled first, so that their units don't matter. With many features, or if the sample shows no
    correlations of them, it is replaced by the diagonal.

    Raises
    ------
    InputError
        If it overflows.
    """
    blocks, diagonal = problem.blocks, _diagonal(problem)
    if blocks.features + 1 > _MAX_FEATURES:
        return Preconditioner(diagonal)
    rows, factor = _sample(problem, diagonal)
    hessian = blocks.gram(rows).astype(np.float64)
    hessian *= factor
    if len(rows) < blocks.samples and _noise_share(hessian, len(rows)) > 0.5:
        return Preconditioner(diagonal)
    scaled = np.einsum("jj->j", hessian)
    scaled[:] = np.maximum(scaled, 1.0) + _JITTER * len(scaled)  # the sample may lack rare features
    try:
        return Preconditioner(diagonal, hessian, blocks.team)
    except np.linalg.LinAlgError:
        return Preconditioner(diagonal)


def _noise_share(covariance: Array, samples: int) -> float:
    """Return the share of the correlations that comes from sampling (Chen et al., IEEE TSP 2010, eq. 23: OAS).

    Of independent features it is 1. From a sample of four times as many rows their covariance would seem to have a
    condition number of 9, and L-BFGS would take more steps with it than with the diagonal.

    Parameters
    ----------
    covariance : array of shape (p, p)
        In any unit; only its lower triangle counts.
    """
    p = len(covariance)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    squares = p + 2.0 * sum(float(np.square(covariance[j, :j] * (scale[:j] * scale[j])).sum()) for j in range(1, p))
    noise = (1.0 - 2.0 / p) * squares + p * p
    return noise / ((samples + 1.0 - 2.0 / p) * max(squares - p, 1e-300))


def _sample(problem: RidgeProblem, diagonal: Array) -> tuple[Array32, float]:
    """Return evenly spaced rows times the roots of their weights, and the factor from their products to the Hessian.

    Features are divided by the root of the Hessian's diagonal.
    Their products take as long as an evaluation, within limits.
    """
    blocks = problem.blocks
    least, most = _ROWS_A_FEATURE
    rows_a_feature = min(max(least, 4 * blocks.samples * blocks.classes // blocks.features**2), most)
    step = max(1, blocks.samples // (rows_a_feature * blocks.features))
    chosen, weights = blocks.X[::step], blocks.weights[::step]
    dense = chosen.toarray() if sp.issparse(chosen) else chosen
    scale = 1.0 / np.sqrt(diagonal)
    rows = np.empty((len(weights), blocks.features + 1), np.float32)
    np.multiply(dense, scale[:-1], out=rows[:, :-1], casting="same_kind")
    rows[:, -1] = scale[-1] * problem.fit_intercept
    rows *= np.sqrt(weights).astype(np.float32)[:, None]
    taken = float(weights.sum())
    share = float(blocks.weights.sum()) / taken if taken > 0.0 else 1.0
    return rows, share / blocks.classes


def _diagonal(problem: RidgeProblem) -> Array:
    """Return the Hessian's diagonal; 1 for a column of zeros that is not penalized."""
    blocks = problem.blocks
    X = blocks.X
    if sp.issparse(X):
        each = np.repeat(blocks.weights, np.diff(X.indptr)) * X.data.astype(np.float64) ** 2
        squares = np.bincount(X.indices, each, minlength=blocks.features)
    else:
        squares = np.einsum("i,ij,ij->j", blocks.weights, X, X)
    diagonal = np.append(squares, blocks.weights.sum()) / blocks.classes
    refuse_overflow(diagonal)
    diagonal[:-1] += problem.ridge
    diagonal[-1:] *= problem.fit_intercept
    diagonal[diagonal == 0.0] = 1.0
    return diagonal
