"""Where a command writes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console


def standard_output() -> Console:
    """Standard output; as plain lines where it is no real terminal.

    `mpiexec` gives its processes a terminal in any case. That has no columns when its own output goes to a file.
    """
    return Console(highlight=False, force_terminal=False if _columns() == 0 else None)


@contextmanager
def last_words(console: Console) -> Iterator[Console]:
    """Where a process can be read although the `mpiexec` that it runs under is ending: on the terminal itself.

    `mpiexec` drops what its processes write from then on, even that which makes the cursor visible again. Without a
    terminal the console stays what it is.
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


def _columns() -> int | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
