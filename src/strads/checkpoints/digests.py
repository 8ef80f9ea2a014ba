"""Digests that are the same in every process, to recognize an operator and its arguments after a restart."""

import argparse
import enum
import functools
import os
import sys
import types
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import xxhash

from strads.checkpoints.checksums import checksum_of
from strads.checkpoints.row_sums import without_padding
from strads.checkpoints.trees import attributes_of, is_plain
from strads.code_names import all_names, cell_value, global_names
from strads.installed import is_installed_module

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))


class InCode:
    """A value that counts for `digest` as what a function's code refers to.

    Instances of ordinary classes, and of those of strads, count by their class alone there: they may hold anything,
    such as the time, or a table that has another state while operators are skipped.
    """

    def __init__(self, value: Any):
        self.value = value


def digest(*parts: Any) -> str:
    """Return a digest (XXH3, 128 bits) of values.

    Numbers, texts, arrays, frames, containers, dataclasses, random generators and the data of estimators count by their
    content; instances of ordinary classes by their attributes and their class. Functions and classes count by their
    code and by what it refers to, as in `InCode`; those that are installed, and what is written in C, by their names.
    Line numbers and file names of code do not count.
    """
    found = xxhash.xxh3_128()
    seen: dict[tuple[int, bool], tuple[int, Any]] = {}  # its number; the value itself, so that no identity occurs twice
    waiting = [(iter((parts,)), False)]  # not recursive: values may be nested deeper than Python's stack
    while waiting:
        values, in_code = waiting[-1]
        for value in values:
            if type(value) in _PLAIN:
                text = f"{type(value).__qualname__} {value!r}"
                found.update(f"{len(text)} 0 {text}".encode())
                continue
            text, inner = _described(value, in_code)
            if inner and not isinstance(value, tuple):
                key = id(value), in_code
                if key in seen:
                    text, inner = f"same {seen[key][0]}", ()
                else:
                    seen[key] = len(seen), value
            found.update(f"{len(text)} {len(inner)} {text}".encode())
            if inner:
                waiting.append((iter(inner), in_code or isinstance(value, InCode | types.FunctionType | type)))
                break
        else:
            waiting.pop()
    return found.hexdigest()


def _described(value: Any, in_code: bool) -> tuple[str, tuple[Any, ...]]:
    """Return a text, and the parts, that describe a value; `in_code` for what code refers to."""
    kind = type(value).__qualname__
    if isinstance(value, enum.Enum):
        return f"{kind} {value.name}", (value.value,)
    if isinstance(value, tuple | list):
        return kind, tuple(value)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype):
        return f"{kind} {value!r}", ()
    if isinstance(value, range):
        return f"{value!r}", ()
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(without_padding(np.asarray(value)))
        if array.dtype.hasobject:
            return f"objects {array.shape}", tuple(array.ravel().tolist())
        return f"array {checksum_of(array)}", ()
    code = _described_code(value)
    if code is not None:
        return code
    if isinstance(value, os.PathLike):
        return f"path {os.fspath(value)}", ()
    module = type(value).__module__.split(".")
    if in_code and module[0] == "strads":
        return kind, ()
    if isinstance(value, Mapping):
        return kind, tuple(value.items())
    if isinstance(value, Set):
        return kind, tuple(sorted(digest(InCode(item) if in_code else item) for item in value))
    is_of_models = module[:2] == ["strads", "models"]
    if is_of_models and hasattr(value, "get_params"):
        return kind, tuple(attributes_of(value))
    if is_dataclass(value):
        return kind, tuple(getattr(value, field.name) for field in fields(value))
    if module[0] in ("scipy", "pandas", "pyarrow", "polars"):
        return kind, _columns(value)
    if isinstance(value, np.random.Generator):
        return kind, (value.bit_generator.state,)
    if isinstance(value, np.random.RandomState):
        return kind, (value.get_state(legacy=False),)
    if module[0] in ("datetime", "decimal", "fractions", "uuid"):
        return f"{kind} {value!r}", ()
    if is_of_models:
        return kind, tuple(attributes_of(value))
    if isinstance(value, types.SimpleNamespace | argparse.Namespace):
        return kind, tuple(vars(value).items())
    if module[0] == "strads" or module[0] in sys.stdlib_module_names or not is_plain(value):
        return kind, ()
    return kind, (type(value), *(() if in_code else attributes_of(value, saved_only=False)))


def _described_code(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Return what describes a function, a class, or a part of them; None for anything else."""
    kind = type(value).__qualname__
    if isinstance(value, InCode):
        return kind, (value.value,)
    if isinstance(value, types.CodeType):
        names = value.co_names, value.co_varnames, value.co_freevars
        return f"code {value.co_name}", (value.co_code, value.co_consts, names)
    if isinstance(value, types.FunctionType):
        cells = tuple(map(cell_value, value.__closure__ or ()))
        defaults = value.__defaults__, tuple(sorted((value.__kwdefaults__ or {}).items()))
        used = () if is_installed_module(value.__module__) else tuple(_globals_of(value))
        return f"function {value.__name__}", (value.__code__, defaults, cells, used)
    if isinstance(value, types.MethodType):
        return kind, (value.__func__, value.__self__)
    if isinstance(value, functools.partial):
        return kind, (value.func, value.args, value.keywords)
    if isinstance(value, staticmethod | classmethod):
        return kind, (value.__func__,)
    if isinstance(value, property):
        return kind, (value.fget, value.fset)
    if hasattr(value, "py_func"):  # of Numba
        return kind, (value.py_func,)
    if isinstance(value, type):
        if is_installed_module(value.__module__):
            return f"{kind} {value.__name__}", ()
        own = [(name, item) for name, item in sorted(vars(value).items()) if not _is_of_python(name, item)]
        return f"{kind} {value.__name__}", (value.__bases__, *own)
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return f"{kind} {value.__name__}", ()
    return None


def _globals_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function uses of its module, and of other modules that are not installed."""
    names = all_names(function.__code__)
    for name in sorted(global_names(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, types.ModuleType) and not is_installed_module(value.__name__):
            yield from ((member, vars(value)[member]) for member in sorted(names & vars(value).keys()))


def _is_of_python(name: str, item: Any) -> bool:
    """Whether Python has made an attribute of a class, such as `__doc__`."""
    return name == "_abc_impl" or (name.startswith("__") and not isinstance(item, types.FunctionType))


def _columns(value: Any) -> tuple[Any, ...]:
    """Return the arrays of a sparse matrix, or the columns of a frame."""
    if hasattr(value, "tocsr"):
        matrix = value.tocsr()
        return matrix.shape, matrix.data, matrix.indices, matrix.indptr
    names = getattr(value, "column_names", getattr(value, "columns", None))
    if names is None:
        return (np.asarray(value),)
    return tuple((str(name), np.asarray(value[name])) for name in names)
