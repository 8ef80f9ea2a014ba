"""Errors in users' functions, with the row and the line of the user's code."""

import linecache
import os
import traceback
from functools import partial
from types import TracebackType

from strads.dds.operators.functions import Function
from strads.errors import BodyError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def failure(operator: str, function: Function, row: int | None, error: BaseException, remark: str = "") -> BodyError:
    """Return the error for a row for which a user's function has raised."""
    where = _innermost_user_line(error.__traceback__) or place_of(function)
    which = "" if row is None else f" on row {row}"
    return BodyError(f"{where}\n  {operator}: the function raised {type(error).__name__}{which}: {error}{remark}")


def place_of(function: Function) -> str:
    """Return file and line of a function, or its name."""
    inner = function.func if isinstance(function, partial) else function
    code = getattr(getattr(inner, "py_func", inner), "__code__", None)
    return repr(function) if code is None else _describe(code.co_filename, code.co_firstlineno)


def _describe(filename: str, line: int) -> str:
    text = linecache.getline(filename, line).strip()
    return f"{filename}:{line}: {text}" if text else f"{filename}:{line}"


def _innermost_user_line(trace: TracebackType | None) -> str | None:
    """Return the innermost line of a traceback that is neither in strads nor in a library."""
    frames = [
        frame
        for frame in traceback.extract_tb(trace)
        if not frame.filename.startswith(_PACKAGE) and "site-packages" not in frame.filename
    ]
    return _describe(frames[-1].filename, frames[-1].lineno or 0) if frames else None
