"""Help for narrow terminals: plain lists in place of tables, which would cut the names of options."""

import shutil
from typing import Any

from rich.text import Text

NARROW = 80  # columns that tables and long lines need


def fit_help(command: Any) -> None:
    """Let a command of Typer, and its subcommands, print help that fits the terminal."""
    if shutil.get_terminal_size().columns < NARROW:
        _make_plain(command)


def _make_plain(command: Any) -> None:
    command.rich_markup_mode = None
    for described in (command, *command.params):
        if getattr(described, "help", None):
            described.help = Text.from_markup(described.help).plain
    for each in getattr(command, "commands", {}).values():
        _make_plain(each)
