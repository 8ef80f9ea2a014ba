"""Samples and their targets, from any supported kind of file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.cli.design_text import LONGEST_LABEL, line_of_libsvm, line_of_record, read_delimited, read_libsvm
from strads.cli.matrix_market import read_matrix_market
from strads.cli.samples_options import DesignOptions, column_names
from strads.dds.csv_dialect import is_number
from strads.dds.files import check_announced, check_file, compression_of
from strads.errors import InputError
from strads.models.array_files import read_npy, read_npz
from strads.models.corpora.documents import read_lines, read_vocabulary
from strads.models.regression.inputs import first_not_finite

_ZIP, _MATRIX_MARKET = b"PK\x03\x04", b"%%MatrixMarket"
_SPARSE = {  # what there is besides `data`, by format
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
_NO_LABELS = np.empty(0)
_LIBSVM_SUFFIXES = {".svm", ".libsvm", ".svmlight"}


@dataclass(frozen=True)
class Features:
    """The columns of X."""

    names: Sequence[str | int]  # their numbers, a range, if the file has no names
    given: Sequence[int] | None = None  # their numbers in the LIBSVM file that they are from

    @property
    def numbers(self) -> Sequence[int]:
        """Their numbers in LIBSVM files as the names tell: those that are the names, else 1, 2, … in their order."""
        if isinstance(self.names, range):
            return self.names
        are_numbers = all(str(name).isdecimal() for name in self.names)
        return [int(name) for name in self.names] if are_numbers else range(1, len(self.names) + 1)

    @property
    def lasting(self) -> Sequence[str | int]:
        """What a model is to know them by: their numbers if the names would tell others."""
        return self.names if self.given is None or [*self.given] == [*self.numbers] else self.given

    def take(self, places: Sequence[int]) -> "Features":
        """Return some of them."""
        given = None if self.given is None else [self.given[place] for place in places]
        return Features([self.names[place] for place in places], given)


@dataclass(frozen=True)
class Samples:
    """X and y, and their origin."""

    X: Any  # ndarray or csc_array of shape (n_samples, n_features), float32 or float64
    y: NDArray[Any]  # numbers or strings of shape (n_samples,); empty if they were not read
    features: Features
    kind: str  # the file format, for people
    where: Callable[[int], str]  # the file and line (or number) of a sample's target, for errors
    note: str = ""  # what could not be taken into account

    @property
    def names(self) -> Sequence[str | int]:
        """Names of the columns of X."""
        return self.features.names

    def take(self, rows: NDArray[np.integer]) -> "Samples":
        """Return some of the samples."""
        X = self.X.tocsr()[rows].tocsc() if scipy.sparse.issparse(self.X) else self.X[rows]
        if not scipy.sparse.issparse(X) and self.X.flags.f_contiguous:
            X = np.asfortranarray(X)
        return replace(self, X=X, y=self.y[rows], where=lambda row: self.where(int(rows[row])))

    def without(self, name: str) -> tuple["Samples", NDArray[np.float64]]:
        """Return the samples without a column, and the numbers of that column.

        Raises
        ------
        ValueError
            If no column has this name.
        """
        names = [str(each) for each in self.names]
        place = names.index(name)
        kept = [each for each in range(len(names)) if each != place]
        column = self.X[:, [place]]
        values = column.toarray() if scipy.sparse.issparse(column) else column
        rest = replace(self, X=self.X[:, kept], features=self.features.take(kept))
        return rest, np.asarray(values, np.float64).ravel()

    @property
    def stored(self) -> int:
        """Number of stored entries of X: all entries if it is dense."""
        return int(self.X.nnz if scipy.sparse.issparse(self.X) else self.X.size)

    def describe(self, held_out: "Samples | None") -> str:
        """Say how many samples there are, of which kind, and how many to test on."""
        rows, columns = self.X.shape
        stored = "" if self.stored == rows * columns else f", {self.stored:,} entries"
        held = f"; {held_out.X.shape[0]:,} to test on" if held_out is not None else ""
        return f"{rows:,} samples of {columns:,} features ({self.kind}{stored}){held}"


def read_samples(path: Path, options: DesignOptions, like: Features | None = None, *, labelled: bool = True) -> Samples:
    """Read samples from LIBSVM, MatrixMarket, NumPy's or SciPy's npz, or delimited text; by content.

    Parameters
    ----------
    path : Path
        The file; text may be compressed.
    like : Features, optional
        Features that the columns must be; those without names in the order of the columns.
    labelled : bool
        Whether y is needed.

    Raises
    ------
    InputError
        For any invalid input; names file and line (or row).
    """
    name = check_file(path)
    if _begins_with(name, _ZIP):
        samples = _read_npz(path, options, labelled=labelled)
    elif _begins_with(name, _MATRIX_MARKET):
        y = _labels(path, options, "MatrixMarket files hold X alone") if labelled else _NO_LABELS
        samples = _numbered(path, read_matrix_market(path), y, "MatrixMarket", options.labels)
    elif path.suffix in _LIBSVM_SUFFIXES or _looks_like_libsvm(path):
        _refuse_target(path, options, "LIBSVM files have the label first")
        if options.labels is not None:
            raise InputError(f"{path}: LIBSVM files have the label first: leave out {options.labels}")
        X, y, numbers = read_libsvm(path, None if like is None else like.given or like.numbers)
        y = y if labelled else _NO_LABELS
        features = Features(numbers, numbers)
        samples = Samples(X, y, features, "LIBSVM", lambda row: f"{path}:{line_of_libsvm(path, row)}")
    else:
        if options.labels is not None:
            raise InputError(f"{path}: is delimited text: name the column to predict with --target, without --labels")
        has_names = like is not None and not isinstance(like.names, range)  # else columns count by their place
        wanted = [str(name) for name in like.names] if like is not None and has_names else None
        drop, categorical = map(column_names, (options.drop, options.categorical))
        X, y, names, note = read_delimited(
            path, target=options.target, labelled=labelled, drop=drop, categorical=categorical, features=wanted
        )
        samples = Samples(
            X, y, Features(names), "delimited text", lambda row: f"{path}:{line_of_record(path, row)}", note
        )
    if like is None and options.names is not None:
        samples = _named(samples, options.names)
    _check(path, samples, like, options.labels, labelled=labelled)
    return samples


def _read_npz(path: Path, options: DesignOptions, *, labelled: bool) -> Samples:
    _refuse_target(path, options, "in an npz file y is an array")
    arrays = read_npz(path)
    X = _sparse(path, arrays) if "format" in arrays else arrays.get("X")
    if X is None:
        names = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(f"{path}: holds {names}: give the arrays X and y, or what scipy.sparse.save_npz writes")
    y = arrays.get("y") if options.labels is None else None
    if not labelled:
        y = _NO_LABELS
    elif y is None:
        y = _labels(path, options, "there is no array y in it")
    if scipy.sparse.issparse(X):
        return _numbered(path, scipy.sparse.csc_array(_as_floats(path, X)), y, "npz, sparse", options.labels)
    if X.ndim != 2:
        raise InputError(f"{path}: X has {X.ndim} dimensions: give 2, samples and features")
    return _numbered(path, _as_floats(path, X), y, "npz, dense", options.labels)


def _sparse(path: Path, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the matrix of the arrays that `scipy.sparse.save_npz` writes."""
    try:
        kind, shape = arrays["format"].item(), tuple(int(length) for length in arrays["shape"])
        kind = kind.decode() if isinstance(kind, bytes) else kind
        if kind not in _SPARSE or len(shape) != 2:
            raise ValueError(f"format {kind!r:.20} of shape {shape}: give 2 axes, and one of {', '.join(_SPARSE)}")
        data, *places = (arrays[name] for name in ("data", *_SPARSE[kind]))
        check_announced(str(path), {"rows": shape[0], "columns": shape[1]}, data.size)
        if any(place.dtype.kind not in "iu" for place in (arrays["shape"], *places)):
            raise ValueError("the shape and positions are to be integers")
        given = (data, tuple(places)) if kind == "coo" else (data, *places)
        X = getattr(scipy.sparse, f"{kind}_array")(given, shape=shape)
        if hasattr(X, "check_format"):
            X.check_format()  # compiled code does not check indices
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: holds no sparse matrix of scipy.sparse.save_npz, or a damaged one: {error}"
        ) from error
    return X


def _as_floats(path: Path, X: Any) -> Any:
    if X.dtype in (np.float32, np.float64):
        return X
    if X.dtype.kind not in "biuf":
        raise InputError(f"{path}: X is of dtype {X.dtype}: give real numbers")
    return X.astype(np.float64)


def _labels(path: Path, options: DesignOptions, why: str) -> NDArray[Any]:
    """Read the targets from their own file."""
    _refuse_target(path, options, why)
    if options.labels is None:
        raise InputError(
            f"{path}: {why}: give a file with what is to be predicted, one per line, as --labels, or --test-labels"
        )
    if options.labels.suffix == ".npy":
        return read_npy(check_file(options.labels))
    lines = [line.strip() for line in read_lines(options.labels)]
    if "" in lines:
        raise InputError(f"{options.labels}:{lines.index('') + 1}: the line is blank: give one value on each")
    damaged = next((line for line in lines if "\0" in line), None)
    if damaged is not None:  # NumPy drops it at the end of a text
        raise InputError(f"{options.labels}:{lines.index(damaged) + 1}: labels cannot have a NUL character")
    longest = max(lines, key=len, default="")
    if len(longest) > LONGEST_LABEL:
        line = lines.index(longest) + 1
        raise InputError(f"{options.labels}:{line}: {len(longest):,} characters are no label")
    return np.array(lines)


def _refuse_target(path: Path, options: DesignOptions, why: str) -> None:
    given = next((name for name in ("target", "drop", "categorical") if getattr(options, name)), None)
    if given is not None:
        raise InputError(f"{path}: {why}: leave out --{given}, which names columns of delimited text")


def _numbered(path: Path, X: Any, y: NDArray[Any], kind: str, labels: Path | None) -> Samples:
    place = f"{path}: sample " if labels is None or labels.suffix == ".npy" else f"{labels}:"
    return Samples(X, y, Features(range(1, X.shape[1] + 1)), kind, lambda row: f"{place}{row + 1}")


def _named(samples: Samples, path: Path) -> Samples:
    names = read_vocabulary(path)
    if len(names) != samples.X.shape[1]:
        raise InputError(f"{path}: has {len(names):,} names, but there are {samples.X.shape[1]:,} columns")
    return replace(samples, features=replace(samples.features, names=names))


def _check(path: Path, samples: Samples, like: Features | None, labels: Path | None, *, labelled: bool) -> None:
    X, y = samples.X, samples.y
    if labelled:
        if y.ndim != 1 or len(y) != X.shape[0]:
            given = "what is to be predicted" if labels is None else str(labels)
            raise InputError(f"{path}: {X.shape[0]:,} samples, but {given} has the shape {y.shape}")
        if y.dtype.kind not in "biufUS":
            raise InputError(f"{path}: what is to be predicted is of dtype {y.dtype}: give real numbers or strings")
        _check_targets(samples)
    if X.shape[0] == 0 or X.shape[1] == 0:
        nothing = "nothing to learn from" if like is None else "nothing to predict"
        raise InputError(f"{path}: {X.shape[0]} samples of {X.shape[1]} features: there is {nothing}")
    if like is not None and X.shape[1] != len(like.names):
        unnamed = isinstance(like.names, range) and not isinstance(samples.names, range)
        raise InputError(
            f"{path}: has {X.shape[1]:,} columns, but the training data {len(like.names):,}: they must be the same"
            + ("; the model knows no names, so the position of each counts" if unnamed else "")
        )
    if (found := first_not_finite(X)) is not None:
        row, column, value = found
        raise InputError(
            f"{path}: row {row + 1}, column {samples.names[column]}: {value} cannot be used: remove the row or fill in "
            "a number"
        )


def _check_targets(samples: Samples) -> None:
    """Reject NaN and infinity among numbers, which are not labels either."""
    try:
        wrong = ~np.isfinite(np.asarray(samples.y, dtype=np.float64))
    except ValueError:
        return
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{samples.where(row)}: {samples.y[row]} is to be predicted: remove the sample or fill in a finite number"
        )


def _begins_with(name: str, magic: bytes) -> bool:
    if magic != _ZIP and compression_of(name) is not None:
        return next(iter(read_lines(name)), "").startswith(magic.decode())
    with open(name, "rb") as file:
        return file.read(len(magic)) == magic


def _looks_like_libsvm(path: Path) -> bool:
    """Whether the first line with more than a label or a comment has a label, then `number:value` pairs."""
    for line in read_lines(path):
        label, *pairs = line.partition("#")[0].split() or [""]
        if pairs:
            cut = [pair.partition(":") for pair in pairs]
            return all(mark and head.isdigit() for head, mark, _ in cut if head != "qid")
        if label and not is_number(label):
            return False
    return False
