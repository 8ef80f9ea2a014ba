"""Interface of a design matrix: its location, and the few operations that solvers need."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.models.arrays import Array
from strads.models.kernels import local_columns
from strads.models.kernels.columns import Columns

_AT_ONCE = 1024  # columns that are copied to be combined


class Design(ABC):
    """A matrix X of shape (samples, features), on this machine or with its columns partitioned over the nodes.

    Attributes
    ----------
    shape
        (samples, features).
    dtype
        float32 or float64.
    entries
        Number of stored entries.
    columns
        All columns, which are always in this process.
    reads_columns
        Whether correlating a few columns takes less time than correlating all of them.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    entries: int
    columns: Columns
    reads_columns: bool = True

    @abstractmethod
    def correlate(self, vector: Array, columns: NDArray[np.int64] | None = None) -> Array:
        """Return Xᵀ·vector for all columns, or for those given."""

    @abstractmethod
    def moments(self, weights: Array) -> tuple[Array, Array]:
        """Return Σ_i weights_i x_ij and Σ_i weights_i x_ij² of every column."""

    @abstractmethod
    def gather(self, columns: NDArray[np.int64]) -> Columns:
        """Return a copy of the given columns on this node, in float64 and in the order given."""

    def predict(self, coef: Array) -> Array:
        """Return X · coef, computed on this node from the columns with nonzero coefficients."""
        predictor, support = np.zeros(self.shape[0]), np.flatnonzero(coef)
        for first in range(0, len(support), _AT_ONCE):
            chosen = support[first : first + _AT_ONCE]
            everything = np.arange(len(chosen))
            predictor += local_columns.combine(self.gather(chosen), everything, coef[chosen], len(predictor))
        return predictor

    def describe_column(self, column: int) -> str:
        """Describe the error in a column whose correlation with finite numbers is not finite."""
        values = self.gather(np.array([column], np.int64)).values.ravel()
        wrong = ~np.isfinite(values)
        if not wrong.any():
            return f"column {column} of X holds values so large that their sums overflow: scale it"
        what = "NaN" if np.isnan(values[wrong]).any() else "infinity"
        return f"column {column} of X holds {what}: remove or impute it"
