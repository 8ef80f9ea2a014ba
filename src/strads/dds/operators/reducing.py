"""Combine the rows of one node: compiled and on all its threads, or in Python."""

from typing import Any

import numpy as np
from numba import typeof, types
from numba.core.errors import NumbaError
from numba.np.numpy_support import as_dtype

from strads.dds._selection import readable
from strads.dds._storage import Storage
from strads.dds.operators.functions import CompiledFunction, Function, failure
from strads.dds.operators.jobs import RowJob
from strads.dds.operators.kernels import reduce_kernel, table_of
from strads.dds.ragged import RaggedArray

_REDUCED_ROWS = 4096  # a fixed number, so that the result does not depend on the number of threads


def reduce_rows(job: RowJob) -> tuple[Any, str | None]:
    """Combine all rows pairwise, from left to right in chunks; there is at least one row."""
    compiled = job.compiled(rows=2)
    is_plain = not isinstance(job.rows, RaggedArray) and job.rows.dtype.names is None
    if isinstance(compiled, CompiledFunction) and is_plain:
        assert isinstance(job.rows, np.ndarray)
        function, copies = compiled.dispatcher, job.rows.ndim > 1
        kernel = job.kernel(compiled, "reduce", lambda: reduce_kernel(function, copies))
        try:
            kernel.compile((typeof(table_of(job.rows)), types.int64, types.int64))
            return _reduce_compiled(job, kernel), None
        except (NumbaError, NotImplementedError) as error:
            compiled = str(error).splitlines()[0]
    reason = compiled if isinstance(compiled, str) else "rows are records or ragged"
    return _reduce_in_python(job), reason


def _reduce_compiled(job: RowJob, kernel: Any) -> Any:
    table = table_of(job.rows)
    dtype = _result_dtype(kernel, table)
    partial: list[Any] = [None] * -(-len(job.rows) // _REDUCED_ROWS)

    def work(chunk: int, first: int, last: int) -> None:
        partial[chunk] = kernel(table, first, last)

    def explain(first: int, last: int) -> None:
        _fold(job, job.rows[first:last], job.first + first)

    job.in_chunks(work, _REDUCED_ROWS, explain)
    total = partial[0]
    if len(partial) > 1:
        total = kernel(table_of(np.array(partial, dtype)), 0, len(partial))
    return np.array(total, dtype)[()]


def _result_dtype(kernel: Any, table: Any) -> np.dtype[Any]:
    signature = kernel.overloads[(typeof(table), types.int64, types.int64)].signature
    result = signature.return_type
    return as_dtype(result.dtype if isinstance(result, types.Array) else result)


def _reduce_in_python(job: RowJob) -> Any:
    partial = [
        _fold(job, job.rows[first : first + _REDUCED_ROWS], job.first + first)
        for first in range(0, len(job.rows), _REDUCED_ROWS)
    ]
    return combine(job.operator, job.function, partial, None)


def _fold(job: RowJob, rows: Storage, first: int) -> Any:
    return combine(job.operator, job.function, list(readable(rows)), first)


def combine(operator: str, function: Function, values: list[Any], first: int | None) -> Any:
    """Combine values in Python, from left to right; the second is row `first + 1`."""
    total = values[0]
    for number, value in enumerate(values[1:], 1):
        try:
            total = function(total, value)
        except Exception as error:
            row = None if first is None else first + number
            raise failure(operator, function, row, error) from error
    return total
