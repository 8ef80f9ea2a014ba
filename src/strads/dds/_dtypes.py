"""Which dtypes a table may have."""

import numpy as np
from numpy.typing import DTypeLike

from strads.errors import ArgumentError

NUMERIC_KINDS = "biufc"
_DOUBLE = {"f": "f8", "c": "c16"}  # the widest numbers of compiled code


def resolve_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype as strads stores it: in native byte order, numeric or a record of numeric fields.

    Parameters
    ----------
    dtype : dtype-like
        Anything that `np.dtype` accepts. Alignment and padding of records are kept.

    Raises
    ------
    ArgumentError
        If NumPy does not know the dtype, or it cannot be stored.
    """
    try:
        resolved = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentError(f"{dtype!r} is not a dtype that NumPy knows ({error})") from error
    check_dtype(resolved)
    native = resolved.newbyteorder("=")
    return np.dtype((np.void, native)) if native.names is not None else native


def check_dtype(dtype: np.dtype) -> None:
    """Raise ArgumentError for a dtype that compiled loops cannot use, with a suggestion."""
    if dtype.names is None:
        if not _is_number(dtype):
            raise ArgumentError(f"a dvector cannot hold {dtype!r}: {_remedy(dtype)}")
        return
    if not dtype.names:
        raise ArgumentError("a dvector cannot hold records without fields")
    for name in dtype.names:
        field = dtype[name].base
        if field.names is not None:
            raise ArgumentError(
                f"field {name!r} is itself a record, but fields must be numbers: make several fields of it"
            )
        if not _is_number(field):
            raise ArgumentError(f"field {name!r} cannot hold {field!r}: {_remedy(field)}")


def _is_number(dtype: np.dtype) -> bool:
    is_too_wide = dtype.kind in _DOUBLE and dtype.itemsize > np.dtype(_DOUBLE[dtype.kind]).itemsize
    return dtype.kind in NUMERIC_KINDS and not is_too_wide


def _remedy(dtype: np.dtype) -> str:
    if dtype.kind in _DOUBLE:
        return f"compiled code has no more than double precision: convert it first, .astype('{_DOUBLE[dtype.kind]}')"
    if dtype.kind in "SUT":
        return "strings must become numbers first, for instance np.unique(strings, return_inverse=True)[1]"
    if dtype.kind in "mM":
        return "convert times to numbers first, for instance array.astype('i8')"
    return (
        "give an array of numbers (.astype('f4')), an array with a structured dtype for records, "
        "or a list of sequences of numbers for ragged rows"
    )
