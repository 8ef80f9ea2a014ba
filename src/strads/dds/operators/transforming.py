"""Change the rows of one node in place: compiled and on all its threads, or in Python."""

from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from strads.dds._storage import Storage
from strads.dds.operators.functions import CompiledFunction, failure, place_of
from strads.dds.operators.jobs import RowJob
from strads.dds.operators.kernels import number_dtypes, table_of, transform_kernel
from strads.dds.ragged import RaggedArray
from strads.errors import BodyError, InputError

_KEPT = "; rows that were done before keep their changes"


def transform_rows(job: RowJob) -> str | None:
    """Change rows in place; returns the reason if the function was not compiled."""
    compiled = job.compiled(writes=True)
    if isinstance(compiled, CompiledFunction):
        columns = _target_columns(job, compiled.result)
        if columns is not None:
            _transform_compiled(job, compiled, columns)
            return None
        compiled = f"it returns {compiled.result}"
    _transform_in_python(job)
    return compiled


def _target_columns(job: RowJob, result: Any) -> tuple[NDArray[Any], ...] | None:
    """Return the columns that results are written to, one per number; None if they do not fit the rows."""
    rows = job.rows
    if isinstance(result, types.NoneType):
        return ()
    if isinstance(result, types.Array):
        return () if result.ndim == 1 and (isinstance(rows, RaggedArray) or rows.ndim == 2) else None
    if isinstance(rows, RaggedArray):
        return None
    if isinstance(result, types.Record):
        return (rows,) if as_dtype(result) == rows.dtype else None
    if number_dtypes(result) is None:
        return None
    if isinstance(result, types.BaseTuple):
        if rows.dtype.names is not None:
            names = getattr(getattr(result, "instance_class", None), "_fields", rows.dtype.names)
            fits = set(names) == set(rows.dtype.names) and len(result) == len(names)
            return tuple(rows[name] for name in names) if fits else None
        return tuple(rows.T) if rows.ndim == 2 and rows.shape[1] == len(result) else None
    return (rows,) if rows.ndim == 1 and rows.dtype.names is None else None


def _transform_compiled(job: RowJob, compiled: CompiledFunction, columns: tuple[NDArray[Any], ...]) -> None:
    result = compiled.result
    kernel = job.kernel(
        compiled,
        "transform",
        lambda: transform_kernel(compiled.dispatcher, result, job.layout.is_ragged, len(columns)),
    )
    table = table_of(job.rows, writes=True)
    at = np.full((-(-len(job.rows) // job.chunk_size), 1), -1)
    size = job.chunk_size

    def explain(first: int, last: int) -> None:
        number = int(at[first // size, 0])
        row = job.rows[number : number + 1]
        copied = RaggedArray(row.values.copy(), row.offsets) if isinstance(row, RaggedArray) else row.copy()
        try:
            job.call(_writeable(copied)[0], number)
        except BodyError as error:
            raise BodyError(f"{error}{_KEPT}") from error.__cause__
        raise BodyError(f"{place_of(job.function)}\n  {job.operator}: the function failed on row {job.first + number}")

    def work(chunk: int, first: int, last: int) -> None:
        kernel(table, first, last, job.args, columns, at[chunk])

    job.in_chunks(work, size, explain)


def _transform_in_python(job: RowJob) -> None:
    rows = _writeable(job.rows)
    for number in range(len(rows)):
        row = rows[number]
        try:
            result = job.function(row, *job.args)
        except Exception as error:
            raise failure(job.operator, job.function, job.first + number, error, _KEPT) from error
        if result is None:
            continue
        try:
            if isinstance(rows, RaggedArray):
                row[...] = result
            else:
                rows[number] = tuple(result.values()) if isinstance(result, dict) else result
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{place_of(job.function)}\n  {job.operator}: what the function returned for row {job.first + number} "
                f"does not fit it: {result!r:.60} ({error}){_KEPT}"
            ) from error


def _writeable(rows: Storage) -> Storage:
    """Return rows such that a record has its fields as attributes."""
    is_records = not isinstance(rows, RaggedArray) and rows.dtype.names is not None
    return rows.view(np.recarray) if is_records else rows  # type: ignore[union-attr]
