"""Reading text files line by line through a user's parser."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds._dtypes import NUMERIC_KINDS
from strads.dds._files import line_blocks
from strads.dds._ragged import RaggedArray, offsets_of
from strads.dds._storage import Storage
from strads.errors import InputError

_BLOCK_BYTES = 1 << 20
_ROWS_AT_A_TIME = 65_536
_NUMBERS = (int, float, complex, np.number, np.bool_)

Shape = tuple[str, Any]
"""Kind of a parser's result and what all results must share: the width of a row, the fields of a record."""


def text_storage(name: str, parser: Callable[[str], Any]) -> Storage:
    """What `parser` makes of each line of a file; see `read_text`."""
    rows: _Rows | None = None
    for number, line in _lines(name):
        where = f"{name}:{number}"
        try:
            result = parser(line)
        except Exception as error:
            raise InputError(
                f"{where}: the parser failed with {type(error).__name__}: {error}, on {line!r:.60}; "
                "correct the line, or let the parser return None to skip it"
            ) from error
        if result is None:
            continue
        shape = _shape_of(result, where)
        if rows is None:
            rows = _Rows(name, shape, number)
        elif shape != rows.shape:
            _refuse_mixed(where, shape, rows)
        rows.add(result, number)
    if rows is None:
        raise InputError(f"{name}: the parser made no rows of this file")
    return rows.storage()


def _lines(name: str) -> Iterator[tuple[int, str]]:
    number = 0
    for block in line_blocks(name, _BLOCK_BYTES):
        for raw in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                yield number, raw.removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{name}:{number}: byte {error.start + 1} of the line is not UTF-8 "
                    f"({raw[error.start]:#04x}): convert the file, for instance with iconv"
                ) from error


def _shape_of(result: Any, where: str) -> Shape:
    if isinstance(result, _NUMBERS):
        return "number", None
    if isinstance(result, dict):
        return "record", tuple(result)
    if isinstance(result, tuple):
        fields = getattr(result, "_fields", None)
        return ("row", len(result)) if fields is None else ("record", tuple(fields))
    if (
        isinstance(result, str | bytes | set | frozenset)
        or not hasattr(result, "__len__")
        or getattr(result, "ndim", 1) != 1
    ):
        raise InputError(
            f"{where}: the parser returned {result!r:.60}, a {type(result).__name__}; "
            "it must return a number, a tuple, list or array of numbers, a dict or named tuple, or None"
        )
    return "sequence", None


def _refuse_mixed(where: str, shape: Shape, rows: "_Rows") -> None:
    hint = (
        "; return lists instead of tuples for rows of different lengths" if shape[0] == rows.shape[0] == "row" else ""
    )
    raise InputError(
        f"{where}: the parser returned {_describe(shape)}, but {_describe(rows.shape)} on line {rows.first_line}{hint}"
    )


def _describe(shape: Shape) -> str:
    kind, detail = shape
    if kind == "row":
        return f"a tuple of {detail}"
    return f"a record of {', '.join(map(str, detail))}" if kind == "record" else f"a {kind}"


@dataclass
class _Rows:
    """Results of the same shape, turned into arrays every so often to save memory."""

    name: str
    shape: Shape
    first_line: int
    pending: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    chunks: list[list[NDArray[Any]]] = field(default_factory=list)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, result: Any, line: int) -> None:
        self.pending.append(result)
        self.lines.append(line)
        if len(self.pending) == _ROWS_AT_A_TIME:
            self._pack()

    def storage(self) -> Storage:
        self._pack()
        columns = [np.concatenate(parts) for parts in zip(*self.chunks, strict=True)]
        self.chunks.clear()
        kind, detail = self.shape
        if kind == "number":
            return columns[0]
        if kind == "row":
            return np.stack(columns, axis=1)
        if kind == "sequence":
            return RaggedArray(columns[0], offsets_of(np.concatenate(self.lengths)))
        records = np.empty(
            len(columns[0]),
            np.dtype([(n, c.dtype) for n, c in zip(detail, columns, strict=True)], align=True),
        )
        for name, column in zip(detail, columns, strict=True):
            records[name] = column
        return records

    def _pack(self) -> None:
        if not self.pending:
            return
        kind, detail = self.shape
        lines = np.array(self.lines)
        if kind == "sequence":
            lengths = np.fromiter(map(len, self.pending), np.int64, len(self.pending))
            self.lengths.append(lengths)
            columns = [[value for row in self.pending for value in row]]
            lines = np.repeat(lines, lengths)
        elif kind == "number":
            columns = [self.pending]
        elif kind == "record" and isinstance(self.pending[0], dict):
            columns = [[row[name] for row in self.pending] for name in detail]
        else:
            columns = [list(column) for column in zip(*self.pending, strict=True)]
        self.chunks.append([_numbers(column, lines, self.name) for column in columns])
        self.pending, self.lines = [], []


def _numbers(values: list[Any], lines: NDArray[np.integer], name: str) -> NDArray[Any]:
    """One array of a column of results; `lines` says where each came from."""
    for value, line in zip(values, lines, strict=True):
        if not isinstance(value, _NUMBERS):
            raise InputError(f"{name}:{line}: the parser returned {value!r:.60} where a number is expected")
    try:
        array = np.array(values)
        finite = np.isfinite(array) if array.dtype.kind in NUMERIC_KINDS else None
    except (TypeError, ValueError, OverflowError):
        finite = None
    if finite is None:
        line = next(n for v, n in zip(values, lines, strict=True) if isinstance(v, int) and not -(2**63) <= v < 2**63)
        raise InputError(f"{name}:{line}: the parser returned an integer that does not fit into 64 bits")
    if not finite.all():
        place = int(np.argmin(finite))
        raise InputError(
            f"{name}:{lines[place]}: the parser returned {values[place]!r}, which is not finite: "
            "correct the line, or let the parser return None to skip it"
        )
    return array
