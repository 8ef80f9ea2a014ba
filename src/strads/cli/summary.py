"""A short table of names and values at the end of a command."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text


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
