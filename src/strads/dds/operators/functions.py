"""Users' functions of a row, compiled if Numba can; and their errors, with the row and the line of the user's code."""

import dis
import threading
import types
from collections import OrderedDict
from functools import partial
from typing import Any

from numba import typeof
from numba import types as numba_types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from strads.dds._layout import Layout
from strads.errors import BodyError
from strads.user_code.functions import Function, dispatcher_of, fingerprint, plain_function
from strads.user_code.source_location import describe, innermost_user_line

_REMEMBERED = 256  # compiled functions that are kept


class CompiledFunction:
    """A function compiled for rows of one type.

    Attributes
    ----------
    dispatcher
        For calls from compiled code; checks indices.
    result
        Numba type of the return value.
    kernels
        Kernels that operators have built around it, by operator name.
    """

    def __init__(self, dispatcher: Dispatcher, result: Any):
        self.dispatcher = dispatcher
        self.result = result
        self.kernels: dict[Any, Any] = {}


_compiled: "OrderedDict[Any, CompiledFunction | str]" = OrderedDict()
_compiling = threading.Lock()


def compile_for_rows(
    function: Function, layout: Layout, args: tuple[Any, ...], *, rows: int = 1, writes: bool = False
) -> CompiledFunction | str:
    """Compile a function for the rows of a table; returns the reason if it has to run in Python.

    Parameters
    ----------
    function
        Called with `rows` rows and `args`.
    layout
        Layout of the table.
    args
        Additional arguments.
    rows
        Number of rows that the function takes: 1, or 2 for `reduce`.
    writes
        Whether it may write to the row.
    """
    if not isinstance(getattr(function, "py_func", function), types.FunctionType):
        return f"{type(function).__name__} is not a plain function"
    plain = plain_function(function)
    try:
        types_of_args = tuple(typeof(arg) for arg in args)
    except (ValueError, NumbaError) as error:
        return _first_line(error)
    signature = (_row_type(layout, writes),) * rows + types_of_args
    is_guarded = layout.dtype.names is not None and not writes
    key = (fingerprint(plain), signature, is_guarded)
    with _compiling:
        if key not in _compiled:
            _compiled[key] = _compile(plain, signature, is_guarded)
            while len(_compiled) > _REMEMBERED:
                _compiled.popitem(last=False)
        _compiled.move_to_end(key)
        return _compiled[key]


def _compile(function: types.FunctionType, signature: tuple[Any, ...], is_guarded: bool) -> CompiledFunction | str:
    """Compile a function; a guarded one may not store anything, as compiled code would write to records."""
    called: list[types.FunctionType] = []
    # Division by zero follows NumPy, as in Python, where rows are NumPy numbers.
    dispatcher = dispatcher_of(function, check=called.append, boundscheck=True, nogil=True, error_model="numpy")
    if is_guarded:
        for each in called:
            if not (each.__module__ or "").startswith("strads.") and _stores_items(each.__code__):
                which = "it" if each is function else f"{each.__name__}, which it calls,"
                return f"{which} may write to a record, which only Python can refuse"
    try:
        dispatcher.compile(signature)
    except Exception as error:  # Numba also raises exceptions of other types
        return _first_line(error)
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
    """Whether a function, or one within it, assigns to an attribute or an item of anything."""
    stores = any(step.opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE") for step in dis.get_instructions(code))
    return stores or any(_stores_items(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


def failure(operator: str, function: Function, row: int | None, error: BaseException, remark: str = "") -> BodyError:
    """Return the error for a row for which a user's function has raised."""
    where = innermost_user_line(error.__traceback__) or place_of(function)
    which = "" if row is None else f" on row {row}"
    return BodyError(f"{where}\n  {operator}: the function raised {type(error).__name__}{which}: {error}{remark}")


def place_of(function: Function) -> str:
    """Return file and line of a function, or its name."""
    inner = function.func if isinstance(function, partial) else function
    code = getattr(getattr(inner, "py_func", inner), "__code__", None)
    return repr(function) if code is None else describe(code.co_filename, code.co_firstlineno)
