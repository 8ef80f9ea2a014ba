"""How a command fails: one readable line on standard error, and an exit code."""

import sys
import traceback

import typer

from strads.cli import interrupts
from strads.errors import StradsError

BAD_INPUT = 2
FAILED = 1


class RunFailedError(StradsError):
    """A training that began and could not be finished."""


def report(error: BaseException, *, debug: bool) -> int:
    """Print what went wrong and return the exit code: 2 for wrong input or options, 1 for anything else."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        _print("strads: interrupted")
        return interrupts.EXIT_CODE
    if debug:
        traceback.print_exception(error)
    # Newer typer carries a click of its own, so usage errors are known by what they can do.
    if callable(usage_message := getattr(error, "format_message", None)):
        message = str(usage_message()).replace("Value error, ", "")
        _print(f"strads: error: {message}{_help_hint(error)}")
        return BAD_INPUT
    if isinstance(error, StradsError | OSError):
        _print(f"strads: error: {_describe(error)}")
        return BAD_INPUT if isinstance(error, StradsError) and not isinstance(error, RunFailedError) else FAILED
    if isinstance(error, MemoryError):
        _print(f"strads: error: not enough memory: {error}")
        return FAILED
    hint = "" if debug else " (--debug shows where)"
    _print(f"strads: internal error: {type(error).__name__}: {error}{hint}")
    return FAILED


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, StradsError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _help_hint(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


def _print(message: str) -> None:
    print(" ".join(message.split()), file=sys.stderr)
