"""A table, as far as clients and servers need to know it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from strads.engine.ps.dense_rows import Coalesced, DenseRows
from strads.engine.ps.rows import PendingUpdates, Result, RowStore
from strads.engine.ps.sparse_rows import SparseCoalesced, SparseResult, SparseRows


@dataclass(frozen=True)
class TableFormat:
    """Size and kind of a table.

    Attributes
    ----------
    rows, columns, dtype
        Of the values.
    cache_bytes
        That a client may keep of it; None: all rows.
    read_my_writes
        Whether a worker's reads hold its own updates at once.
    sparse
        Whether rows are kept and sent as their entries that are not zero.
    """

    rows: int
    columns: int
    dtype: DTypeLike
    cache_bytes: int | None = None
    read_my_writes: bool = False
    sparse: bool = False

    @property
    def slots(self) -> int:
        """Rows that a client may keep."""
        if self.cache_bytes is None or self.sparse:
            return self.rows
        row = self.columns * np.dtype(self.dtype).itemsize + 17  # with what the cache keeps about it
        return min(self.rows, self.cache_bytes // row)

    def make_rows(self, places: int) -> RowStore:
        """Return so many rows of zeros."""
        kind: type[SparseRows] | type[DenseRows] = SparseRows if self.sparse else DenseRows
        return kind.zeros(places, self.columns, self.dtype)

    def make_pending(self) -> PendingUpdates:
        """Return what collects a worker's updates."""
        return SparseCoalesced(self.dtype) if self.sparse else Coalesced(self.rows, self.columns, self.dtype)

    def make_result(self, count: int) -> Result:
        """Return what takes so many rows that are read."""
        return SparseResult(count, self.dtype) if self.sparse else np.empty((count, self.columns), self.dtype)
