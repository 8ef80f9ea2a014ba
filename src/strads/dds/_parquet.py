"""Reading Parquet files."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from strads.dds._arrow import is_numeric, refuse_nulls
from strads.errors import InputError

_ROWS_AT_A_TIME = 1 << 18


def parquet_records(name: str, record: np.dtype | None) -> NDArray[Any]:
    """Records of a Parquet file: the columns of `record`, or all numeric ones; see `read_parquet`."""
    try:
        with pyarrow.parquet.ParquetFile(name) as file:
            record = _numeric_columns(name, file.schema_arrow) if record is None else record
            _check_columns(name, file.schema_arrow, record)
            return _read(name, file, record)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read as Parquet: {error}") from error


def _numeric_columns(name: str, schema: Any) -> np.dtype:
    fields = [(field.name, field.type.to_pandas_dtype()) for field in schema if is_numeric(field.type)]
    if not fields:
        raise InputError(f"{name}: has no numeric column; its columns are {', '.join(map(repr, schema.names))}")
    return np.dtype(fields, align=True)


def _check_columns(name: str, schema: Any, record: np.dtype) -> None:
    for column in record.names or ():
        if schema.names.count(column) != 1:
            raise InputError(
                f"{name}: has {schema.names.count(column) or 'no'} column {column!r}; "
                f"its columns are {', '.join(map(repr, schema.names))}"
            )
        kind = schema.field(column).type
        if not is_numeric(kind):
            raise InputError(f"{name}: column {column!r} is of type {kind}, not numeric: leave it out of the schema")


def _read(name: str, file: Any, record: np.dtype) -> NDArray[Any]:
    rows = file.metadata.num_rows
    if rows == 0:
        raise InputError(f"{name}: the file has no rows")
    columns = record.names or ()
    records = np.empty(rows, record)
    start = 0
    for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=list(columns)):
        for column in columns:
            where = f"{name}: column {column!r}"
            values = batch.column(column)
            refuse_nulls(values, where, start)
            records[column][start : start + len(batch)] = _fit(
                values.to_numpy(zero_copy_only=False), record[column], where, start
            )
        start += len(batch)
    return records


def _fit(values: NDArray[Any], dtype: np.dtype, where: str, first_row: int) -> NDArray[Any]:
    """`values` in another dtype, if each of them is finite and fits."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            fitted = values.astype(dtype, copy=False)
        wrong = ~np.isfinite(fitted)
    elif values.dtype.kind == "b" or values.dtype == dtype:
        return values.astype(dtype, copy=False)
    else:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        low, high = (int(limits.min), int(limits.max)) if limits else (0, 1)
        wrong = ~((values >= low) & (values <= high))
        if values.dtype.kind == "f":
            # A float next to the limits of int64 may compare equal to a limit it exceeds.
            wrong |= (np.trunc(values) != values) | (values >= float(high) + 1.0)
        fitted = np.where(wrong, 0, values).astype(dtype)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise InputError(
            f"{where} has {values[place]!s} in row {first_row + place} (counted from 0), expected "
            f"{'a finite number' if dtype.kind == 'f' else 'a value'} that fits {dtype}: "
            "change the schema or drop the row"
        )
    return fitted
