"""Interfaces of row stores and of pending updates, dense or sparse."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.messages import RowNumbers

Places = NDArray[np.int64]
Values = Any  # contents of rows: an array (rows, columns), or SparseValues; values[which] selects rows
Result = Any  # target of reads, result[positions] = values: an array, or a SparseResult


class RowStore(Protocol):
    """Rows addressed by place."""

    def __len__(self) -> int:
        """Number of rows."""

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""

    def read(self, places: Places) -> Values:
        """Return rows."""

    def read_into(self, places: Places, out: Result) -> None:
        """Copy rows to a result; negative places are skipped."""

    def add(self, places: Places, deltas: Values) -> None:
        """Add to rows, without repetitions."""

    def write(self, places: Places, values: Values) -> None:
        """Replace rows; negative places are skipped, and of repeated places the last one wins."""

    def clear(self, places: Places) -> None:
        """Set rows to zero."""

    def accumulate(self, out: Result, positions: Places, values: Values) -> None:
        """Add to some rows of a result, without repetitions."""


class PendingUpdates(Protocol):
    """Updates that a worker has made but not sent."""

    @property
    def count(self) -> int:
        """Number of updates; 0 if there are none."""

    def add(self, rows: RowNumbers, deltas: Values) -> None:
        """Add updates of rows, which may repeat."""

    def overlay(self, rows: RowNumbers, out: Result) -> None:
        """Add the pending updates to values of rows."""

    def take(self) -> tuple[RowNumbers, Values]:
        """Return rows, each once, and their updates, and reset."""
