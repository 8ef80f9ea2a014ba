"""Columns of ids and of numbers from delimited text, block by block."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strads.dds.csv_dialect import Dialect
from strads.dds.csv_parse import RecordFormat, arrow_table, parse_fields
from strads.dds.files import Part, part_blocks
from strads.errors import InputError
from strads.models.corpora.documents import read_lines

_BLOCK_BYTES = 4 << 20  # read at a time
_IDS = ("user", "item")
_TEXT = pa.dictionary(pa.int32(), pa.string())
_DTYPES = {"score": np.float32, "timestamp": np.float64}


@dataclass(frozen=True)
class TextColumns:
    """Where columns lie in the lines of a file."""

    name: str  # the file
    dialect: Dialect  # how lines are split
    places: Mapping[str, int]  # position, from 0, of each column: "user" and "item", of ids, and others, of numbers
    width: int  # fields of every line
    first_line: int  # number of the first line that is not blank
    is_header: bool  # whether that line is a header
    dated: bool = False  # whether timestamps are texts, not numbers

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of texts."""
        return (*_IDS, "timestamp") if self.dated else _IDS

    @property
    def numbers(self) -> RecordFormat:
        """The columns of numbers."""
        names = [role for role in self.places if role not in self.texts]
        record = np.dtype([(role, _DTYPES[role]) for role in names])
        places = tuple(self.places[role] for role in names)
        return RecordFormat(self.name, self.dialect, record, places, self.width, self.first_line, is_declared=False)

    def line_of(self, row: int) -> int:
        """Return the line of a row, for errors."""
        filled = (number for number, line in enumerate(read_lines(self.name), 1) if not self.dialect.is_skipped(line))
        return next(islice(filled, row + self.is_header, None))


def read_columns(columns: TextColumns) -> dict[str, Any]:
    """Return the columns: texts as dictionary arrays of Arrow, scores as float32, numeric timestamps as float64.

    Raises
    ------
    InputError
        At the first malformed line.
    """
    found: dict[str, list[Any]] = {role: [] for role in columns.places}
    line = 1
    for _, block in part_blocks(Part(columns.name), _BLOCK_BYTES):
        records = _without_header(block, line, columns)
        for role, values in (_read_with_arrow(records, columns) or _read_lines(records, line, columns)).items():
            found[role].append(values)
        line += block.count(b"\n")
    texts = columns.texts
    return {
        role: pa.chunked_array(parts).unify_dictionaries().combine_chunks() if role in texts else np.concatenate(parts)
        for role, parts in found.items()
    }


def _without_header(block: bytes, line: int, columns: TextColumns) -> bytes:
    """Blank the header, so that lines keep their numbers."""
    number = columns.first_line - line
    if not columns.is_header or not 0 <= number <= block.count(b"\n"):
        return block
    lines = block.split(b"\n", number + 1)
    lines[number] = b""
    return b"\n".join(lines)


def _read_with_arrow(block: bytes, columns: TextColumns) -> dict[str, Any] | None:
    """Return the columns of a block, or None if any line has to be read by itself."""
    dialect = columns.dialect
    if dialect.quoted and b'"' in block and any(line.count(b'"') % 2 for line in block.split(b"\n")):
        return None  # a quote that is not closed on its line
    if block.count(b"\r") != block.count(b"\r\n"):
        return None  # where Arrow would end a line
    types = {role: _TEXT if role in columns.texts else pa.from_numpy_dtype(_DTYPES[role]) for role in columns.places}
    try:
        wanted = {place: types[role] for role, place in columns.places.items()}
        table = arrow_table(block, dialect, columns.width, wanted, check_utf8=True)
    except pa.ArrowInvalid:
        return None
    found = {role: table.column(f"{place}") for role, place in columns.places.items()}
    for role, values in found.items():
        if role in columns.texts:
            found[role] = values.unify_dictionaries().combine_chunks()
            texts = [text.strip() for text in found[role].dictionary.to_pylist()]
            if not all(text.strip('" ') for text in texts) or (
                dialect.quoted and any(text[0] == '"' for text in texts)
            ):
                return None
        else:
            found[role] = values.to_numpy()
            if not np.isfinite(found[role]).all():
                return None
    return found


def _read_lines(block: bytes, first_line: int, columns: TextColumns) -> dict[str, Any]:
    """Return the columns of a block, read in Python: slow, but the line of every field is known."""
    form = columns.numbers
    numbers: NDArray[np.void] = parse_fields(block, first_line, form)
    texts: dict[str, list[str]] = {role: [] for role in columns.texts}
    for number, line in enumerate(block.split(b"\n"), first_line):
        where = f"{columns.name}:{number}"
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: is not UTF-8 text ({error.reason}): convert the file") from error
        if columns.dialect.is_skipped(text):
            continue
        fields = columns.dialect.split(text)
        for role, found in texts.items():
            field = fields[columns.places[role]]
            if not field:
                raise InputError(f"{where}: the {role} is empty: fill it in or remove the line")
            found.append(field)
    return {role: pa.array(found, _TEXT) for role, found in texts.items()} | {
        role: numbers[role] for role in form.columns
    }
