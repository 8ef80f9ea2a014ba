"""Users, items and scores from any supported kind of file: choice of columns, ids as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from strads.cli.interactions_options import FileFormat
from strads.cli.interactions_text import TextColumns, read_columns
from strads.dds.arrow_types import is_text
from strads.dds.csv_dialect import Dialect, is_number, sniff_delimiter, try_split
from strads.dds.files import check_file, line_blocks
from strads.errors import ArgumentError, InputError
from strads.models.interactions.column_names import choose, role_of
from strads.models.interactions.id_column import IdColumn, is_whole_number
from strads.models.interactions.interactions import Interactions

_POSITIONS = ("user", "item", "score", "timestamp")  # of columns in files without a header
_TEXT_SUFFIXES = {".csv", ".tsv", ".txt", ".data", ".dat", ".tab", ""}
_COMPRESSED_SUFFIXES = {".gz", ".bz2", ".zst", ".lz4", ".zip"}
_PEEKED_LINES = 100  # read to guess the format
_FEW = 0.1  # of the ids of a column that are not whole numbers: the others are perhaps meant as such
_BLOCK_BYTES = 1 << 20  # read at a time
_ADVICE = "--columns user=…,item=…,score=…"


@dataclass(frozen=True)
class FileContent:
    """What a file holds."""

    interactions: Interactions  # in the order of the file
    columns: dict[str, str]  # the file's column of each role: its name, or its position from 1 without a header
    where: Callable[[int], str]  # the file and line (or row) of a pair, for errors

    def about_columns(self) -> list[str]:
        """Return lines that say which columns were used, unless that is obvious, and how ids were read if in doubt."""
        return [*self._choice(), *filter(None, map(self._doubtful_ids, ("user", "item")))]

    def _doubtful_ids(self, role: str) -> str:
        """Report that ids are texts although most look like whole numbers: a single typing error causes that."""
        ids = self.interactions.users if role == "user" else self.interactions.items
        texts = [] if ids.distinct is None or ids.distinct.dtype != object else ids.distinct.tolist()
        others = [text for text in texts if not is_whole_number(text)]
        if not 0 < len(others) <= _FEW * len(texts):
            return ""
        count = f"{len(others):,} of {len(texts):,}"
        return f"{role} ids are texts: {count} are not whole numbers, for instance {others[0]!r:.40}"

    def _choice(self) -> list[str]:
        names = {role: name for role, name in self.columns.items() if role != "timestamp"}
        if all(role == name for role, name in names.items()) or all(name.isdigit() for name in names.values()):
            return []
        first, *rest = (f"{name} is the {role}" for role, name in names.items())
        return ["columns: " + ", ".join([first, *(text.replace(" is the", " the") for text in rest)])]


def read_interactions(path: Path, form: FileFormat, *, scored: bool | None, timed: bool = False) -> FileContent:
    """Read users, items and, if there are any, scores from delimited text or Parquet.

    Parameters
    ----------
    path : Path
        The file; its kind and compression are recognised by its content.
    scored : bool or None
        Whether a column of scores is needed; None: it is not read even if there is one.
    timed : bool
        Whether a column of timestamps is needed.

    Raises
    ------
    InputError
        For any invalid input; names file and line (or row).
    """
    name = check_file(path)
    wanted = {role: column for role, column in form.named.items() if role != "score" or scored is not None}
    if _is_parquet(name):
        if form.delimiter is not None:
            raise InputError(f"{name}: is a Parquet file, it has no delimiter: leave --delimiter out")
        return _read_parquet(name, wanted, scored, timed)
    _check_kind(path)
    first = _first_line(name, form.delimiter)
    is_header = first.is_header(form.named) if form.header is None else form.header
    if is_header:
        chosen = _choose_of_header(first, wanted, form.header, scored, timed)
        places = {role: first.fields.index(column) for role, column in chosen.items()}
    else:
        places = _positions(first, wanted, scored, timed)
        if form.header is None:
            first.refuse_doubtful_ids(places)
        chosen = {role: str(place + 1) for role, place in places.items()}
    dialect = Dialect(first.delimiter)
    dated = first.has_text(places.get("timestamp"), is_header)
    columns = TextColumns(name, dialect, places, len(first.fields), first.line, is_header, dated)
    return FileContent(_of_text(columns), chosen, lambda row: f"{name}:{columns.line_of(row)}")


@dataclass(frozen=True)
class _FirstLine:
    """The first non-blank line of a text, and the texts of some that follow; empty texts are handled elsewhere."""

    name: str
    line: int
    fields: list[str]
    delimiter: str
    following: list[str]

    @property
    def place(self) -> str:
        return f"{self.name}:{self.line}: "

    def is_header(self, wanted: Mapping[str, str]) -> bool:
        """Whether it names columns: one that is wanted, or two that are known, or none is a number."""
        named = [column for column in wanted.values() if not column.isdigit()]
        if any(column in self.fields for column in named) or self.known > 1:
            return True
        return not self.has_number and bool(named or not wanted)

    @property
    def known(self) -> int:
        """How many columns are named as usual."""
        return len({*filter(None, map(role_of, self.fields))})

    @property
    def has_number(self) -> bool:
        """Whether a field is a number, as few names are."""
        return any(map(is_number, self.fields))

    def has_text(self, place: int | None, is_header: bool) -> bool:
        """Whether a field of the first line, or of the line after a header, is not a number."""
        fields = self.fields
        if is_header:
            fields = try_split(Dialect(self.delimiter), "".join(self.following[:1]))
        return place is not None and place < len(fields) and not is_number(fields[place])

    def refuse_doubtful_ids(self, places: Mapping[str, int]) -> None:
        """Raise InputError for a text where the following lines have whole numbers: that is perhaps a name."""
        lines = [try_split(Dialect(self.delimiter), line) for line in self.following]
        for place in (places["user"], places["item"]):
            others = [fields[place] for fields in lines if len(fields) > place]
            if others and not is_number(self.fields[place]) and all(map(is_whole_number, others)):
                raise InputError(
                    f"{self.place}{self.fields[place]!r} stands where the next lines have whole numbers: give --header "
                    "if the line names columns, --no-header if not"
                )


def _first_line(name: str, delimiter: str | None) -> _FirstLine:
    plain = Dialect(",")
    skipped = 0
    for block in line_blocks(name, _BLOCK_BYTES):
        text = block.decode("utf-8", "replace")
        lines = text.split("\n", _PEEKED_LINES)[:_PEEKED_LINES]
        filled = [line for line in lines if not plain.is_skipped(line)]
        if filled:
            line = skipped + lines.index(filled[0]) + 1
            try:
                _refuse_comment(filled, delimiter)
                delimiter = delimiter or _sniff(filled)
                fields = Dialect(delimiter).split(filled[0].rstrip("\r"))
                return _FirstLine(name, line, fields, delimiter, filled[1:])
            except InputError as error:
                raise InputError(f"{name}:{line}: {error}") from error
        skipped += text.count("\n")
    raise InputError(f"{name}: there are no lines: give a file with users and items")


def _refuse_comment(lines: list[str], delimiter: str | None) -> None:
    """Raise InputError if the first line seems to be a comment; ids and names may begin with # as well."""
    first, *following = lines
    if first.startswith("#") and following:
        dialect = Dialect(delimiter or _sniff(following))
        if len(try_split(dialect, first)) != len(try_split(dialect, following[0])):
            raise InputError(f"{first!r:.60} seems to be a comment, which is not skipped: remove the line")


def _choose_of_header(
    first: _FirstLine, wanted: Mapping[str, str], header: bool | None, scored: bool | None, timed: bool
) -> dict[str, str]:
    """Return the names of columns; a line that may be no header is told from one that lacks them."""
    try:
        return _choose(first.place, first.fields, wanted, scored, timed)
    except InputError as error:
        if header is None and (first.known < 2 or first.has_number):
            raise InputError(f"{error}; if the line is no header, give --no-header") from error
        raise


def _sniff(lines: list[str]) -> str:
    """Return the delimiter: ids may be texts, so that only the score must be a number, if there is one."""
    found = sniff_delimiter(lines, 3)
    return found if len(Dialect(found).split(lines[0].rstrip("\r"))) > 2 else sniff_delimiter(lines, 1)


def _positions(first: _FirstLine, wanted: Mapping[str, str], scored: bool | None, timed: bool) -> dict[str, int]:
    """Return the places of columns in lines without a header."""
    width = len(first.fields)
    if wanted:
        wrong = [column for column in wanted.values() if not (column.isdigit() and 1 <= int(column) <= width)]
        if wrong:
            raise InputError(
                f"{first.place}the file has no header with column names, so that --columns takes positions, 1 to "
                f"{width}, such as user=1,item=2: {', '.join(map(repr, wrong))} is none; if the line is one, give "
                "--header"
            )
        places = {role: int(column) - 1 for role, column in wanted.items()}
        roles = {"user", "item"} | ({"score"} if scored else set()) | ({"timestamp"} if timed else set())
        if not roles <= set(places):
            raise InputError(f"{first.place}name all columns that are needed: {_ADVICE}")
        return places
    least = 4 if timed else 3 if scored else 2
    if width < least and timed:
        raise InputError(f"{first.place}a fourth column is needed, the timestamp: or give --columns")
    if width < least:
        needed = "three columns are needed, user, item and score," if scored else "user and item are needed,"
        raise InputError(
            f"{first.place}{needed} but there are {width}: {', '.join(map(repr, first.fields))}; if lines are cut "
            "wrongly, give --delimiter"
        )
    count = 4 if timed else 2 if scored is None else 3
    return {role: place for place, role in enumerate(_POSITIONS[:count]) if place < width}


def _of_text(columns: TextColumns) -> Interactions:
    found = read_columns(columns)
    ids = {role: _ids(role, found[role], columns.dialect) for role in ("user", "item")}
    if not len(ids["user"]):
        raise InputError(f"{columns.name}: there are no rows: give a file with users and items")
    times = found.get("timestamp")
    if columns.dated:
        encoded = found["timestamp"]
        texts, rows = _texts(encoded, columns.dialect), encoded.indices.to_numpy()
        times = _times(texts, rows, lambda row: f"{columns.name}:{columns.line_of(row)}")
    return Interactions(ids["user"], ids["item"], found.get("score"), times)


def _ids(role: str, encoded: Any, dialect: Dialect) -> IdColumn:
    return IdColumn.of_texts(role, encoded.indices.to_numpy(), _texts(encoded, dialect)).with_numbers()


def _texts(encoded: Any, dialect: Dialect) -> list[str]:
    texts = [text.strip() for text in encoded.dictionary.to_pylist()]
    return texts if dialect.quoted else [dialect.split(text)[0] if text[0] == '"' else text for text in texts]


def _times(texts: list[str], rows: NDArray[np.integer], where: Callable[[int], str]) -> NDArray[np.float64]:
    """Return the times `texts[row]`, in seconds since 1970; an error names the first text that is not one."""
    times = [_time(text) for text in texts]
    zoned = times[0] is not None and times[0].tzinfo is not None
    for place, time in enumerate(times):
        if time is None or (time.tzinfo is not None) != zoned:
            raise InputError(
                f"{where(int(np.argmax(rows == place)))}: {texts[place]!r:.60} is not a timestamp: give numbers, or "
                "dates or times in ISO 8601, such as 2026-01-31 or 2026-01-31T12:30:00, all with a time zone or none"
            )
    seconds = [time.timestamp() if zoned else time.replace(tzinfo=UTC).timestamp() for time in filter(None, times)]
    return np.array(seconds)[rows]


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _check_kind(path: Path) -> None:
    """Reject spreadsheets, archives of arrays and the like by format, not by errors in garbled lines."""
    suffix = path.suffix.lower()
    with open(path, "rb") as file:
        binary = b"\0" in file.read(4096)
    if binary and suffix not in _TEXT_SUFFIXES | _COMPRESSED_SUFFIXES:
        raise InputError(
            f"{path}: files with the suffix {suffix!r} cannot be read: "
            "give delimited text (CSV or TSV, gzip too) or Parquet"
        )


def _is_parquet(name: str) -> bool:
    with open(name, "rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(name: str, wanted: Mapping[str, str], scored: bool | None, timed: bool) -> FileContent:
    try:
        chosen = _choose(f"{name}: ", list(pyarrow.parquet.read_schema(name).names), wanted, scored, timed)
        table = pyarrow.parquet.read_table(name, columns=list(chosen.values()))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: cannot be read as Parquet: {error}") from error
    if table.num_rows == 0:
        raise InputError(f"{name}: there are no rows: give a file with users and items")
    try:
        users, items = (IdColumn.of(role, table.column(chosen[role])) for role in ("user", "item"))
    except (InputError, ArgumentError) as error:
        raise InputError(f"{name}: {error}") from error
    numbers = {role: _parquet_numbers(name, role, table, chosen) for role in ("score", "timestamp") if role in chosen}
    interactions = Interactions(users, items, numbers.get("score"), numbers.get("timestamp"))
    return FileContent(interactions, chosen, lambda row: f"{name}: row {row}")


def _parquet_numbers(name: str, role: str, table: pa.Table, chosen: Mapping[str, str]) -> NDArray[np.float64]:
    column = table.column(chosen[role])
    where = f"{name}: column {chosen[role]!r}"
    if role == "timestamp" and is_text(column.type) and not column.null_count and not is_number(column[0].as_py()):
        encoded = pc.dictionary_encode(column).unify_dictionaries().combine_chunks()
        texts, rows = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        return _times(texts, rows, lambda row: f"{where}: row {row}")
    kind = column.type
    try:
        if pa.types.is_temporal(kind):
            column = pc.cast(column, pa.timestamp("us")) if not pa.types.is_timestamp(kind) else column
            column = pc.cast(column, pa.int64())
        values: NDArray[np.float64] = pc.cast(column, pa.float64(), safe=False).to_numpy()
    except pa.ArrowException as error:
        raise InputError(f"{where} is {kind}: give numbers") from error
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"{where}: row {row} has {values[row]}, which is not finite; remove the row")
    return values


def _choose(
    place: str, found: list[str], wanted: Mapping[str, str], scored: bool | None, timed: bool
) -> dict[str, str]:
    """Return the names of columns among those found; `place` begins messages."""
    advice = f"{_ADVICE},timestamp=…" if timed else _ADVICE
    return choose(found, scored=scored, timed=timed or None, given=wanted, where=place, advice=advice)
