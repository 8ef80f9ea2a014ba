"""A table of a parameter server, as one worker sees it."""

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as scipy_sparse

from strads.engine.ps.execution import Endpoint
from strads.engine.ps.table_format import TableFormat
from strads.errors import ArgumentError
from strads.ps._values import as_matrix, checked_rows, checked_values


class WorkerTable:
    """A table, with values of a NumPy `dtype`, as a worker sees it during a run; for the worker's own thread only."""

    def __init__(self, endpoint: Endpoint, format: TableFormat, worker: int):
        self._endpoint = endpoint
        self._worker = worker
        self._format = format
        self.dtype = np.dtype(format.dtype)
        self.seconds = 0.0  # in get, inc and clock so far

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._format.rows, self._format.columns

    def get(self, rows: ArrayLike, out: NDArray[Any] | None = None) -> Any:
        """Return a copy of rows, at most as stale as the consistency model admits; waits for fresher ones if necessary.

        Parameters
        ----------
        rows
            Row numbers, which may repeat; one number gives one row.
        out
            Contiguous array (len(rows), columns) of the table's dtype to write to; for dense tables.

        Returns
        -------
        Array (len(rows), columns), or (columns,) for one number; for a sparse table a `scipy.sparse.csr_array`.

        Raises
        ------
        BodyIndexError
            For a row that is not in the table.
        """
        start = time.perf_counter()
        wanted = checked_rows(rows, self._format.rows)
        if out is not None:
            self._check_out(out, (len(wanted), self._format.columns))
        result = self._format.make_result(len(wanted)) if out is None else out
        self._endpoint.get(self._worker, wanted, result)
        values = as_matrix(result, self._format.columns)
        self.seconds += time.perf_counter() - start
        return values[0] if np.ndim(rows) == 0 else values

    def _check_out(self, out: NDArray[Any], shape: tuple[int, int]) -> None:
        if self._format.sparse:
            raise ArgumentError("out is for dense tables: a sparse one returns a csr_array of its own")
        if out.shape != shape or out.dtype != self.dtype or not (out.flags.c_contiguous and out.flags.writeable):
            raise ArgumentError(
                f"out has shape {out.shape} and dtype {out.dtype}: a contiguous, writable {shape} of {self.dtype} "
                "is needed"
            )

    def inc(self, rows: ArrayLike, deltas: ArrayLike | scipy_sparse.sparray) -> None:
        """Add to rows: other workers see it after `clock`.

        Parameters
        ----------
        rows
            Row numbers, which may repeat.
        deltas
            What to add: an array that can be broadcast to (len(rows), columns), or a sparse array.

        Raises
        ------
        BodyIndexError
            For a row that is not in the table.
        InputError
            For deltas of the wrong shape, or fractional deltas for a table of integers.
        """
        start = time.perf_counter()
        chosen = checked_rows(rows, self._format.rows)
        self._endpoint.inc(self._worker, chosen, checked_values(deltas, len(chosen), self._format))
        self.seconds += time.perf_counter() - start

    def clock(self) -> None:
        """Send this worker's updates, and advance its clock."""
        start = time.perf_counter()
        self._endpoint.clock(self._worker)
        self.seconds += time.perf_counter() - start

    def __len__(self) -> int:
        return self._format.rows
