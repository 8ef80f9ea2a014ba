"""Second readers of the text formats: slow, strict, and written independently of the first ones.

Each returns what a file holds, or raises `MalformedError`. A command that reads a file must have read the same.
"""

import bz2
import csv
import gzip
import io
import math
import re
import zlib
from typing import Any

import numpy as np
import scipy.sparse

_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class MalformedError(Exception):
    """A file that is not what its format wants."""


def whole(field: str, low: int = -(2**31), high: int = 2**31 - 1) -> int:
    if not _WHOLE.fullmatch(field) or len(field) > 30 or not low <= int(field) <= high:
        raise MalformedError(f"{field!r} is no integer from {low} to {high}")
    return int(field)


def real(field: str) -> float:
    if not _REAL.fullmatch(field) or not math.isfinite(float(field)):
        raise MalformedError(f"{field!r} is no finite number")
    return float(field)


def lines_of(content: bytes) -> list[str]:
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        elif content.startswith(b"BZh"):
            content = bz2.decompress(content)
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise MalformedError(str(error)) from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def delimited(content: bytes, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The fields of the named columns of a CSV file whose lines have as many; of the first ones without a header."""
    filled = [line for line in lines_of(content) if line.strip()]
    delimiter = max(",;\t|", key=filled[0].count) if filled else ","
    rows = []
    for line in filled:
        try:
            rows.append([field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True))])
        except (csv.Error, StopIteration) as error:
            raise MalformedError(str(error)) from error
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise MalformedError("lines of different lengths")
    if all(_REAL.fullmatch(field) for field in rows[0][: len(columns)]):
        return [tuple(row[: len(columns)]) for row in rows]  # no header
    if any(rows[0].count(name) != 1 for name in columns):
        raise MalformedError("no such column")
    places = [rows[0].index(name) for name in columns]
    return [tuple(row[place] for place in places) for row in rows[1:]]


def libsvm(content: bytes) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
    """The labels, and the entries by row and column; columns from the file's own first number on."""
    labels: list[float] = []
    entries: dict[tuple[int, int], float] = {}
    for line in lines_of(content):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        before = -1
        for field in fields[1:]:
            head, _, value = field.partition(":")
            if head == "qid":
                continue
            column = whole(head, 0, 2**62)
            if column <= before:
                raise MalformedError("columns do not rise")
            entries[len(labels), column] = real(value)
            before = column
        labels.append(real(fields[0]))
    first = 0 if any(column == 0 for _, column in entries) else 1
    return np.array(labels), {(row, column - first): value for (row, column), value in entries.items()}


def matrix_market(content: bytes) -> np.ndarray:
    lines = lines_of(content) or [""]
    kind = lines[0].lower().split()
    if len(kind) != 5 or lines[0].split()[0] != "%%MatrixMarket" or kind[1] != "matrix":
        raise MalformedError("header")
    rest = [line.split() for line in lines[1:] if line.strip() and not line.lstrip().startswith("%")]
    if not rest:
        raise MalformedError("no sizes")
    rows, columns, *count = (whole(field, 0, 10**9) for field in rest[0])
    parse = real if kind[3] in ("real", "double") else (lambda field: float(whole(field, -(2**63), 2**63 - 1)))
    sign = {"general": 0, "symmetric": 1, "skew-symmetric": -1}.get(kind[4])
    if (
        kind[3] not in ("real", "double", "integer", "unsigned-integer", "pattern")
        or sign is None
        or (sign and rows != columns)
    ):
        raise MalformedError("header")
    found = np.zeros((rows, columns))
    if kind[2] == "array":
        places = [(i, j) for j in range(columns) for i in range(j + (sign < 0) if sign else 0, rows)]
        if count or len(rest) - 1 != len(places) or any(len(fields) != 1 for fields in rest[1:]):
            raise MalformedError("number of entries")
        entries = [(i, j, parse(fields[0])) for (i, j), fields in zip(places, rest[1:], strict=True)]
    else:
        width = 2 if kind[3] == "pattern" else 3
        if len(count) != 1 or len(rest) - 1 != count[0] or any(len(fields) != width for fields in rest[1:]):
            raise MalformedError("number of entries")
        entries = []
        for fields in rest[1:]:
            i, j = whole(fields[0], 1, rows) - 1, whole(fields[1], 1, columns) - 1
            entries.append((i, j, parse(fields[2]) if width == 3 else 1.0))
    for i, j, value in entries:
        found[i, j] += value
        if sign and i != j:
            found[j, i] += sign * value
    return found


def bag_of_words(content: bytes) -> np.ndarray:
    filled = [line.split() for line in lines_of(content)]
    if len(filled) < 3 or any(len(fields) != 1 for fields in filled[:3]):
        raise MalformedError("header")
    documents, words, count = (whole(fields[0], 0) for fields in filled[:3])
    entries = [[whole(field, 1) for field in fields] for fields in filled[3:] if fields]
    if len(entries) != count or any(len(entry) != 3 or entry[0] > documents or entry[1] > words for entry in entries):
        raise MalformedError("entries")
    found = np.zeros((documents, words), np.int64)
    for document, word, number in entries:
        found[document - 1, word - 1] += number
    return found


def triples(content: bytes) -> list[tuple[Any, ...]]:
    filled = [line for line in lines_of(content) if line.strip()]
    if filled and filled[0].strip().isdigit():
        rows = [tuple(whole(field, 0, 2**62) for field in line.split()) for line in filled[1:]]
        if len(rows) != int(filled[0]) or any(len(row) != 3 for row in rows):
            raise MalformedError("number of triples")
        return [(head, relation, tail) for head, tail, relation in rows]
    labels = [tuple(field.strip() for field in line.split("\t")) for line in filled]
    if not labels or any(len(each) != 3 or not all(each) for each in labels):
        raise MalformedError("a line that is no triple")
    return labels


def npz(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return np.asarray(file["X"], np.float64), file["y"]
    except Exception as error:
        raise MalformedError(str(error)) from error


def sparse_npz(content: bytes) -> np.ndarray:
    try:
        found = scipy.sparse.load_npz(io.BytesIO(content))
        return np.asarray(found.astype(np.float64).toarray())  # SciPy makes no dense array of half precision
    except Exception as error:
        raise MalformedError(str(error)) from error
