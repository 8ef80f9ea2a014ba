"""The Gram matrix of a dense matrix, computed for the columns requested so far."""

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.models.arrays import Array

_PARALLEL = 1 << 25  # multiplications from which a second thread is worth waking
_AT_A_TIME = 1 << 21  # entries of X to copy contiguously: the working set is already a copy


class GramMatrix:
    """XᵀX − a aᵀ / E of centred columns (see `kernels.least_squares`); extended as columns are requested.

    Parameters
    ----------
    values
        X, float64 in Fortran order.
    means
        a, of shape (columns,); zeros for columns that are not to be centred.
    total
        E.
    """

    def __init__(self, values: Array, means: Array, total: float):
        self._rows, self._means, self._total = values.T, means, total
        self._known = np.empty(0, np.int64)
        self._places = np.full(len(means), -1)  # position of each column among the known ones; −1 if unknown
        self._gram = np.empty((0, 0))

    def among(self, columns: NDArray[np.int64]) -> Array:
        """Return a float64 copy of shape (m, m) of the part for distinct columns, int64 of shape (m,)."""
        new = columns[self._places[columns] < 0]
        if len(new):
            self._extend(new)
        places = self._places[columns]
        return np.asarray(self._gram[places[:, None], places])

    def _extend(self, new: NDArray[np.int64]) -> None:
        old = len(self._known)
        self._known = np.concatenate((self._known, new))
        self._places[new] = np.arange(old, len(self._known))
        count, samples = len(self._known), self._rows.shape[1]
        grown, means = np.empty((count, count)), self._means[self._known]
        width = max(1, _AT_A_TIME // count)
        team = cluster.current().team()
        parts = team.size if len(new) * count * samples >= _PARALLEL else 1
        bounds = old + len(new) * np.arange(parts + 1) // parts

        def multiply(part: int) -> None:
            mine = slice(bounds[part], bounds[part + 1])
            grown[mine] = np.outer(means[mine], means / -self._total)
            for begin in range(0, samples, width):
                rows = self._rows[self._known, begin : begin + width]
                grown[mine] += rows[mine] @ rows.T

        team.for_each(multiply, parts) if parts > 1 else multiply(0)
        grown[:old, :old] = self._gram
        grown[:old, old:] = grown[old:, :old].T
        self._gram = grown
