"""Ratings from any supported kind of file: choice of columns, check of ids."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

import strads
from strads.dds.csv_dialect import Dialect, is_number, sniff_delimiter
from strads.dds.files import check_file, line_blocks
from strads.errors import InputError

FIELDS = ("user", "item", "score")
_TYPES = ("i4", "i4", "f4")
_TEXT_SUFFIXES = {".csv", ".tsv", ".txt", ".data", ".dat", ".tab", ""}
_COMPRESSED_SUFFIXES = {".gz", ".bz2", ".zst", ".lz4", ".zip"}
_PEEKED_LINES = 100
_BLOCK_BYTES = 1 << 20
_UNUSED_PER_RATING = 50
_UNUSED_ALLOWED = 10_000_000
_MAP_FIRST = "map ids to 0, 1, 2, … first, for example with numpy.unique(ids, return_inverse=True)"


@dataclass(frozen=True)
class Ratings:
    """Ratings and their origin.

    Parameters
    ----------
    records : structured ndarray with the fields user, item, score
        In the order of the file.
    columns : tuple of str
        The file's column names for user, item and score; without a header the positions "1", "2", "3".
    """

    records: NDArray[np.void]
    columns: tuple[str, ...]

    def distinct(self, field: str) -> int:
        """Number of distinct users or items with a rating."""
        return int(np.count_nonzero(np.bincount(self.records[field])))


def read_ratings(path: Path, columns: tuple[str, ...] | None, delimiter: str | None) -> Ratings:
    """Read ratings from delimited text (compressed or not) or Parquet.

    Parameters
    ----------
    path : Path
        The file; its kind and compression are recognised by its content.
    columns : tuple of str or None
        Names of the columns of user, item and score. None: the columns of these very names if the file has
        them, else its first three.
    delimiter : str or None
        None: detected automatically.

    Raises
    ------
    InputError
        For any invalid input; names file and line (or row).
    """
    name = check_file(path)
    if _is_parquet(name):
        if delimiter is not None:
            raise InputError(f"{name}: is a Parquet file, it has no delimiter: leave --delimiter out")
        chosen = _choose(name, _parquet_columns(name), columns)
        table = _read(strads.read_parquet, path, chosen)
        shown = chosen
    else:
        _check_kind(path)
        first = _first_line(name, delimiter)
        chosen = _choose_of_text(name, first, columns)
        table = _read(partial(strads.read_csv, delimiter=first.delimiter, header=first.is_header), path, chosen)
        shown = chosen if first.is_header else ("1", "2", "3")
    records = _renamed(table.to_numpy())
    _check_ids(name, records)
    return Ratings(records, shown)


@dataclass(frozen=True)
class _FirstLine:
    """The first non-blank line of a text; empty texts are handled elsewhere."""

    fields: list[str]
    delimiter: str | None
    place: str

    @property
    def is_header(self) -> bool:
        return bool(self.fields) and not any(map(is_number, self.fields[: len(FIELDS)]))


def _is_parquet(name: str) -> bool:
    with open(name, "rb") as file:
        return file.read(4) == b"PAR1"


def _check_kind(path: Path) -> None:
    """Reject spreadsheets, archives of arrays and the like by format, not by errors in garbled lines."""
    suffix = path.suffix.lower()
    with open(path, "rb") as file:
        binary = b"\0" in file.read(4096)
    if binary and suffix not in _TEXT_SUFFIXES | _COMPRESSED_SUFFIXES:
        raise InputError(
            f"{path}: files of the kind {suffix!r} cannot be read: "
            "give delimited text (CSV or TSV, gzip too) or Parquet"
        )


def _parquet_columns(name: str) -> list[str]:
    try:
        return list(pyarrow.parquet.read_schema(name).names)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: cannot be read as Parquet: {error}") from error


def _choose(place: str, found: list[str], wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the columns of user, item and score among those found."""
    if wanted is not None:
        missing = [name for name in wanted if name not in found]
        if missing:
            raise InputError(
                f"{place}: there is no column {', '.join(map(repr, missing))}: "
                f"--columns can choose from {', '.join(map(repr, found))}"
            )
        return wanted
    if set(FIELDS) <= set(found):
        return FIELDS
    if len(found) < len(FIELDS):
        raise InputError(
            f"{place}: three columns are needed, user, item and score, but there are {len(found)}: "
            f"{', '.join(map(repr, found))}; if lines are cut wrongly, give --delimiter"
        )
    return tuple(found[: len(FIELDS)])


def _choose_of_text(name: str, first: _FirstLine, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    if first.is_header:
        return _choose(first.place, first.fields, wanted)
    if wanted is not None:
        raise InputError(f"{name}: has no header with column names: leave --columns out to take the first three")
    if first.fields:
        _choose(first.place, first.fields, None)
    return FIELDS


def _first_line(name: str, delimiter: str | None) -> _FirstLine:
    plain = Dialect(",")
    skipped = 0
    for block in line_blocks(name, _BLOCK_BYTES):
        text = block.decode("utf-8", "replace")
        lines = text.split("\n", _PEEKED_LINES)[:_PEEKED_LINES]
        filled = [line for line in lines if not plain.is_skipped(line)]
        if filled:
            delimiter = delimiter or sniff_delimiter(filled, len(FIELDS))
            place = f"{name}:{skipped + lines.index(filled[0]) + 1}"
            return _FirstLine(Dialect(delimiter).split(filled[0].rstrip("\r")), delimiter, place)
        skipped += text.count("\n")
    return _FirstLine([], delimiter, name)


def _read(read: Callable[..., strads.dvector], path: Path, columns: tuple[str, ...]) -> strads.dvector:
    """Read the columns; errors in ids come with specific advice."""
    try:
        return read(path, dict(zip(columns, _TYPES, strict=True)))
    except InputError as error:
        message, advised, _ = str(error).rpartition("; ")
        if advised and any(f"column {column!r}" in message for column in columns[:2]):
            raise InputError(f"{message}; {_MAP_FIRST}") from error
        raise


def _renamed(records: NDArray[np.void]) -> NDArray[np.void]:
    """The same records, with the fields called user, item, score."""
    types = [(field, records.dtype[place]) for place, field in enumerate(FIELDS)]
    return records.view(np.dtype(types, align=True))


def _check_ids(name: str, records: NDArray[np.void]) -> None:
    limit = _UNUSED_PER_RATING * len(records) + _UNUSED_ALLOWED
    for field in ("user", "item"):
        ids = records[field]
        if int(ids.min()) < 0:
            row = int(np.argmax(ids < 0))
            raise InputError(f"{_place(name, row)}: {field} id {ids[row]} is negative: {_MAP_FIRST}")
        if int(ids.max()) > limit:
            row = int(np.argmax(ids > limit))
            raise InputError(
                f"{_place(name, row)}: {field} id {ids[row]} is far beyond what {len(records)} ratings "
                f"can use (the table has a row for every id from 0): {_MAP_FIRST}"
            )


def _place(name: str, row: int) -> str:
    """File and line of the rating `row`, or its row in Parquet; determined only after an error."""
    if _is_parquet(name):
        return f"{name}: row {row}"
    wanted = row + _first_line(name, None).is_header
    plain = Dialect(",")
    number = 0
    for block in line_blocks(name, _BLOCK_BYTES):
        for line in block.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            number += 1
            if not plain.is_skipped(line):
                if wanted == 0:
                    return f"{name}:{number}"
                wanted -= 1
    return name
