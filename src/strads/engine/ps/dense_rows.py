"""Rows of a table as arrays, and updates of rows that wait to be sent."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

from strads.engine.ps.messages import Places, RowNumbers


class DenseRows:
    """Rows in one array, by place.

    Parameters
    ----------
    values
        Array (places, columns).
    """

    def __init__(self, values: NDArray[Any]):
        self.values = values

    @staticmethod
    def accumulate(out: NDArray[Any], positions: Places, values: NDArray[Any]) -> None:
        """Add to some rows of a result, without repetitions."""
        out[positions] += values

    def __len__(self) -> int:
        return len(self.values)

    def read(self, places: Places) -> NDArray[Any]:
        """Return rows."""
        out = np.empty((len(places), self.values.shape[1]), self.values.dtype)
        gather(self.values, places, out)
        return out

    def read_into(self, places: Places, out: NDArray[Any]) -> None:
        """Copy rows to `out`; negative places are skipped."""
        gather(self.values, places, out)

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""
        return self.values.nbytes

    def clear(self, places: Places) -> None:
        """Set rows to zero."""
        self.values[places] = 0

    def add(self, places: Places, deltas: NDArray[Any]) -> None:
        """Add to rows."""
        scatter_add(self.values, places, deltas)

    def write(self, places: Places, values: NDArray[Any]) -> None:
        """Replace rows; negative places are skipped, and of repeated places the last one wins."""
        scatter(self.values, places, values)


@njit(nogil=True, cache=True)
def gather(values, places, out):  # type: ignore[no-untyped-def]
    """out[i] = values[places[i]], except where places[i] is negative."""
    for i in range(len(places)):
        place = places[i]
        if place >= 0:
            for column in range(out.shape[1]):
                out[i, column] = values[place, column]


@njit(nogil=True, cache=True)
def scatter(values, places, rows):  # type: ignore[no-untyped-def]
    """values[places[i]] = rows[i]."""
    for i in range(len(places)):
        place = places[i]
        if place >= 0:
            for column in range(rows.shape[1]):
                values[place, column] = rows[i, column]


@njit(nogil=True, cache=True)
def scatter_add(values, places, deltas):  # type: ignore[no-untyped-def]
    """values[places[i]] += deltas[i]."""
    for i in range(len(places)):
        place = places[i]
        for column in range(deltas.shape[1]):
            values[place, column] += deltas[i, column]


class Coalesced:
    """Updates that a worker has made but not sent: repeated updates of a row are summed.

    Parameters
    ----------
    rows, columns, dtype
        Shape and dtype of the table.

    Attributes
    ----------
    count
        Number of rows updated.
    """

    def __init__(self, rows: int, columns: int, dtype: DTypeLike):
        self._place_of = np.zeros(rows, np.int32)  # place + 1 of each row; 0: none. Takes memory only where written
        self._rows = np.empty(64, np.int64)
        self._deltas = np.zeros((64, columns), dtype)
        self.count = 0

    def add(self, rows: RowNumbers, deltas: NDArray[Any]) -> None:
        """Add updates of rows, which may repeat."""
        self._reserve(self.count + len(rows))
        self.count = _coalesce(self._place_of, self._rows, self._deltas, self.count, rows, deltas)

    def overlay(self, rows: RowNumbers, out: NDArray[Any]) -> None:
        """Add the pending updates to values of rows."""
        if self.count:
            _overlay(self._place_of, self._deltas, rows, out)

    def take(self) -> tuple[RowNumbers, NDArray[Any]]:
        """Return rows and their updates, in order of first use, and reset."""
        rows, deltas = self._rows[: self.count].copy(), self._deltas[: self.count].copy()
        self._place_of[rows] = 0
        self.count = 0
        return rows, deltas

    @property
    def largest(self) -> float:
        """Largest absolute value of an entry."""
        return float(np.abs(self._deltas[: self.count]).max(initial=0))

    def _reserve(self, count: int) -> None:
        limit = min(count, len(self._place_of))
        if limit > len(self._rows):
            size = min(max(limit, 2 * len(self._rows)), max(len(self._place_of), 1))
            rows, deltas = np.empty(size, np.int64), np.zeros((size, self._deltas.shape[1]), self._deltas.dtype)
            rows[: self.count], deltas[: self.count] = self._rows[: self.count], self._deltas[: self.count]
            self._rows, self._deltas = rows, deltas


@njit(nogil=True, cache=True)
def _coalesce(place_of, kept, sums, count, rows, deltas):  # type: ignore[no-untyped-def]
    """Add updates to the `count` rows `kept` and their `sums`, found by `place_of`; returns the new count."""
    for i in range(len(rows)):
        place = place_of[rows[i]] - 1
        if place < 0:
            place = count
            place_of[rows[i]] = place + 1
            kept[place] = rows[i]
            count += 1
            for column in range(deltas.shape[1]):
                sums[place, column] = deltas[i, column]
        else:
            for column in range(deltas.shape[1]):
                sums[place, column] += deltas[i, column]
    return count


@njit(nogil=True, cache=True)
def _overlay(place_of, sums, rows, out):  # type: ignore[no-untyped-def]
    """Add to `out` the sums of those `rows` that have been updated; arrays as in `_coalesce`."""
    for i in range(len(rows)):
        place = place_of[rows[i]] - 1
        if place >= 0:
            for column in range(out.shape[1]):
                out[i, column] += sums[place, column]
