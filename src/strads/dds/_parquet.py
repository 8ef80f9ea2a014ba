"""Reading Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from strads.dds._arrow import is_numeric, refuse_nulls
from strads.dds._text import PartReader
from strads.errors import InputError

_ROWS_AT_A_TIME = 1 << 18


@dataclass(frozen=True)
class RowGroups:
    """Consecutive row groups of a Parquet file, of which the first starts with row `first_row` of the file.

    The columns that are read by default are those of the file `like`.
    """

    name: str  # path of the file
    groups: range  # numbers of the row groups
    first_row: int
    like: str  # path of another file, or of the same


def share_row_groups(names: Sequence[str], nodes: int) -> list[list[RowGroups]]:
    """Assign about equally many rows to each node, in file order; row groups are not split."""
    sizes = [(name, _group_sizes(name)) for name in names]
    total = sum(sum(groups) for _, groups in sizes)
    shares: list[list[RowGroups]] = [[] for _ in range(nodes)]
    start = 0
    for name, groups in sizes:
        first_row = 0
        for group, rows in enumerate(groups):
            node = min((2 * start + rows) * nodes // max(2 * total, 1), nodes - 1)  # the node of the row group's middle
            share = shares[node]
            if share and share[-1].name == name:
                share[-1] = replace(share[-1], groups=range(share[-1].groups.start, group + 1))
            else:
                share.append(RowGroups(name, range(group, group + 1), first_row, names[0]))
            first_row += rows
            start += rows
    return shares


def _group_sizes(name: str) -> list[int]:
    with _parquet_file(name) as file:
        return [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]


class ParquetPart(PartReader):
    """Reads row groups: the columns of a record, or all numeric ones."""

    def __init__(self, part: RowGroups, record: np.dtype | None):
        self.part = part
        self._record = record

    def read(self, _: int, __: Any = None) -> tuple[NDArray[Any], None]:
        """Return the records; see `read_parquet`."""
        record = self._record
        if record is None:
            with _parquet_file(self.part.like) as file:
                record = _numeric_columns(self.part.like, file.schema_arrow)
        with _parquet_file(self.part.name) as file:
            _check_columns(self.part.name, file.schema_arrow, record.names or ())
            return _read(self.part, file, record), None


@contextmanager
def _parquet_file(name: str) -> Iterator[Any]:
    try:
        with pyarrow.parquet.ParquetFile(name) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read as Parquet: {error}") from error


def _numeric_columns(name: str, schema: Any) -> np.dtype:
    fields = [(field.name, field.type.to_pandas_dtype()) for field in schema if is_numeric(field.type)]
    if not fields:
        raise InputError(f"{name}: has no numeric column; its columns are {', '.join(map(repr, schema.names))}")
    _check_columns(name, schema, [column for column, _ in fields])
    return np.dtype(fields, align=True)


def _check_columns(name: str, schema: Any, columns: Sequence[str]) -> None:
    for column in columns:
        if schema.names.count(column) != 1:
            raise InputError(
                f"{name}: has {'two columns' if column in schema.names else 'no column'} {column!r}; "
                f"its columns are {', '.join(map(repr, schema.names))}"
            )
        kind = schema.field(column).type
        if not is_numeric(kind):
            raise InputError(f"{name}: column {column!r} is of type {kind}, not numeric: leave it out of the schema")


def _read(part: RowGroups, file: Any, record: np.dtype) -> NDArray[Any]:
    rows = sum(file.metadata.row_group(group).num_rows for group in part.groups)
    columns = record.names or ()
    records = np.empty(rows, record)
    start = 0
    for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME, row_groups=list(part.groups), columns=list(columns)):
        for column in columns:
            where = f"{part.name}: column {column!r}"
            values = batch.column(column)
            refuse_nulls(values, where, part.first_row + start)
            records[column][start : start + len(batch)] = _fit(
                values.to_numpy(zero_copy_only=False), record[column], where, part.first_row + start
            )
        start += len(batch)
    return records


def _fit(values: NDArray[Any], dtype: np.dtype, where: str, first_row: int) -> NDArray[Any]:
    """Return `values` in another dtype, if each of them is finite and fits."""
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
