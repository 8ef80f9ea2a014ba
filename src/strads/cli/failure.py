"""How a command fails: one readable line on standard error, and an exit code."""

import contextlib
import re
import sys
import traceback
import warnings
from collections.abc import Iterator

import typer

from strads.errors import NodeError, NodeFailure, ProgramStopped, StradsError

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class RunFailedError(StradsError):
    """A training that was started but could not be finished."""


_NOT_THE_INPUT = (RunFailedError, NodeFailure, NodeError, ProgramStopped)
# Prefix of the note that `Cluster.run` adds on where an error was raised; a traceback from there may follow.
_RAISED_ON = re.compile(r"raised on (node \d+ \([^)]*\))")


def report(error: BaseException, *, debug: bool) -> int:
    """Print the error and return the exit code: 2 for wrong input or options, 1 for anything else."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _print("strads: interrupted")
        return INTERRUPTED
    if debug:
        traceback.print_exception(error)
    # Newer typer bundles its own click, so usage errors are recognized by their methods.
    if callable(usage_message := getattr(error, "format_message", None)):
        message = str(usage_message()).replace("Value error, ", "")
        _print(f"strads: error: {message}{_help_hint(error)}")
        return BAD_INPUT
    if isinstance(error, StradsError | OSError):
        _print(f"strads: error: {describe(error)}")
        return BAD_INPUT if isinstance(error, StradsError) and not isinstance(error, _NOT_THE_INPUT) else FAILED
    if isinstance(error, MemoryError):
        _print(f"strads: error: not enough memory: {error}")
        return FAILED
    hint = "" if debug else " (--debug shows where)"
    _print(f"strads: internal error: {type(error).__name__}: {describe(error)}{hint}")
    return FAILED


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print a warning as one line, without the place in the code that it came from."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: _print(f"strads: warning: {message}")
        yield


def describe(error: BaseException) -> str:
    """The message of an error, and the node that raised it if one did."""
    text = str(error)
    if isinstance(error, OSError) and not isinstance(error, StradsError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    for note in getattr(error, "__notes__", ()):
        found = _RAISED_ON.match(note)
        if found is not None and found[1] not in text:
            return f"{text} [on {found[1]}]"
    return text


def _help_hint(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


def _print(message: str) -> None:
    print(" ".join(message.split()), file=sys.stderr)
