"""Reading delimited text block by block, with detection of header and delimiter."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from strads.dds._text import PartReader
from strads.dds.csv_dialect import Dialect, is_number, sniff_delimiter
from strads.dds.csv_parse import RecordFormat, parse_block
from strads.dds.files import Part, part_blocks
from strads.errors import ArgumentError, InputError

Header = bool | Literal["auto"]

_BLOCK_BYTES = 4 << 20  # read at a time
_SNIFFED_LINES = 100  # read to guess the dialect


@dataclass(frozen=True)
class CsvOptions:
    """Format of a file, as in `read_csv`."""

    delimiter: str | None = None  # text between fields; None: detected
    header: Header = "auto"  # whether the first line names the columns; "auto": detected
    comment: str | None = None  # how lines begin that are skipped; None: there are none

    def __post_init__(self) -> None:
        for name, text in (("delimiter", self.delimiter), ("comment", self.comment)):
            if text is not None and (not isinstance(text, str) or not text or "\n" in text):
                raise ArgumentError(f"{name} must be a string such as ',' or None, not {text!r}")
        if self.header not in (True, False, "auto"):
            raise ArgumentError(f"header is True, False or 'auto', not {self.header!r}")


def record_dtype(schema: Mapping[str, Any]) -> np.dtype:
    """The aligned record dtype of a schema: column name → dtype of a real number or bool.

    Raises
    ------
    ArgumentError
        If the schema is not such a mapping.
    """
    if not isinstance(schema, Mapping) or not schema:
        raise ArgumentError(f'a schema is a dict such as {{"user": "i4", "score": "f4"}}, not {schema!r:.60}')
    fields = []
    for name, kind in schema.items():
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"the names in a schema are text, not {name!r}")
        try:
            dtype = np.dtype(kind).newbyteorder("=")
        except TypeError as error:
            raise ArgumentError(f"column {name!r}: {kind!r} is not a dtype that NumPy knows") from error
        if dtype.kind not in "biu" and dtype not in (np.dtype("f4"), np.dtype("f8")):
            raise ArgumentError(f"column {name!r}: {dtype} cannot be read: give an integer, 'f4', 'f8' or 'bool'")
        fields.append((name, dtype))
    return np.dtype(fields, align=True)


class CsvPart(PartReader):
    """The records of the lines of one part of a file."""

    def __init__(self, part: Part, record: np.dtype, options: CsvOptions):
        self.part = part
        self._record = record
        self._options = options

    def read(self, first_line: int, _: Any = None) -> tuple[NDArray[Any], None]:
        """Parse all lines.

        A part in the middle takes its delimiter and columns from the start of the file. The result may be empty.
        """
        head = self._head_of_file() if self.part.start > 0 else None
        records = _Records(self._record)
        line = first_line
        for position, block in part_blocks(self.part, _BLOCK_BYTES):
            if head is None:
                head = self._find_head(position, block, line)
            if head is not None:
                form, data_start = head
                skipped = min(max(data_start - position, 0), len(block))
                if skipped < len(block):
                    records.append(parse_block(block[skipped:], line + block.count(b"\n", 0, skipped), form))
            line += block.count(b"\n")
            self.newlines = line - first_line
        return records.finish(), None

    def _head_of_file(self) -> tuple[RecordFormat, int] | None:
        line = 1
        for position, block in part_blocks(Part(self.part.name), _BLOCK_BYTES):
            head = self._find_head(position, block, line)
            if head is not None:
                return head
            line += block.count(b"\n")
        return None

    def _find_head(self, position: int, block: bytes, first_line: int) -> tuple[RecordFormat, int] | None:
        """Return the format, and the byte where the data begin; None if all lines are blank or comments."""
        options, columns = self._options, self._record.names or ()
        lines = _first_lines(block, first_line, Dialect(",", options.comment))
        if not lines:
            return None
        delimiter = options.delimiter or sniff_delimiter([text for _, text, _ in lines], len(columns))
        dialect = Dialect(delimiter, options.comment)
        line, text, end = lines[0]
        where = f"{self.part.name}:{line}"
        try:
            fields = dialect.split(text)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        has_header = _looks_like_header(fields, columns) if options.header == "auto" else options.header
        places = _places_by_name(fields, columns, where) if has_header else _first_places(fields, columns, where)
        form = RecordFormat(self.part.name, dialect, self._record, places, len(fields), line)
        return form, position + end if has_header else position


class _Records:
    """Records in a buffer that grows in place: peak memory is 1.25 times the result instead of twice."""

    def __init__(self, record: np.dtype) -> None:
        self._records = np.empty(0, record)
        self.count = 0

    def append(self, chunk: NDArray[Any]) -> None:
        end = self.count + len(chunk)
        if end > len(self._records):
            self._records.resize(max(end, len(self._records) * 5 // 4), refcheck=False)
        self._records[self.count : end] = chunk
        self.count = end

    def finish(self) -> NDArray[Any]:
        self._records.resize(self.count, refcheck=False)
        return self._records


def _first_lines(block: bytes, first_line: int, dialect: Dialect) -> list[tuple[int, str, int]]:
    """Return line number, text and end (in bytes) of the first lines that are neither blank nor comments."""
    lines = []
    end = 0
    for number, raw in enumerate(io.BytesIO(block), first_line):
        end += len(raw)
        text = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not dialect.is_skipped(text):
            lines.append((number, text, end))
        if len(lines) == _SNIFFED_LINES:
            break
    return lines


def _looks_like_header(fields: list[str], columns: tuple[str, ...]) -> bool:
    """Whether a line is a header: it names a column, or has no number where numbers are required."""
    if any(name in fields for name in columns):
        return True
    return not any(is_number(field) or field.lower() in ("true", "false") for field in fields[: len(columns)])


def _places_by_name(fields: list[str], columns: tuple[str, ...], where: str) -> tuple[int, ...]:
    missing = [name for name in columns if name not in fields]
    if missing:
        raise InputError(
            f"{where}: the header has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, fields))}; name columns of the file, "
            "or pass header=False if this line is data"
        )
    for name in columns:
        if fields.count(name) > 1:
            raise InputError(f"{where}: the header has {fields.count(name)} columns {name!r}: rename one of them")
    return tuple(fields.index(name) for name in columns)


def _first_places(fields: list[str], columns: tuple[str, ...], where: str) -> tuple[int, ...]:
    if len(fields) < len(columns):
        raise InputError(
            f"{where}: the schema has {len(columns)} columns, but the line has {len(fields)} fields: "
            f"{fields!r:.80}; is it cut at the right delimiter?"
        )
    return tuple(range(len(columns)))
