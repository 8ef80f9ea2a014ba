"""Where a command writes."""

import os
import sys

from rich.console import Console


def standard_output() -> Console:
    """Standard output; as plain lines where it is no real terminal.

    `mpiexec` gives its processes a terminal in any case. That has no columns when its own output goes to a file.
    """
    return Console(highlight=False, force_terminal=False if _columns() == 0 else None)


def _columns() -> int | None:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None
