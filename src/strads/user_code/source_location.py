"""Where in a user's program an error has occurred."""

import linecache
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from strads.installed import is_installed_file


class SourceLine(NamedTuple):
    """A line of source code: of the body, or of a function that it calls, perhaps in another file."""

    filename: str
    line: int

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "SourceLine":
        """Return the first line of a function written in Python."""
        code = function.__code__
        return cls(code.co_filename, code.co_firstlineno)

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def describe(filename: str, line: int) -> str:
    """Return `file:line: source text` (without the text if the source is not available)."""
    text = linecache.getline(filename, line).strip()
    return f"{filename}:{line}: {text}" if text else f"{filename}:{line}"


def is_user_file(filename: str) -> bool:
    """Whether a file is neither strads's nor a library's."""
    return not is_installed_file(filename)


def innermost_user_line(trace: TracebackType | None) -> str | None:
    """Describe the innermost line of a traceback that is neither strads's nor a library's; None if there is none."""
    frames = [frame for frame in traceback.extract_tb(trace) if is_user_file(frame.filename)]
    return describe(frames[-1].filename, frames[-1].lineno or 0) if frames else None
