"""Ctrl-C while the `strads` command imports its modules, which takes a second: a line, not a traceback."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _is_command() -> bool:
    """Whether this process is `strads …` or `python -m strads …`, not a program that imports strads."""
    if sys.argv[:1] == ["-m"]:  # Python looks for the module
        arguments = sys.orig_argv
        return "-m" in arguments and arguments[arguments.index("-m") + 1 :][:1] == ["strads"]
    return os.path.basename(sys.argv[0] if sys.argv else "") == "strads"


IS_COMMAND = _is_command()  # asked now: later, `sys.argv` is that of the module


@contextmanager
def ends_quietly() -> Iterator[None]:
    """Context for further imports of the command: Ctrl-C in them prints one line."""
    if IS_COMMAND:
        end_quietly()
    try:
        yield
    finally:
        started()


def end_quietly() -> None:
    """Let Ctrl-C end this process with one line, until `started`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def started() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: Any) -> None:
    os.write(2, b"strads: interrupted\n")
    os._exit(130)
