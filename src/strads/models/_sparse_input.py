"""Sparse matrices as users give them: refused if their indices do not fit, before compiled code follows them."""

from collections.abc import Sized
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.errors import InputError


def refuse_corrupt(matrix: Any) -> None:
    """Raise an error for a SciPy sparse matrix whose indices do not lie within its shape; reads them once.

    SciPy checks them only on request, and its own conversions read and write out of bounds if they are wrong; except
    those of DOK, which check each one.

    Raises
    ------
    InputError
        That names the array and the position.
    """
    if not scipy.sparse.issparse(matrix):
        return
    what = f"X: the {matrix.format.upper()} matrix is corrupt"
    if matrix.format == "coo":
        for axis, (indices, size) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
            _check_length(what, f"coords[{axis}]", indices, len(matrix.data))
            _check_range(what, f"coords[{axis}]", indices, size)
    elif matrix.format == "dia":
        _check_length(what, "offsets", matrix.offsets, len(matrix.data))
    elif matrix.format == "lil":
        _check_lists(what, matrix)
    if matrix.format not in ("csr", "csc", "bsr") or matrix.ndim != 2:
        return
    major, minor = matrix.shape if matrix.format != "csc" else matrix.shape[::-1]
    if matrix.format == "bsr":  # of positions of blocks
        major, minor = major // matrix.blocksize[0], minor // matrix.blocksize[1]
    indptr, indices = matrix.indptr, matrix.indices
    _check_length(what, "indptr", indptr, major + 1)
    if indptr[0] != 0:
        raise InputError(f"{what}: indptr[0] is {indptr[0]}, not 0: build the matrix again")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        place = int(np.argmax(falls))
        raise InputError(
            f"{what}: indptr decreases from {indptr[place]} to {indptr[place + 1]} at {place + 1}: build it again"
        )
    stored = int(indptr[-1])
    if stored > min(len(indices), len(matrix.data)):
        raise InputError(
            f"{what}: indptr ends at {stored}, but there are {len(indices)} indices and {len(matrix.data)} values: "
            "build it again"
        )
    _check_range(what, "indices", indices[:stored], minor)


def _check_lists(what: str, matrix: Any) -> None:
    """Check the lists of columns and of values that LIL has for each row."""
    for name in ("rows", "data"):
        _check_length(what, name, getattr(matrix, name), matrix.shape[0])
    for row, (columns, values) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
        _check_length(what, f"rows[{row}]", columns, len(values))
        _check_range(what, f"rows[{row}]", np.array(columns, np.int64), matrix.shape[1])


def _check_length(what: str, name: str, array: Sized, length: int) -> None:
    if len(array) != length:
        raise InputError(f"{what}: {name} has {len(array)} entries, not {length}: build the matrix again")


def _check_range(what: str, name: str, indices: NDArray[Any], size: int) -> None:
    unsigned = indices.view(f"u{indices.dtype.itemsize}")  # negative ones become larger than any size
    if len(unsigned) and unsigned.max() >= size:
        place = int(np.argmax(unsigned >= size))
        raise InputError(
            f"{what}: {name}[{place}] is {indices[place]}, but the axis has {size} entries: build the matrix again"
        )
