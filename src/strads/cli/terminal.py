"""The consoles to which a command writes, and the table of results at its end."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text


class OutputGoneError(KeyboardInterrupt):
    """The reader of the standard output has exited, as in `strads … | head`."""

    signal = "SIGPIPE"


def standard_output(*, quiet: bool = False) -> Console:
    """Standard output; plain lines if it is not a real terminal; nothing if it is to be quiet.

    `mpiexec` always gives its processes a terminal, which has no columns if its own output goes to a file.
    """
    return _Output(highlight=False, force_terminal=False if _columns() == 0 else None, quiet=quiet)


class _Output(Console):
    """Standard output that ends the command, as Ctrl-C does, once the reader of its pipe is gone."""

    def on_broken_pipe(self) -> None:
        """Discard what else is written, also by the interpreter when it ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise OutputGoneError


@contextmanager
def last_words(console: Console) -> Iterator[Console]:
    """A console whose output is visible even while `mpiexec` is terminating the process: the terminal itself.

    `mpiexec` discards all output of its processes from then on, even that which makes the cursor visible again. Without
    a terminal the console is unchanged.
    """
    try:
        terminal = Path("/dev/tty").open("w", encoding="utf-8") if console.is_terminal else None  # noqa: SIM115
    except OSError:
        terminal = None
    if terminal is None:
        yield console
        return
    with terminal:
        direct = Console(file=terminal, highlight=False)
        direct.show_cursor()
        direct.print()
        yield direct


def print_summary(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Print aligned names and values; a value may have several lines.

    Long lines are left to the terminal to wrap, so that paths can be copied.
    """
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        console.print(
            Text.assemble((f"{name:{width}}", "dim"), "  ", value.replace("\n", "\n" + " " * (width + 2))),
            soft_wrap=True,
        )


def first_of(values: Sequence[object]) -> str:
    """Return the first five values, and an ellipsis if there are more."""
    return ", ".join([*map(str, values[:5]), *(["…"] if len(values) > 5 else [])])


def _columns() -> int | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
