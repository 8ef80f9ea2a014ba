"""What keeps rows of a table, and what collects updates of them: dense and sparse ones alike."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from strads.engine.ps.messages import RowNumbers

Places = NDArray[np.int64]
Values = Any  # of some rows: an array (rows, columns), or SparseValues; values[which] is some of them
Result = Any  # takes rows that are read, result[positions] = values: an array, or a SparseResult


class RowStore(Protocol):
    """Rows by place."""

    def __len__(self) -> int:
        """How many there are."""

    @property
    def nbytes(self) -> int:
        """Memory of them."""

    def read(self, places: Places) -> Values:
        """Return rows."""

    def read_into(self, places: Places, out: Result) -> None:
        """Copy rows to those of a result; where a place is negative, nothing."""

    def add(self, places: Places, deltas: Values) -> None:
        """Add to rows, which do not repeat."""

    def write(self, places: Places, values: Values) -> None:
        """Replace rows; where a place is negative, or comes again later, nothing."""

    def clear(self, places: Places) -> None:
        """Make rows zero."""

    def accumulate(self, out: Result, positions: Places, values: Values) -> None:
        """Add to some rows of a result, which do not repeat."""


class PendingUpdates(Protocol):
    """Updates that a worker has made and not sent."""

    @property
    def count(self) -> int:
        """0 if there are none."""

    def add(self, rows: RowNumbers, deltas: Values) -> None:
        """Add updates of rows, which may repeat."""

    def overlay(self, rows: RowNumbers, out: Result) -> None:
        """Add what is here to values of rows."""

    def take(self) -> tuple[RowNumbers, Values]:
        """Return rows, each once, and their updates, and begin anew."""
