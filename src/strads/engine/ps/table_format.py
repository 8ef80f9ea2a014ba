"""The format of a table, shared by clients and servers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from strads.engine.ps.dense_rows import Coalesced, DenseRows
from strads.engine.ps.messages import Result
from strads.engine.ps.sparse_rows import SparseCoalesced, SparseResult, SparseRows

RowStore = DenseRows | SparseRows  # rows addressed by place
PendingUpdates = Coalesced | SparseCoalesced  # updates that a worker has made but not sent


@dataclass(frozen=True)
class TableFormat:
    """Size and kind of a table.

    Attributes
    ----------
    rows, columns, dtype
        Shape and dtype of the values.
    cache_bytes
        Memory that a client may use to cache rows; None: enough for all rows.
    read_my_writes
        Whether a worker's reads include its own updates immediately.
    sparse
        Whether only nonzero entries of rows are stored and sent.
    """

    rows: int
    columns: int
    dtype: DTypeLike
    cache_bytes: int | None = None
    read_my_writes: bool = False
    sparse: bool = False

    @property
    def slots(self) -> int:
        """Number of rows that a client may cache."""
        if self.cache_bytes is None or self.sparse:
            return self.rows
        row = self.columns * np.dtype(self.dtype).itemsize + 17  # including the cache's bookkeeping
        return min(self.rows, self.cache_bytes // row)

    def make_rows(self, places: int) -> RowStore:
        """Return `places` rows of zeros; they take memory only where written."""
        if self.sparse:
            return SparseRows(places, self.dtype)
        return DenseRows(np.zeros((places, self.columns), self.dtype))

    def make_pending(self) -> PendingUpdates:
        """Return a collector of a worker's updates."""
        return SparseCoalesced(self.dtype) if self.sparse else Coalesced(self.rows, self.columns, self.dtype)

    def make_result(self, count: int) -> Result:
        """Return a target for reading `count` rows."""
        return SparseResult(count, self.dtype) if self.sparse else np.empty((count, self.columns), self.dtype)
