"""Samples in text files: LIBSVM, delimited text. Errors name malformed lines."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from strads.cli.indicators import Feature, feature_of, features_of, matrix_of, name_of
from strads.dds.csv_dialect import WHITESPACE, Dialect, is_number, sniff_delimiter
from strads.dds.files import check_announced, compression_of, line_blocks
from strads.errors import InputError
from strads.models.corpora.documents import read_lines

LONGEST_LABEL = 1000  # all labels take the memory of the longest
_BLOCK_BYTES = 1 << 20  # read at a time
_PEEKED_LINES = 20  # read to guess the format
_LAST_COLUMN = 2**31 - 1  # column numbers are int32


def read_libsvm(path: Path, like: Sequence[int] | None = None) -> tuple[Any, NDArray[np.float64], Sequence[int]]:
    """Read lines of `label number:value …`; returns X in CSC form, the labels, and the numbers of the columns.

    Parameters
    ----------
    path : Path
        Plain or compressed.
    like : sequence of int, optional
        The numbers of the columns; others are left out, as the model does not have them. By default columns are
        numbered from 1 unless 0 occurs.

    Raises
    ------
    InputError
        At a malformed line or a non-finite value; names file and line.
    """
    lines = _Lines(path)
    try:
        X, y = load_svmlight_file(lines, zero_based=True)
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        _refuse_libsvm_line(path)
        raise InputError(f"{path}: cannot be read as LIBSVM: {error}") from error
    if lines.has_underscores or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        _refuse_libsvm_line(path)
    rows, width = X.shape
    if like is None or width > max(like) + 1:
        _check_columns(path, X)
    X = scipy.sparse.csc_array(X)
    if like is None:
        first = int(width > 0 and X.indptr[1] == 0)
        return X[:, first:], y, range(first, width)
    X.resize(rows, width + 1)  # the last one for all that the file does not have
    return X[:, np.fromiter((min(number, width) for number in like), np.intp, len(like))], y, like


class _Lines:
    """An open file for scikit-learn, which only iterates over its lines; compressed or not."""

    def __init__(self, path: Path) -> None:
        self.has_underscores = False  # Python takes 1_0 for 10
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        for block in line_blocks(str(self._path), _BLOCK_BYTES):
            self.has_underscores |= b"_" in block
            yield from block.split(b"\n")

    def read(self) -> bytes:
        """Exist, as scikit-learn wants of a file."""
        raise NotImplementedError


def _check_columns(path: Path, X: Any) -> None:
    """Reject numbers of columns far beyond what the entries can fill; looks for the line only then."""
    try:
        check_announced("", {"columns": X.shape[1]}, X.nnz)
    except InputError as error:
        largest = f"{X.shape[1] - 1}".encode()
        for number, line in enumerate(_Lines(path), 1):
            if any(field.partition(b":")[0].lstrip(b"0+") == largest for field in line.partition(b"#")[0].split()[1:]):
                raise InputError(f"{path}:{number}{error}") from error
        raise InputError(f"{path}{error}") from error


def _refuse_libsvm_line(path: Path) -> None:
    for number, line in enumerate(read_lines(path), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        where, before = f"{path}:{number}", -1
        if not _is_finite(fields[0]):
            raise InputError(f"{where}: the label {_short(fields[0])} is not a finite number")
        for field in fields[1:]:
            head, mark, value = field.partition(":")
            if head == "qid":
                continue
            if not mark or not (head.isascii() and head.isdigit()) or not _is_finite(value):
                raise InputError(f"{where}: {_short(field)}: give number:value, both finite, such as 7:0.5")
            if int(head) <= before:
                raise InputError(f"{where}: column {head} comes after column {before}: column numbers must increase")
            before = int(head)
            if before > _LAST_COLUMN:
                raise InputError(f"{where}: column {head} is too large: {_LAST_COLUMN:,} is the last possible column")


def read_delimited(
    path: Path,
    *,
    target: str | None = None,
    labelled: bool = True,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> tuple[Any, NDArray[Any], list[str], str]:
    """Read columns of numbers and categories under a header.

    Parameters
    ----------
    path : Path
        File separated by commas, semicolons, tabs or bars; compressed or not.
    target : str or None
        The column to predict: numbers or strings.
    labelled : bool
        Whether there must be one.
    drop, categorical : sequence of str
        Columns to leave out, and those of categories.
    features : sequence of str, optional
        Names of the features, such as "age" or "color=red"; by default those of all other columns.

    Returns
    -------
    X : ndarray in Fortran order, or csc_array, of shape (n_samples, n_features)
    y : ndarray of strings of shape (n_samples,); empty without a target
    names : list of str
        Of the features.
    note : str
        What could not be taken into account; empty if nothing.

    Raises
    ------
    InputError
        If there is no such column, or a line is malformed; names file and line.
    """
    text = _DelimitedText.begin(path)
    header, where = text.header, text.where
    if target is None and labelled:
        raise InputError(f"{where}: name the column to predict with --target: {_some(header)}")
    given = {"--target": [] if target is None else [target], "--drop": drop, "--categorical": categorical}
    for name, option in [(name, option) for option, names in given.items() for name in names]:
        if name not in header:
            raise InputError(f"{where}: there is no column {name!r} for {option}: {_some(header)}")
    if target in categorical:
        raise InputError(f"{where}: {target!r} is to be predicted, and cannot be --categorical as well")
    if "" in header and features is None:  # pandas writes the numbers of rows like this
        raise InputError(f"{where}: column {header.index('') + 1} has no name: give it one, or remove the column")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{where}: two columns are called {twice!r}")
    chosen = None if features is None else _found(features, header, where)
    if chosen is None:
        columns = [name for name in header if name not in (target, *drop)]
    else:
        columns = list(dict.fromkeys(column for column, _ in chosen))
        categorical = list(dict.fromkeys(column for column, category in chosen if category is not None))
    if not columns:
        raise InputError(f"{where}: there is no column but {target!r}: nothing to predict it from")
    numeric = [name for name in columns if name not in categorical]
    labels = [*categorical] if target is None else [*categorical, target]
    table = text.parse(numeric, labels, target)
    _refuse_labels(path, table, labels)
    if chosen is None:
        chosen = features_of(table, columns, categorical)
        _refuse_ambiguous_names(chosen, header, where)
    X, note = matrix_of(table, chosen)
    y = np.empty(0, "U1")
    if target is not None:
        y = np.asarray(table.column(target).to_numpy(zero_copy_only=False)).astype(str)
    entries = X.data if scipy.sparse.issparse(X) else X
    if not np.isfinite(entries).all() or (y == "").any():
        text.refuse_line(numeric, target)
    return X, y, [name_of(feature) for feature in chosen], note and f"{path}: {note}"


def _refuse_labels(path: Path, table: pa.Table, names: Sequence[str]) -> None:
    """Raise InputError for texts in these columns that are too long, or that NumPy would cut."""
    for name in names:
        lengths = pc.utf8_length(table.column(name)).to_numpy()
        if lengths.max(initial=0) > LONGEST_LABEL:
            row = int(lengths.argmax())
            where = f"{path}:{line_of_record(path, row)}"
            raise InputError(f"{where}: {name!r} has {lengths[row]:,} characters, too many for a label")
        row = pc.index(pc.match_substring(table.column(name), "\0"), True).as_py()
        if row >= 0:
            where = f"{path}:{line_of_record(path, row)}"
            raise InputError(f"{where}: {name!r} has a NUL character, which labels cannot have")


def _found(names: Sequence[str], header: list[str], where: str) -> list[Feature]:
    found = [(name, feature_of(name, header)) for name in names]
    lost = next((name for name, feature in found if feature is None), None)
    if lost is not None:
        raise InputError(f"{where}: there is no column {lost!r}, which the training data have")
    return [feature for _, feature in found if feature is not None]


def _refuse_ambiguous_names(features: Sequence[Feature], header: list[str], where: str) -> None:
    """Raise InputError for a name that stands for another feature: models find features by their names."""
    for feature in features:
        name = name_of(feature)
        other = feature_of(name, header)
        if other is not None and other != feature:
            column, category = feature
            rest = "is a column" if other[1] is None else f"could be {other[1]!r} of column {other[0]!r}"
            raise InputError(
                f"{where}: {category!r} of column {column!r} becomes the feature {name!r}, which also {rest}: rename "
                "one of the columns"
            )


@dataclass(frozen=True)
class _DelimitedText:
    """A file of delimited text: how its lines are split, and the names of its columns, which are on line `place`."""

    path: Path
    dialect: Dialect
    place: int
    header: list[str]

    @classmethod
    def begin(cls, path: Path) -> Self:
        """Read the first lines."""
        peeked = islice(enumerate(read_lines(path), 1), _PEEKED_LINES)
        filled = [(number, line) for number, line in peeked if line.strip()]
        if not filled:
            raise InputError(f"{path}: the first lines are blank: give a header with the names of the columns")
        dialect = Dialect(sniff_delimiter([line for _, line in filled], 1))
        place, line = filled[0]
        text = cls(path, dialect, place, _split(path, place, dialect, line))
        if dialect.delimiter == WHITESPACE or len(dialect.delimiter) > 1 or len(text.header) < 2:
            raise InputError(
                f"{text.where}: is not LIBSVM, MatrixMarket, npz, or text delimited by commas, semicolons, tabs or bars"
            )
        if all(map(is_number, text.header)):
            raise InputError(f"{text.where}: numbers stand where a header with the names of the columns is needed")
        return text

    @property
    def where(self) -> str:
        """The line of the header."""
        return f"{self.path}:{self.place}"

    def parse(self, numeric: list[str], labels: list[str], target: str | None) -> pa.Table:
        """Return columns of numbers, and of texts."""
        path = str(self.path)
        types = dict.fromkeys(numeric, pa.float64()) | dict.fromkeys(labels, pa.string())
        try:
            with pa.input_stream(path, compression=compression_of(path)) as stream:
                table = pyarrow.csv.read_csv(
                    stream,
                    read_options=pyarrow.csv.ReadOptions(skip_rows=self.place, column_names=self.header),
                    parse_options=pyarrow.csv.ParseOptions(delimiter=self.dialect.delimiter),
                    convert_options=pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types)),
                )
        except pa.ArrowException as error:
            self.refuse_line(numeric, target)
            raise InputError(f"{path}: cannot be read: {error}") from error
        lines = sum(1 for line in read_lines(path) if line.strip()) - 1
        if table.num_rows != lines:  # Arrow joins lines if a quote is open, and also ends them at CR
            self.refuse_line(numeric, target)
            raise InputError(f"{path}: {table.num_rows:,} records on {lines:,} lines: is a quote open?")
        for name in labels:
            texts = pc.utf8_trim_whitespace(table.column(name))
            if pc.any(pc.starts_with(texts, '"')).as_py():
                self.refuse_line(numeric, target)
            table = table.set_column(table.column_names.index(name), name, texts)
        return table

    def refuse_line(self, numeric: list[str], target: str | None) -> None:
        """Raise InputError for the first malformed line, if there is one."""
        places = [(self.header.index(name), name) for name in numeric]
        for number, line in enumerate(read_lines(self.path), 1):
            if number <= self.place or not line.strip():
                continue
            where, fields = f"{self.path}:{number}", _split(self.path, number, self.dialect, line)
            if len(fields) != len(self.header):
                raise InputError(f"{where}: {len(fields)} fields, but the header has {len(self.header)} names")
            for place, name in places:
                if not _is_finite(fields[place]):
                    raise InputError(
                        f"{where}: column {name!r} is {_short(fields[place])}: a finite number is needed; fill one in, "
                        f"give --categorical {name} for a column of categories, or leave it out with --drop {name}"
                    )
            if target is not None and not fields[self.header.index(target)]:
                raise InputError(f"{where}: column {target!r}, which is to be predicted, is empty")


def _split(path: Path, number: int, dialect: Dialect, line: str) -> list[str]:
    try:
        return dialect.split(line)
    except InputError as error:
        raise InputError(f"{path}:{number}: {error}: {_short(line)}") from error


def line_of_libsvm(path: Path, row: int) -> int:
    """Return the line of a sample in LIBSVM's format; a comment alone is none."""
    return _line_of(path, row, lambda line: line.partition("#")[0])


def line_of_record(path: Path, row: int) -> int:
    """Return the line of a sample in delimited text, below the header."""
    return _line_of(path, row + 1, lambda line: line)


def _line_of(path: Path, row: int, content: Callable[[str], str]) -> int:
    lines = (number for number, line in enumerate(read_lines(path), 1) if content(line).strip())
    return next(islice(lines, row, None), 0)


def _is_finite(text: str) -> bool:
    return is_number(text) and math.isfinite(float(text))


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:29] + "…")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return f"the columns are {shown}" + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
