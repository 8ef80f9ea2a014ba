"""Design matrices in this machine's memory; passes over their columns run on all threads."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from strads import cluster
from strads.cluster import ThreadTeam
from strads.models.arrays import Array
from strads.models.kernels import local_columns as kernels
from strads.models.kernels.columns import DenseColumns, SparseColumns, sparse_columns
from strads.models.regression.design import Design
from strads.partition import even_bounds

_PART = 1 << 18  # entries: smaller parts are read faster than a thread is woken


class LocalDesign(Design):
    """Columns in this process.

    Parameters
    ----------
    team
        The threads to use; by default those of `strads.init`.
    """

    def __init__(self, team: ThreadTeam | None = None):
        self._team = team

    def _in_parts(self, function: Callable[[int, int], None], columns: int, entries: int) -> None:
        """Call `function(begin, end)` for contiguous parts of the columns."""
        team = self._team or cluster.current().team()
        parts = min(8 * team.size, entries // _PART)
        if parts < 2 or team.size == 1:
            function(0, columns)
            return
        bounds = even_bounds(columns, parts)
        team.for_each(lambda part: function(bounds[part], bounds[part + 1]), len(bounds) - 1)

    def correlate(self, vector: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """Return Xᵀ·vector, of all columns or of those given."""
        count = self.shape[1] if columns is None else len(columns)
        out = np.empty(count)

        def part(begin: int, end: int) -> None:
            if columns is None:
                kernels.correlate_range(self.columns, vector, begin, end, out)
            else:
                kernels.correlate(self.columns, vector, columns, begin, end, out)

        self._in_parts(part, count, self.entries * count // max(1, self.shape[1]))
        return out

    @abstractmethod
    def cut(self, begin: int, end: int) -> Any:
        """Return the matrix of the columns begin..end − 1; a view of it where that is contiguous."""


class DenseDesign(LocalDesign):
    """A NumPy array, float32 or float64, in C or Fortran order; not copied.

    The attributes `shape`, `dtype`, `entries`, `columns` and `reads_columns` are those of `Design`.

    Parameters
    ----------
    reads_columns
        Whether to read it by columns, which cannot be inferred from an array with a single column.
    """

    def __init__(
        self, values: NDArray[np.floating], team: ThreadTeam | None = None, *, reads_columns: bool | None = None
    ):
        super().__init__(team)
        self.shape = values.shape
        self.dtype = values.dtype
        self.entries = values.size
        self.columns: DenseColumns = DenseColumns(values)
        self.reads_columns = not values.flags.c_contiguous if reads_columns is None else reads_columns

    def correlate(self, vector: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """Return Xᵀ·vector, of all columns or of those given."""
        if self.reads_columns:
            return super().correlate(vector, columns)
        out, values = np.empty(self.shape[1]), self.columns.values
        self._in_parts(
            lambda begin, end: kernels.correlate_rows(values, vector, begin, end, out), self.shape[1], self.entries
        )
        return out if columns is None else out[columns]

    def moments(self, weights: Array) -> tuple[Array, Array]:
        """Return Σ_i weights_i x_ij and Σ_i weights_i x_ij² of every column."""
        rows, count = self.shape
        sums, squares = np.empty(count), np.empty(count)
        self._in_parts(
            lambda begin, end: kernels.add_moments(
                self.columns.values, self.reads_columns, weights, begin, end, sums, squares
            ),
            count,
            rows * count,
        )
        return sums, squares

    def gather(self, columns: NDArray[np.int64]) -> DenseColumns:
        """Return a copy of the given columns, in float64 and Fortran order."""
        out = np.empty((self.shape[0], len(columns)), order="F")
        kernels.gather_dense(self.columns.values, columns, out)
        return DenseColumns(out)

    def cut(self, begin: int, end: int) -> NDArray[np.floating]:
        """Return the matrix of the columns begin..end − 1; a view of it where that is contiguous."""
        part = self.columns.values[:, begin:end]
        return np.asarray(part, order="F" if self.reads_columns else "C")


class SparseDesign(LocalDesign):
    """A SciPy matrix in CSC form, float32 or float64; not copied.

    The attributes `shape`, `dtype`, `entries` and `columns` are those of `Design`.
    """

    def __init__(self, matrix: sp.csc_matrix | sp.csc_array, team: ThreadTeam | None = None):
        super().__init__(team)
        self.shape = matrix.shape
        self.dtype = matrix.dtype
        self.columns: SparseColumns = sparse_columns(matrix)
        self._matrix = matrix
        self.entries = int(matrix.indptr[-1])

    def moments(self, weights: Array) -> tuple[Array, Array]:
        """Return Σ_i weights_i x_ij and Σ_i weights_i x_ij² of every column."""
        sums, squares = np.empty(self.shape[1]), np.empty(self.shape[1])
        self._in_parts(
            lambda begin, end: kernels.add_sparse_moments(*self.columns, weights, begin, end, sums, squares),
            self.shape[1],
            self.entries,
        )
        return sums, squares

    def predict(self, coef: Array) -> Array:
        """Return X · coef; no column has to be copied."""
        support = np.flatnonzero(coef)
        return np.asarray(kernels.combine(self.columns, support, coef[support], self.shape[0]))

    def gather(self, columns: NDArray[np.int64]) -> SparseColumns:
        """Return a copy of the given columns, in float64."""
        part = self._matrix[:, columns]
        kind = np.uint32 if self.shape[0] <= 1 << 32 else np.uint64
        values = part.data.astype(np.float64, copy=False)
        return SparseColumns(values, part.indices.astype(kind), part.indptr.astype(np.uint64))

    def cut(self, begin: int, end: int) -> sp.csc_matrix | sp.csc_array:
        """Return the matrix of the columns begin..end − 1; a view of it where that is contiguous."""
        return self._matrix[:, begin:end]
