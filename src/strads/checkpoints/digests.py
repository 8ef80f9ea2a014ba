"""Digests that are the same in every process, to recognize an operator and its arguments after a restart."""

import enum
import os
import types
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import xxhash

from strads.checkpoints.row_sums import without_padding
from strads.checkpoints.storage import checksum_of
from strads.checkpoints.trees import attributes_of


def digest(*parts: Any) -> str:
    """Return a digest (XXH3, 128 bits) of values.

    Code, functions, numbers, texts, arrays, frames, containers, dataclasses and the data of estimators count by their
    content; anything else by its class alone. Line numbers and file names of code do not count.
    """
    found = xxhash.xxh3_128()
    _add(parts, found, {})
    return found.hexdigest()


def _add(value: Any, found: Any, seen: dict[int, int]) -> None:
    text, parts = _described(value)
    if parts and not isinstance(value, tuple):
        if id(value) in seen:
            text, parts = f"same {seen[id(value)]}", ()
        else:
            seen[id(value)] = len(seen)
    found.update(f"{len(text)} {len(parts)} {text}".encode())
    for part in parts:
        _add(part, found, seen)


def _described(value: Any) -> tuple[str, tuple[Any, ...]]:
    """Return a text, and the parts, that describe a value."""
    kind = type(value).__qualname__
    if isinstance(value, enum.Enum):
        return f"{kind} {value.name}", ()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        return f"{kind} {value!r}", ()
    if isinstance(value, range):
        return f"{value!r}", ()
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(without_padding(np.asarray(value)))
        if array.dtype.hasobject:
            return f"objects {array.shape}", tuple(array.ravel().tolist())
        return f"array {checksum_of(array)}", ()
    if isinstance(value, types.CodeType):
        names = value.co_names, value.co_varnames, value.co_freevars
        return f"code {value.co_name}", (value.co_code, value.co_consts, names)
    if isinstance(value, types.FunctionType):
        cells = tuple(cell.cell_contents for cell in value.__closure__ or () if _is_bound(cell))
        return f"function {value.__name__}", (value.__code__, value.__defaults__, cells)
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return f"{kind} {value.__name__}", ()
    if isinstance(value, os.PathLike):
        return f"path {os.fspath(value)}", ()
    if isinstance(value, tuple | list):
        return kind, tuple(value)
    if isinstance(value, Mapping):
        return kind, tuple(value.items())
    if isinstance(value, Set):
        return kind, tuple(sorted(map(digest, value)))
    is_of_models = type(value).__module__.startswith("strads.models.")
    if is_of_models and hasattr(value, "get_params"):
        return kind, tuple(attributes_of(value))
    if is_dataclass(value):
        return kind, tuple(getattr(value, field.name) for field in fields(value))
    if hasattr(value, "py_func"):  # of Numba
        return kind, (value.py_func,)
    if type(value).__module__.split(".")[0] in ("scipy", "pandas", "pyarrow", "polars"):
        return kind, _columns(value)
    return kind, tuple(attributes_of(value)) if is_of_models else ()


def _columns(value: Any) -> tuple[Any, ...]:
    """Return the arrays of a sparse matrix, or the columns of a frame."""
    if hasattr(value, "tocsr"):
        matrix = value.tocsr()
        return matrix.shape, matrix.data, matrix.indices, matrix.indptr
    names = getattr(value, "column_names", getattr(value, "columns", None))
    if names is None:
        return (np.asarray(value),)
    return tuple((str(name), np.asarray(value[name])) for name in names)


def _is_bound(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
