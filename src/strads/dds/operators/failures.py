"""Errors in users' functions, with the row and the line of the user's code."""

from functools import partial

from strads.dds.operators.functions import Function
from strads.errors import BodyError
from strads.user_code.source_location import describe, innermost_user_line


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
