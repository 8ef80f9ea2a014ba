"""Rows of a table with few nonzero entries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike, NDArray

from strads.engine.ps.messages import Places, RowNumbers


class SparseValues:
    """Some rows in compressed sparse row form, with ascending columns.

    Parameters
    ----------
    starts
        Array (rows + 1,): where the entries of each row begin.
    columns, values
        Column and value of each entry.
    """

    def __init__(self, starts: NDArray[np.int64], columns: NDArray[np.int32], values: NDArray[Any]):
        self.starts = starts
        self.columns = columns
        self.values = values

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, which: Any) -> "SparseValues":
        """Return some of the rows: a slice, a mask or places."""
        places = np.arange(len(self))[which]
        starts, sizes = self.starts[:-1][places], np.diff(self.starts)[places]
        return _contiguous(self.columns, self.values, starts, sizes)


def _contiguous(
    columns: NDArray[np.int32], values: NDArray[Any], starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> SparseValues:
    """Return the rows at `starts` in a pool (`columns`, `values`), with `sizes` entries."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    found = SparseValues(ends, np.empty(ends[-1], columns.dtype), np.empty(ends[-1], values.dtype))
    _copy_rows(columns, values, starts, sizes, found.columns, found.values, ends[:-1])
    return found


class SparseResult:
    """Rows being assembled: assigned values are added to a row's existing ones."""

    def __init__(self, count: int, dtype: DTypeLike):
        self._count = count
        self._dtype = dtype
        self._parts: list[tuple[Places, SparseValues]] = []

    def __setitem__(self, positions: Places, values: SparseValues) -> None:
        if len(values.columns):
            self._parts.append((positions, values))

    def assembled(self) -> SparseValues:
        """Return all rows."""
        return coalesced(self._count, *_entries(self._parts, self._dtype))


def _entries(
    parts: Sequence[tuple[NDArray[np.int64], SparseValues]], dtype: DTypeLike
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Return row, column and value of all entries of some numbered rows."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, dtype)
    rows = [np.repeat(numbers, np.diff(part.starts)) for numbers, part in parts]
    columns, values = [part.columns for _, part in parts], [part.values for _, part in parts]
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def coalesced(count: int, rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]) -> SparseValues:
    """Return unordered entries as rows; those with the same row and column are summed in order."""
    order = np.argsort(rows << 32 | columns, kind="stable")  # half the time of np.lexsort
    return SparseValues(*_sum_sorted(count, rows[order], columns[order], values[order]))


class SparseRows:
    """Rows of zeros at first, addressed by place, each with spare room in a common pool.

    Parameters
    ----------
    places
        Number of rows.
    dtype
        Dtype of the values.
    """

    def __init__(self, places: int, dtype: DTypeLike):
        self._starts = np.zeros(places, np.int64)
        self._sizes = np.zeros(places, np.int64)
        self._rooms = np.zeros(places, np.int64)
        self._columns = np.empty(1024, np.int32)
        self._values = np.empty(1024, dtype)
        self._end = 0
        self._room = 0  # total over all rows

    @staticmethod
    def accumulate(out: SparseResult, positions: Places, values: SparseValues) -> None:
        """Add to some rows of a result."""
        out[positions] = values

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def nbytes(self) -> int:
        """Memory of the entries, including spare room."""
        return self._room * (4 + self._values.itemsize)

    def read(self, places: Places) -> SparseValues:
        """Return rows."""
        return _contiguous(self._columns, self._values, self._starts[places], self._sizes[places])

    def read_into(self, places: Places, out: SparseResult) -> None:
        """Copy rows to a result; negative places are skipped."""
        here = np.flatnonzero(places >= 0)
        if len(here):
            out[here] = self.read(places[here])

    def add(self, places: Places, deltas: SparseValues) -> None:
        """Add to rows, which must not repeat; entries that become 0 are removed."""
        self._reserve(places, self._sizes[places] + np.diff(deltas.starts))
        _merge(
            self._columns, self._values, self._starts, self._sizes,
            places, deltas.starts, deltas.columns, deltas.values,
        )  # fmt: skip

    def write(self, places: Places, values: SparseValues) -> None:
        """Replace rows; negative places are skipped, and of repeated places the last one wins."""
        last = np.unique(places[::-1], return_index=True)[1]
        chosen = np.sort(len(places) - 1 - last)
        chosen = chosen[places[chosen] >= 0]
        self._sizes[places[chosen]] = 0
        self.add(places[chosen], values[chosen])

    def clear(self, places: Places) -> None:
        """Set rows to zero and release their room; places must not repeat."""
        self._room -= int(self._rooms[places].sum())
        self._sizes[places] = self._rooms[places] = 0

    def _reserve(self, places: Places, sizes: NDArray[np.int64]) -> None:
        """Ensure room for `sizes` entries in each row."""
        short = sizes > self._rooms[places]
        if not short.any():
            return
        places, rooms = places[short], np.maximum(2 * sizes[short], 4)
        needed = int(rooms.sum())
        if self._end + needed > len(self._columns):
            self._compact(needed)
        self._room += needed - int(self._rooms[places].sum())
        starts = self._end + np.cumsum(rooms) - rooms
        pool = self._columns, self._values
        _copy_rows(*pool, self._starts[places], self._sizes[places], *pool, starts)
        self._starts[places], self._rooms[places] = starts, rooms
        self._end += needed

    def _compact(self, needed: int) -> None:
        """Compact all rows, each with its room (some are about to grow into it), leaving free space at the end."""
        starts = np.cumsum(self._rooms) - self._rooms
        columns = np.empty(2 * (self._room + needed), np.int32)
        values = np.empty(len(columns), self._values.dtype)
        _copy_rows(self._columns, self._values, self._starts, self._sizes, columns, values, starts)
        self._columns, self._values, self._starts, self._end = columns, values, starts, self._room


class SparseCoalesced:
    """Updates that a worker has made but not sent.

    Parameters
    ----------
    dtype
        Dtype of the values.
    """

    def __init__(self, dtype: DTypeLike):
        self._dtype = dtype
        self._parts: list[tuple[RowNumbers, SparseValues]] = []

    @property
    def count(self) -> int:
        """Number of row updates, including repeated rows."""
        return sum(len(rows) for rows, _ in self._parts)

    def add(self, rows: RowNumbers, deltas: SparseValues) -> None:
        """Add updates of rows, which may repeat; the arguments are copied."""
        if len(deltas.columns):
            self._parts.append((rows.copy(), deltas[:]))

    def overlay(self, rows: RowNumbers, out: SparseResult) -> None:
        """Add the pending updates to values of rows."""
        if self._parts:
            updated, deltas = self._coalesced()
            self._parts = [(updated, deltas)]
            places = np.minimum(np.searchsorted(updated, rows), len(updated) - 1)
            here = np.flatnonzero(updated[places] == rows)
            out[here] = deltas[places[here]]

    def take(self) -> tuple[RowNumbers, SparseValues]:
        """Return rows, ascending, and their updates, and reset."""
        taken = self._coalesced()
        self._parts = []
        return taken

    def _coalesced(self) -> tuple[RowNumbers, SparseValues]:
        of_entries, *entries = _entries(self._parts, self._dtype)
        updated, places = np.unique(of_entries, return_inverse=True)
        return updated, coalesced(len(updated), places, *entries)


@njit(nogil=True, cache=True)
def _copy_rows(columns, values, starts, sizes, out_columns, out_values, out_starts):  # type: ignore[no-untyped-def]
    """Copy the rows at `starts` in a pool (`columns`, `values`), with `sizes` entries, to `out_starts` in another.

    The two pools may be the same one.
    """
    for i in range(len(starts)):
        for k in range(sizes[i]):
            out_columns[out_starts[i] + k] = columns[starts[i] + k]
            out_values[out_starts[i] + k] = values[starts[i] + k]


@njit(nogil=True, cache=True)
def _sum_sorted(count, rows, columns, values):  # type: ignore[no-untyped-def]
    """Return starts, columns and values of `count` rows, given entries sorted by row and column; sums duplicates."""
    starts = np.zeros(count + 1, np.int64)
    out_columns, out_values = np.empty_like(columns), np.empty_like(values)
    end = 0
    for i in range(len(rows)):
        if i > 0 and rows[i] == rows[i - 1] and columns[i] == columns[i - 1]:
            out_values[end - 1] += values[i]
        else:
            out_columns[end], out_values[end] = columns[i], values[i]
            end += 1
            starts[rows[i] + 1] += 1
    for row in range(count):
        starts[row + 1] += starts[row]
    return starts, out_columns[:end].copy(), out_values[:end].copy()


@njit(nogil=True, cache=True)
def _merge(columns, values, starts, sizes, places, delta_starts, delta_columns, deltas):  # type: ignore[no-untyped-def]
    """Add sparse deltas to the rows `places` of a pool; updates `sizes`, and drops entries that become 0.

    Row p of the pool (`columns`, `values`) begins at `starts[p]`, has `sizes[p]` entries, and must have room for the
    new ones. The i-th of `places` gets the entries `delta_starts[i]:delta_starts[i + 1]` of `delta_columns` and
    `deltas`. Columns ascend in each row of either.
    """
    longest = 0
    for i in range(len(places)):
        longest = max(longest, sizes[places[i]] + delta_starts[i + 1] - delta_starts[i])
    merged_columns, merged_values = np.empty(longest, columns.dtype), np.empty(longest, values.dtype)
    for i in range(len(places)):
        a, a_end = starts[places[i]], starts[places[i]] + sizes[places[i]]
        b, b_end = delta_starts[i], delta_starts[i + 1]
        count = 0
        while a < a_end or b < b_end:
            if b == b_end or (a < a_end and columns[a] < delta_columns[b]):
                column, value = columns[a], values[a]
                a += 1
            elif a == a_end or delta_columns[b] < columns[a]:
                column, value = delta_columns[b], deltas[b]
                b += 1
            else:
                column, value = columns[a], values[a] + deltas[b]
                a += 1
                b += 1
            if value != 0:
                merged_columns[count], merged_values[count] = column, value
                count += 1
        start = starts[places[i]]
        for k in range(count):
            columns[start + k], values[start + k] = merged_columns[k], merged_values[k]
        sizes[places[i]] = count
