"""Rows of different lengths, stored contiguously."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from strads.dds._dtypes import NUMERIC_KINDS, resolve_dtype
from strads.dds._indexing import row_number
from strads.errors import ArgumentError
from strads.partition import offsets_of, places_of

_ROWS_AT_A_TIME = 65_536


@dataclass(frozen=True, eq=False, repr=False)
class RaggedArray:
    """Sequences of numbers of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`.

    Parameters
    ----------
    values : ndarray of shape (total,)
        The numbers of all rows.
    offsets : int64 ndarray of shape (rows + 1,)
        Where each row starts; ascends from 0 to `total`.

    Raises
    ------
    ArgumentError
        If the two arrays are inconsistent.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not isinstance(self.values, np.ndarray) or self.values.ndim != 1:
            raise ArgumentError("the values of a RaggedArray must be a one-dimensional ndarray")
        if self.values.dtype.kind not in NUMERIC_KINDS:
            raise ArgumentError(f"the values of a RaggedArray must be numbers, not {self.values.dtype!r}")
        offsets = self.offsets
        if not isinstance(offsets, np.ndarray) or offsets.dtype != np.int64 or offsets.ndim != 1:
            raise ArgumentError("the offsets of a RaggedArray must be a one-dimensional int64 ndarray")
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(self.values):
            raise ArgumentError(
                f"the offsets of a RaggedArray must start at 0 and end at the number of values, {len(self.values)}"
            )
        if np.any(offsets[1:] < offsets[:-1]):
            row = int(np.argmax(offsets[1:] < offsets[:-1]))
            raise ArgumentError(f"the offsets of a RaggedArray must not fall, but row {row} has a negative length")

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float] | NDArray[Any]], dtype: DTypeLike | None = None) -> "RaggedArray":
        """Build from an iterable of sequences of numbers, in a single pass.

        Parameters
        ----------
        rows : iterable of sequences
            Each a list, tuple or one-dimensional array; may be empty.
        dtype : dtype-like, optional
            Dtype of the values. By default the one that NumPy chooses for all of them; float64 if there are none.

        Raises
        ------
        ArgumentError
            If a row is not a sequence of numbers; the message names the row.
        """
        target = None if dtype is None else resolve_dtype(dtype)
        if target is not None and target.names is not None:
            raise ArgumentError(f"ragged rows hold plain numbers, not records ({target!r})")
        chunks: list[NDArray[Any]] = []
        lengths: list[int] = []
        iterator = iter(rows)
        while batch := list(islice(iterator, _ROWS_AT_A_TIME)):
            chunks.append(_join(batch, len(lengths), target))
            lengths.extend(map(len, batch))
        filled = [chunk for chunk in chunks if len(chunk)]
        values = np.concatenate(filled) if filled else np.empty(0, target or np.float64)
        return cls(values, offsets_of(np.array(lengths, np.int64)))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each row, shape (rows,)."""
        return np.diff(self.offsets)

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the values."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of values and offsets together."""
        return self.values.nbytes + self.offsets.nbytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, index: slice) -> "RaggedArray": ...

    def __getitem__(self, index: SupportsIndex | slice) -> "NDArray[Any] | RaggedArray":
        """Return a view of one row, or the rows of a slice (also a view of the values if it has no step)."""
        if not isinstance(index, slice):
            row = row_number(index, len(self))
            return self.values[self.offsets[row] : self.offsets[row + 1]]
        start, stop, step = index.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        stop = max(start, stop)
        offsets = self.offsets[start : stop + 1]
        return RaggedArray(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.values[start:stop]

    def __repr__(self) -> str:
        return f"RaggedArray({len(self)} rows, {len(self.values)} values of {self.dtype})"

    def take(self, rows: NDArray[np.integer]) -> "RaggedArray":
        """Return a copy of the given rows (numbers in 0 … len - 1, in any order, possibly repeated)."""
        return RaggedArray(self.values[places_of(self.offsets, rows)], offsets_of(self.lengths[rows]))

    def to_list(self) -> list[list[Any]]:
        """Return the rows as lists of Python numbers."""
        return [row.tolist() for row in self]


def read_only(raw: Any) -> Any:
    """Return a read-only view of an array, or of each array of a tuple.

    Code compiled for such arrays cannot write them: if the analysis of a body misses a write, it does not compile.
    """
    if isinstance(raw, tuple):
        return tuple(map(read_only, raw))
    view = raw.view()
    view.flags.writeable = False
    return view


def _join(rows: list[Any], first: int, dtype: np.dtype | None) -> NDArray[Any]:
    """Return all numbers of a few rows, the first of which is row `first` of the table."""
    try:
        if all(isinstance(row, np.ndarray) and row.ndim == 1 for row in rows):
            joined = np.concatenate(rows)
            values = joined if dtype is None else joined.astype(dtype, copy=False)
        else:
            values = np.array(list(chain.from_iterable(rows)), dtype)
        if values.ndim == 1 and values.dtype.kind in NUMERIC_KINDS and not any(isinstance(r, str) for r in rows):
            return values
    except (TypeError, ValueError, OverflowError):
        pass
    for number, row in enumerate(rows, first):
        _check_row(row, number, dtype)
    raise ArgumentError(f"rows {first} … {first + len(rows) - 1} cannot be stored as one kind of numbers")


def _check_row(row: Any, number: int, dtype: np.dtype | None) -> None:
    what = f"row {number} of a ragged table must be a sequence of numbers"
    if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
        raise ArgumentError(f"{what}, not {row!r:.60}")
    try:
        values = np.array(list(row), dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{what}; {row!r:.60} cannot be converted ({error})") from error
    if values.ndim != 1 or (len(values) and values.dtype.kind not in NUMERIC_KINDS):
        raise ArgumentError(f"{what}, not {row!r:.60}")
