"""Users' functions of a row: compiling them, and knowing them again.

A function is known by its code and by what it refers to, so that one that is defined anew, or arrives at a node for
the second time, is not compiled again, and one whose globals have changed is.
"""

import hashlib
import threading
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, typeof
from numba import types as numba_types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from strads.dds._layout import Layout

Function = Callable[..., Any]
_OWN_MODULES = ("numpy", "numba", "math", "builtins")
_REMEMBERED = 256


def plain_function(function: Function) -> types.FunctionType | None:
    """The Python function behind a Numba dispatcher, or itself; None for other callables."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    return plain if isinstance(plain, types.FunctionType) else None


class CompiledFunction:
    """A function compiled for rows of one type.

    Attributes
    ----------
    dispatcher
        To be called from compiled code; checks indices.
    result
        Numba's type of what it returns.
    kernels
        What operators have built around it, by their names.
    """

    def __init__(self, dispatcher: Dispatcher, result: Any):
        self.dispatcher = dispatcher
        self.result = result
        self.kernels: dict[Any, Any] = {}


class Uncompilable:
    """Why a function runs in Python."""

    def __init__(self, reason: str):
        self.reason = reason


_compiled: "OrderedDict[Any, CompiledFunction | Uncompilable]" = OrderedDict()
_compiling = threading.Lock()


def compile_for_rows(
    function: Function, layout: Layout, args: tuple[Any, ...], *, rows: int = 1, writes: bool = False
) -> CompiledFunction | Uncompilable:
    """Compile a function for the rows of a table.

    Parameters
    ----------
    function
        Called with `rows` rows and `args`.
    layout
        Of the table.
    args
        Further arguments.
    rows
        How many rows it takes: 1, or 2 to reduce.
    writes
        Whether it may write to the row.
    """
    plain = plain_function(function)
    if plain is None:
        return Uncompilable(f"{type(function).__name__} is no plain function")
    if layout.dtype.names is not None and not writes and _stores_items(plain.__code__):
        return Uncompilable("it may write to a record, which only Python can refuse")
    try:
        types_of_args = tuple(typeof(arg) for arg in args)
    except (ValueError, NumbaError) as error:
        return Uncompilable(_first_line(error))
    signature = (_row_type(layout, writes),) * rows + types_of_args
    key = (_fingerprint(plain, frozenset()), signature)
    with _compiling:
        if key not in _compiled:
            _compiled[key] = _compile(plain, signature)
            while len(_compiled) > _REMEMBERED:
                _compiled.popitem(last=False)
        _compiled.move_to_end(key)
        return _compiled[key]


def _compile(function: types.FunctionType, signature: tuple[Any, ...]) -> CompiledFunction | Uncompilable:
    dispatcher = _with_helpers(function, {})
    try:
        dispatcher.compile(signature)
    except Exception as error:  # Numba also fails with errors that are not its own
        return Uncompilable(_first_line(error))
    return CompiledFunction(dispatcher, dispatcher.overloads[signature].signature.return_type)


def _row_type(layout: Layout, writes: bool) -> Any:
    kind = from_dtype(layout.dtype)
    axes = 1 if layout.is_ragged else len(layout.shape) - 1
    return numba_types.Array(kind, axes, "C", readonly=not writes) if axes else kind


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in", "During:", "-", "File"))]
    return f"{type(error).__name__}: {told[0] if told else ''}"


def _stores_items(code: types.CodeType) -> bool:
    import dis

    return any(step.opname in ("STORE_ATTR", "STORE_SUBSCR") for step in dis.get_instructions(code))


def _with_helpers(function: types.FunctionType, done: dict[types.FunctionType, Dispatcher]) -> Dispatcher:
    """A dispatcher for a function and for the Python functions that it calls by name.

    Division by zero is NumPy's, as it is in Python where rows are NumPy numbers.
    """
    if function not in done:
        scope = dict(function.__globals__)
        cells = tuple(types.CellType(_cell_value(cell)) for cell in function.__closure__ or ())
        copied = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
        done[function] = njit(boundscheck=True, nogil=True, error_model="numpy")(copied)
        for name in _names(function.__code__) & scope.keys():
            scope[name] = _compilable(scope[name], done)
        for cell in cells:
            cell.cell_contents = _compilable(cell.cell_contents, done)
    return done[function]


def _compilable(value: Any, done: dict[types.FunctionType, Dispatcher]) -> Any:
    if isinstance(value, types.FunctionType) and _is_users(value):
        return _with_helpers(value, done)
    return value


def _is_users(function: types.FunctionType) -> bool:
    return (function.__module__ or "").split(".")[0] not in _OWN_MODULES


def _fingerprint(function: types.FunctionType, active: frozenset[types.CodeType]) -> Any:
    code = function.__code__
    if code in active:
        return "recursion", code
    active |= {code}
    names = sorted(name for name in _names(code) if name in function.__globals__)
    referred = [(name, function.__globals__[name]) for name in names]
    referred += zip(code.co_freevars, map(_cell_value, function.__closure__ or ()), strict=True)
    values = tuple((name, _value_key(value, active)) for name, value in referred)
    return code, tuple(_value_key(value, active) for value in function.__defaults__ or ()), values


def _value_key(value: Any, active: frozenset[types.CodeType]) -> Any:
    plain = plain_function(value) if callable(value) else None
    if plain is not None and _is_users(plain):
        return _fingerprint(plain, active)
    if isinstance(value, np.ndarray) and value.dtype != object:  # compiled code holds a copy
        return value.dtype, value.shape, hashlib.sha256(np.ascontiguousarray(value).data).digest()
    if isinstance(value, tuple):
        return type(value).__qualname__, tuple(_value_key(item, active) for item in value)
    if isinstance(value, bool | int | float | complex | str | np.generic | None):
        return type(value), repr(value)
    if isinstance(value, types.ModuleType):
        return "module", value.__name__
    if isinstance(value, type):
        return "class", value.__module__, value.__qualname__, getattr(value, "_fields", None)
    return _ById(value)


class _ById:
    """Compares by identity and keeps its object alive, so that the identity stays unique."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _cell_value(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None
