"""Matrices in MatrixMarket's format. Errors name malformed lines, and no memory is allocated for missing entries.

Source: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.dds.csv_dialect import WHITESPACE, Dialect
from strads.dds.csv_parse import RecordFormat, line_of_record, parse_block
from strads.dds.files import check_announced, numbered_blocks
from strads.errors import InputError

_BLOCK_BYTES = 4 << 20  # read at a time
_MARK = "%%MatrixMarket"
_DIALECT = Dialect(WHITESPACE, comment="%")
_LAYOUTS = ("coordinate", "array")
_FIELDS = {"real": "f8", "double": "f8", "integer": "i8", "unsigned-integer": "i8", "pattern": ""}
_SYMMETRIES = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


class _Header(NamedTuple):
    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int  # that follow
    line: int  # of the sizes
    width: int  # fields of each entry's line


def read_matrix_market(path: Path) -> Any:
    """Read a matrix, as CSC or, from an array, as an ndarray; float64.

    Raises
    ------
    InputError
        At a malformed line; names file and line.
    """
    blocks = numbered_blocks(str(path), _BLOCK_BYTES)
    header, rest = _read_header(path, blocks)
    records = list(_records(path, header, chain([rest], blocks)))
    count = sum(map(len, records))
    if count < header.entries:
        raise InputError(
            f"{path}:{header.line}: {header.entries:,} entries are announced, but {count:,} follow; is the file "
            "complete?"
        )
    found = {name: np.concatenate([each[name] for each in records]) for name in records[0].dtype.names or ()}
    sign = _SYMMETRIES[header.symmetry]
    if header.layout == "array":
        return _dense(header, found["value"], sign)
    values = found.get("value", np.ones(count)).astype(np.float64, copy=False)
    rows, columns = found["row"] - 1, found["column"] - 1
    if sign:
        others = rows != columns
        values = np.concatenate([values, sign * values[others]])
        rows, columns = np.concatenate([rows, columns[others]]), np.concatenate([columns, rows[others]])
    return scipy.sparse.csc_array((values, (rows, columns)), shape=(header.rows, header.columns))


def _dense(header: _Header, values: NDArray[Any], sign: int) -> NDArray[np.float64]:
    """Return the matrix whose columns, or their parts from the diagonal on, follow one another."""
    shape = header.rows, header.columns
    if not sign:
        return values.astype(np.float64).reshape(shape, order="F")
    X = np.zeros(shape, order="F")
    columns, rows = np.triu_indices(header.rows, k=int(sign < 0))
    X[rows, columns] = values
    X[columns, rows] = sign * values
    return X


def _read_header(path: Path, blocks: Iterator[tuple[int, bytes]]) -> tuple[_Header, tuple[int, bytes]]:
    """Read until the line of sizes; returns what follows it, with its line."""
    kind: tuple[str, str, str] | None = None
    for first, block in blocks:
        start = 0
        for number, line in enumerate(block.split(b"\n"), first):
            start += len(line) + 1
            text = line.decode("utf-8", "replace").strip()
            if kind is None:
                kind = _kind(f"{path}:{number}", text)
            elif text and not text.startswith("%"):
                return _sizes(path, number, text, *kind), (number + 1, block[start:])
    raise InputError(f"{path}: there is no line with the numbers of rows and columns; is the file complete?")


def _kind(where: str, text: str) -> tuple[str, str, str]:
    mark, *words = text.split()
    words = [word.lower() for word in words]
    if mark != _MARK or len(words) != 4 or words[0] != "matrix":
        _refuse_kind(where, text, f"{_MARK} matrix, then layout, kind and symmetry")
    _, layout, field, symmetry = words
    if field == "complex" or symmetry == "hermitian":
        raise InputError(f"{where}: holds complex numbers: give real ones")
    for word, known in ((layout, _LAYOUTS), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in known:
            _refuse_kind(where, word, ", ".join(known))
    if layout == "array" and field == "pattern":
        _refuse_kind(where, field, "numbers in an array")
    return layout, field, symmetry


def _refuse_kind(where: str, found: str, expected: str) -> NoReturn:
    raise InputError(f"{where}: expected {expected}; found {found!r:.60}")


def _sizes(path: Path, line: int, text: str, layout: str, field: str, symmetry: str) -> _Header:
    where, fields = f"{path}:{line}", text.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(fields) != wanted or not all(each.isascii() and each.isdigit() and len(each) < 19 for each in fields):
        what = "rows, columns and entries" if wanted == 3 else "rows and columns"
        raise InputError(f"{where}: expected the numbers of {what}, found {text!r:.60}")
    rows, columns, *rest = map(int, fields)
    sign = _SYMMETRIES[symmetry]
    if sign and rows != columns:
        raise InputError(f"{where}: {rows} rows and {columns} columns are not {symmetry}")
    if rest:
        check_announced(where, {"rows": rows, "columns": columns}, rest[0])
        return _Header(layout, field, symmetry, rows, columns, rest[0], line, 2 + (field != "pattern"))
    entries = rows * (rows + sign) // 2 if sign else rows * columns
    return _Header(layout, field, symmetry, rows, columns, entries, line, 1)


def _records(path: Path, header: _Header, blocks: Iterator[tuple[int, bytes]]) -> Iterator[NDArray[Any]]:
    """Yield the entries, checked."""
    names = [("row", "i8"), ("column", "i8")] if header.layout == "coordinate" else []
    if header.field != "pattern":
        names.append(("value", _FIELDS[header.field]))
    record = np.dtype(names, align=True)
    places = tuple(range(header.width))
    form = RecordFormat(str(path), _DIALECT, record, places, header.width, header.line + 1, is_declared=False)
    yield np.empty(0, record)
    before = 0
    for line, block in blocks:
        found = parse_block(block, line, form)
        for row, problem in _problems(found, header, before):
            raise InputError(f"{path}:{line_of_record(block, line, row, _DIALECT)}: {problem}")
        before += len(found)
        yield found


def _problems(found: NDArray[Any], header: _Header, before: int) -> Iterator[tuple[int, str]]:
    """Yield records that do not belong to the matrix, and why."""
    if header.layout == "coordinate":
        for name, most in (("row", header.rows), ("column", header.columns)):
            wrong = (found[name] < 1) | (found[name] > most)
            if wrong.any():
                row = int(np.argmax(wrong))
                yield row, f"{name} {found[name][row]} is outside 1 … {most}, which line {header.line} says"
        if header.symmetry == "skew-symmetric" and (on := found["row"] == found["column"]).any():
            yield int(np.argmax(on)), "an entry on the diagonal of a skew-symmetric matrix"
    if before + len(found) > header.entries:
        announced = f"the {header.entries:,} that line {header.line} announces"
        yield header.entries - before, f"there are more entries than {announced}"
