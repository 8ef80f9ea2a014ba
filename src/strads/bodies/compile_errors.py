"""Converts Numba's errors about a body into one that starts with the offending line."""

import builtins
import dis
import inspect
import os
import re
import types
from collections.abc import Callable
from typing import Any

from strads.dds import Accumulator, KeyedTable, dvector
from strads.errors import CompileError, StradsError
from strads.user_code.source_location import describe, is_user_file

_PLACE = re.compile(r'(?:File "|Raised from )([^"\n]+?)(?:", line | \()(\d+)')
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_OWN_REASON = re.compile(r"raised a specific error:\s*TypingError: (.*)\s*raised from [^\n]*strads/(?:engine|rng)/")
_PREAMBLE = re.compile(r"^(Failed in nopython mode pipeline.*|- Resolution failure for .*|)$")
_DETAILS = re.compile(r"^(During: .*|File \".*|There are \d+ candidate implementations:.*)$")
_MAX_REASON = 300


def explain(error: Exception, body: Callable[..., Any]) -> StradsError:
    """Return the error for a body that could not be compiled; Numba's full text is kept in `__cause__`."""
    if isinstance(error, StradsError):
        return error
    text = _ANSI.sub("", str(error))
    if isinstance(error, KeyError):  # Numba looks up a record's field in a plain dict
        line = _names(body, "LOAD_ATTR").get(error.args[0], body.__code__.co_firstlineno)
        return compile_error(body.__code__.co_filename, line, f"a record has no field {error.args[0]!r}")
    return compile_error(*_location(error, text, body), _reason(text))


def _location(error: Exception, text: str, body: Callable[..., Any]) -> tuple[str, int]:
    """Return the file and line of Numba's error; Numba names the innermost line first."""
    location = getattr(error, "loc", None)
    found = [(match[1], int(match[2])) for match in _PLACE.finditer(text)]
    if location is not None:
        found.append((location.filename, location.line))
    for filename, line in found:
        path = os.path.abspath(filename)
        if is_user_file(path):
            return path, line
    return body.__code__.co_filename, body.__code__.co_firstlineno


def compile_error(filename: str, line: int, reason: str) -> CompileError:
    """Return the error for a line that cannot be compiled."""
    return CompileError(
        f"{describe(filename, line)}\n  strads cannot compile this: {reason}\n"
        "  Loop bodies use the subset of Python and NumPy that Numba supports, with a few exceptions."
    )


def check_names(function: types.FunctionType) -> None:
    """Reject a function that uses an undefined global name, or a global that is a table.

    Raises
    ------
    CompileError
        Names the first such line.
    """
    filename = function.__code__.co_filename
    for name, line in _names(function, "LOAD_GLOBAL").items():
        if name not in function.__globals__ and not hasattr(builtins, name):
            raise compile_error(filename, line, f"name {name!r} is not defined")
    outside = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    for name, line in (_names(function, "LOAD_GLOBAL") | _names(function, "LOAD_DEREF")).items():
        if isinstance(outside.get(name), dvector | KeyedTable | Accumulator):
            reason = f"{name!r} comes from outside of the loop body: pass it as an argument"
            raise compile_error(filename, line, reason)


def _names(function: Callable[..., Any], operation: str) -> dict[str, int]:
    """Names used by a bytecode operation, with the first line of each."""
    line = function.__code__.co_firstlineno
    names: dict[str, int] = {}
    for instruction in dis.get_instructions(function):
        line = (instruction.positions.lineno if instruction.positions else None) or line
        if instruction.opname == operation:
            names.setdefault(instruction.argval, line)
    return names


def _reason(text: str) -> str:
    """Extract the sentence that describes the error from the compiler output."""
    text = re.sub(r"\.* ?Raised from .*", "", text)
    own = _OWN_REASON.findall(text)
    if own:
        return str(own[-1]).strip()
    if "Cannot modify readonly array" in text:
        return (
            "this writes a row of a table that the analysis took for read-only: write it as table[row][...] = ..., "
            "not through another name"
        )
    useful: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if useful and _DETAILS.match(line):
            break
        if not _PREAMBLE.match(line) and not _DETAILS.match(line):
            useful.append(line)
    return "\n    ".join(useful[:3])[:_MAX_REASON] or text.strip()[:_MAX_REASON]
