"""Conversion of Arrow arrays and tables to NumPy arrays."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strads.dds._storage import Storage
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError, InputError
from strads.partition import offsets_of


def storage_from_arrow(data: Any) -> Storage:
    """Copy an Arrow object to records, numbers, rows or ragged rows.

    Raises
    ------
    InputError
        If a value is null.
    ArgumentError
        If the type cannot be stored.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return records_from_table(data)
    if isinstance(data, pa.Array):
        data = pa.chunked_array([data])
    if not isinstance(data, pa.ChunkedArray):
        raise ArgumentError(
            f"from_arrow needs a pyarrow Table, RecordBatch, Array or ChunkedArray, not {type(data).__name__}"
        )
    if is_numeric(data.type):
        return _numbers(data, "the array")
    if pa.types.is_fixed_size_list(data.type) and is_numeric(data.type.value_type):
        return _rows(data)
    if (pa.types.is_list(data.type) or pa.types.is_large_list(data.type)) and is_numeric(data.type.value_type):
        return _ragged(data)
    raise ArgumentError(f"cannot store Arrow values of type {data.type}: give numbers or lists of numbers")


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is an integer, a float or a bool."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def records_from_table(table: Any) -> NDArray[Any]:
    """Aligned records of shape (rows,) with one field for each column, all of which must be numeric."""
    names = table.column_names
    if len(set(names)) != len(names) or not names:
        raise ArgumentError(f"records need columns with distinct names, not {names}: rename them")
    for field in table.schema:
        if not is_numeric(field.type):
            raise ArgumentError(
                f"column {field.name!r} is of type {field.type}, not numeric: leave it out with table.select([…])"
            )
    columns = {name: _numbers(table.column(name), f"column {name!r}") for name in names}
    records = np.empty(table.num_rows, np.dtype([(name, columns[name].dtype) for name in names], align=True))
    for name, values in columns.items():
        records[name] = values
    return records


def refuse_nulls(column: Any, what: str, first_row: int = 0) -> None:
    """Raise InputError for the first null of an array or ChunkedArray whose first value is row `first_row`."""
    if column.null_count == 0:
        return
    row = first_row + int(np.argmax(np.asarray(column.is_null())))
    raise InputError(f"{what} has no value (null) in row {row} (counted from 0): fill it in or drop the row")


def _numbers(column: Any, what: str) -> NDArray[Any]:
    refuse_nulls(column, what)
    return np.array(column.to_numpy())


def _rows(column: Any) -> NDArray[Any]:
    size = column.type.list_size
    refuse_nulls(column, "the array")
    return _flat(column, np.arange(len(column) + 1) * size).reshape(-1, size)


def _ragged(column: Any) -> RaggedArray:
    refuse_nulls(column, "the array")
    lengths = [np.asarray(chunk.value_lengths()) for chunk in column.chunks]
    offsets = offsets_of(np.concatenate(lengths) if lengths else np.empty(0, np.int64))
    return RaggedArray(_flat(column, offsets), offsets)


def _flat(column: Any, offsets: NDArray[np.int64]) -> NDArray[Any]:
    """The numbers of all lists of a column; list i starts at `offsets[i]`."""
    values = pa.chunked_array([chunk.flatten() for chunk in column.chunks], type=column.type.value_type)
    if values.null_count:
        place = int(np.argmax(values.is_null().to_numpy()))
        row = int(np.searchsorted(offsets, place, side="right")) - 1
        raise InputError(f"row {row} (counted from 0) holds a null: fill it in or drop the row")
    return np.array(values.to_numpy())
