"""Parsing lines of delimited text into records: fast with Arrow, or field by field to locate an error."""

from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from strads.dds.csv_dialect import Dialect, is_number
from strads.errors import InputError

_BOOLS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class RecordFormat:
    """Positions of the records' columns in a file.

    Parameters
    ----------
    name : str
        The file, for error messages.
    dialect : Dialect
        How lines are split.
    record : dtype
        Aligned, with one numeric field per column read.
    places : tuple of int
        Position in a line of each field of `record`.
    width : int
        Number of fields that every line must have.
    first_line : int
        The line that determined `width`.
    is_declared : bool
        Whether the user declares the columns, and so can declare others.
    """

    name: str
    dialect: Dialect
    record: np.dtype
    places: tuple[int, ...]
    width: int
    first_line: int
    is_declared: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns read."""
        return self.record.names or ()


def parse_block(block: bytes, first_line: int, form: RecordFormat) -> NDArray[Any]:
    """Return the records of a block, whose first line is line `first_line` of the file.

    Raises
    ------
    InputError
        At the first malformed line.
    """
    records = _parse_with_arrow(block, form)
    return parse_fields(block, first_line, form) if records is None else records


def line_of_record(block: bytes, first_line: int, row: int, dialect: Dialect) -> int:
    """Return the line of a record of a block; blank lines and comments are not records."""
    lines = block.decode("utf-8", "replace").split("\n")
    filled = (number for number, text in enumerate(lines, first_line) if not dialect.is_skipped(text))
    return next(islice(filled, row, None))


def _arrow_memory(block: bytes) -> pa.Buffer:
    """Return a copy of a block that Arrow owns.

    A background thread of Arrow may release its input last. If that were a Python object, and the interpreter were
    exiting, the process would abort.
    """
    stream = pa.BufferOutputStream()
    stream.write(block)
    return stream.getvalue()


def _parse_with_arrow(block: bytes, form: RecordFormat) -> NDArray[Any] | None:
    """Return the records, or None if any line has to be parsed field by field."""
    dialect = form.dialect
    wanted = {p: pa.from_numpy_dtype(form.record[n]) for n, p in zip(form.columns, form.places, strict=True)}
    try:
        table = arrow_table(block, dialect, form.width, wanted)
    except pa.ArrowInvalid:
        return None
    if dialect.quoted and b'"' in block and table.num_rows != _count_lines(block, dialect):
        # A quote left open at the end of a line made Arrow join lines.
        return None
    if block.count(b"\r") != block.count(b"\r\n"):
        # Arrow ends lines there, too.
        return None
    if (b"0x" in block or b"0X" in block) and _has_hexadecimal(block, form):
        return None
    records = np.empty(table.num_rows, form.record)
    for name, place in zip(form.columns, form.places, strict=True):
        values = table.column(f"{place}").to_numpy()
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return None
        records[name] = values
    return records


def arrow_table(
    block: bytes, dialect: Dialect, width: int, wanted: dict[int, pa.DataType], *, check_utf8: bool = False
) -> pa.Table:
    """Return the columns at the positions `wanted`, from 0, in the types given there; named by position, in order.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a line has another number of fields than `width`, or a field is not of its type.
    """
    types = {f"{place}": kind for place, kind in wanted.items()}
    return pyarrow.csv.read_csv(
        pa.BufferReader(_arrow_memory(dialect.for_arrow(block))),
        read_options=pyarrow.csv.ReadOptions(column_names=[f"{place}" for place in range(width)]),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=dialect.arrow_delimiter, quote_char='"' if dialect.quoted else False
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], check_utf8=check_utf8
        ),
    )


def _has_hexadecimal(block: bytes, form: RecordFormat) -> bool:
    """Whether Arrow reads hexadecimal integers, which might as well be damaged decimal ones."""
    whole = [place for name, place in zip(form.columns, form.places, strict=True) if form.record[name].kind in "iu"]
    table = arrow_table(block, form.dialect, form.width, dict.fromkeys(whole, pa.binary()))
    return any(pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py() for column in table.columns)


def _count_lines(block: bytes, dialect: Dialect) -> int:
    return sum(not dialect.is_skipped(line.decode("utf-8", "replace")) for line in block.split(b"\n"))


def parse_fields(block: bytes, first_line: int, form: RecordFormat) -> NDArray[Any]:
    """Return the records, parsed in Python: slow, but the line of every field is known."""
    dialect = form.dialect
    rows = []
    for number, line in enumerate(block.decode("utf-8", "replace").split("\n"), first_line):
        if dialect.is_skipped(line):
            continue
        where = f"{form.name}:{number}"
        try:
            fields = dialect.split(line)
        except InputError as error:
            raise InputError(f"{where}: {error}: {_quote(line)}; quoted fields must not span lines") from error
        if len(fields) != form.width:
            _refuse_width(where, line, len(fields), form)
        rows.append(tuple(_number(fields[p], n, where, form) for n, p in zip(form.columns, form.places, strict=True)))
    return np.array(rows, form.record)


def _refuse_width(where: str, line: str, found: int, form: RecordFormat) -> NoReturn:
    delimiter = "whitespace" if form.dialect.delimiter == " " else repr(form.dialect.delimiter)
    raise InputError(
        f"{where}: expected {form.width} fields separated by {delimiter}, as on line {form.first_line}, "
        f"but found {found}: {_quote(line)}; correct or remove the line"
    )


def _number(text: str, column: str, where: str, form: RecordFormat) -> float:
    """Return a field as a number that fits its column, or raise InputError."""
    dtype = form.record[column]
    start = f"{where}: column {column!r} (field {form.places[form.columns.index(column)] + 1})"
    if not text:
        raise InputError(f"{start}: the field is empty, expected {_expected(dtype)}; fill it in or remove the line")
    found = f"expected {_expected(dtype)}, found {_quote(text)}"
    if not (text.lower() in _BOOLS if dtype.kind == "b" else is_number(text)):
        raise InputError(f"{start}: {found}; correct or remove the line")
    if dtype.kind == "b":
        return _BOOLS[text.lower()]
    if dtype.kind in "iu":
        return _check_integer(text, dtype, start, found, form.is_declared)
    return _check_float(text, dtype, start, found, form.is_declared)


def _check_integer(text: str, dtype: np.dtype, start: str, found: str, is_declared: bool) -> int:
    try:
        value = int(text)
    except ValueError as error:  # a number with a fraction or an exponent
        advice = "declare the column as 'f4' or 'f8', or " if is_declared else ""
        raise InputError(f"{start}: {found}; {advice}correct the line") from error
    limits = np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        advice = "declare the column as a wider type or " if is_declared else ""
        raise InputError(f"{start}: {found}, outside {limits.min} … {limits.max}; {advice}correct the line")
    return value


def _check_float(text: str, dtype: np.dtype, start: str, found: str, is_declared: bool) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise InputError(f"{start}: {found}, which is not finite; remove the line or fill in a number")
    if abs(value) > float(np.finfo(dtype).max):
        advice = "declare the column as 'f8' or " if is_declared else ""
        raise InputError(f"{start}: {found}, beyond {np.finfo(dtype).max}; {advice}correct the line")
    return value


def _expected(dtype: np.dtype) -> str:
    if dtype.kind == "b":
        return "true or false"
    return f"{'an integer' if dtype.kind in 'iu' else 'a finite number'} ({dtype})"


def _quote(text: str) -> str:
    text = text.rstrip("\r")
    return repr(text if len(text) <= 60 else text[:59] + "…")
