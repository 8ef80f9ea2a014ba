"""Map and filter the rows of one node: compiled and on all its threads, or in Python."""

from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

from strads.dds._results import Collector, Columns, Source
from strads.dds._selection import readable
from strads.dds._storage import Storage
from strads.dds.operators.functions import CompiledFunction, place_of
from strads.dds.operators.jobs import RowJob
from strads.dds.operators.kernels import map_kernel, number_dtypes, sequence_kernel, table_of
from strads.dds.ragged import RaggedArray


def map_rows(job: RowJob) -> tuple[Storage | Columns | None, str | None]:
    """Return a function's result for each row, and the reason if it was not compiled."""
    compiled = job.compiled()
    if isinstance(compiled, CompiledFunction):
        if isinstance(compiled.result, types.Array) and compiled.result.ndim == 1:
            return _map_sequences(job, compiled), None
        if isinstance(compiled.result, types.Record) and not isinstance(job.rows, RaggedArray):
            return _map_numbers(job, compiled, [as_dtype(compiled.result)]), None
        if (dtypes := number_dtypes(compiled.result)) is not None:
            return _map_numbers(job, compiled, dtypes), None
        compiled = f"it returns {compiled.result}"
    return _map_in_python(job), compiled


def _map_numbers(job: RowJob, compiled: CompiledFunction, dtypes: list[np.dtype[Any]]) -> NDArray[Any]:
    result, function, count = compiled.result, compiled.dispatcher, len(job.rows)
    if isinstance(result, types.NamedTuple | types.NamedUniTuple):
        fields = list(zip(result.instance_class._fields, dtypes, strict=True))
        made = np.empty(count, np.dtype(fields, align=True))
        columns = tuple(made[name] for name, _ in fields)
    elif isinstance(result, types.BaseTuple):
        made = np.empty((count, len(dtypes)), np.result_type(*dtypes))
        columns = tuple(made.T)
    else:
        made = np.empty(count, dtypes[0])
        columns = (made,)
    kernel = job.kernel(compiled, "map", lambda: map_kernel(function, result, job.layout.is_ragged))
    _run_kernel(job, kernel, columns)
    return made


def _map_sequences(job: RowJob, compiled: CompiledFunction) -> Columns:
    dtype = as_dtype(compiled.result.dtype)
    kernel = job.kernel(
        compiled, "sequences", lambda: sequence_kernel(compiled.dispatcher, dtype, job.layout.is_ragged)
    )
    lengths = np.zeros(len(job.rows), np.int64)
    values = _run_kernel(job, kernel, (lengths,))
    return Columns(("sequence", None), [np.concatenate([np.empty(0, dtype), *values])], lengths)


def _run_kernel(job: RowJob, kernel: Any, columns: tuple[NDArray[Any], ...]) -> list[Any]:
    """Run a kernel without side effects on all rows; returns its results by chunk."""
    table = table_of(job.rows)
    size = job.chunk_size
    returned: list[Any] = [None] * -(-len(job.rows) // size)

    def work(chunk: int, first: int, last: int) -> None:
        returned[chunk] = kernel(table, first, last, job.args, columns)

    job.in_chunks(work, size, job.explain_pure)
    return returned


def _map_in_python(job: RowJob) -> Columns | None:
    name = f"{place_of(job.function)}\n  {job.operator}"
    source = Source("the function", lambda row: f"{name}: row {row}", lambda row: f"row {row}", optional="")
    collector = Collector(source)
    for number, row in enumerate(readable(job.rows)):
        collector.add(job.call(row, number), job.first + number)
    return collector.columns()


def choose_rows(job: RowJob) -> tuple[NDArray[np.bool_], str | None]:
    """Return for which rows a function is true, and the reason if it was not compiled."""
    chosen = np.zeros(len(job.rows), bool)
    compiled = job.compiled()
    if isinstance(compiled, CompiledFunction):
        if isinstance(compiled.result, types.Number | types.Boolean):
            function, result = compiled.dispatcher, compiled.result
            kernel = job.kernel(compiled, "map", lambda: map_kernel(function, result, job.layout.is_ragged))
            _run_kernel(job, kernel, (chosen,))
            return chosen, None
        compiled = f"it returns {compiled.result}"
    for number, row in enumerate(readable(job.rows)):
        chosen[number] = bool(job.call(row, number))
    return chosen, compiled
