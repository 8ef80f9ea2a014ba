"""Commands whose modules are imported when they are run: help on all commands need not wait for scikit-learn."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from strads import _starting
from strads.cli.narrow import fit_help


class DeferredCommand(TyperCommand):
    """Stands for a function, or a class of training runs, of which only the docstring is known so far."""

    source: tuple[str, str]  # its module in `strads.cli`, and its name there

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments of the command itself."""
        with _starting.ends_quietly():
            command = self.loaded()
        fit_help(command)
        return command.make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:
        """Import the command, with its options."""
        import_module("strads._public")  # first, as it prepares Numba for the kernels of all others
        module, name = self.source
        found = getattr(import_module(f"strads.cli.{module}"), name)
        if isinstance(found, type):
            found = import_module("strads.cli.train_run").training(found)
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(self.name)(import_module("strads.cli.options").expanded(found))
        return typer.main.get_command(alone)


def add_deferred(app: typer.Typer, command: str, module: str, name: str) -> None:
    """Add a command to an app: the function or class `name` of a module of `strads.cli`."""
    kind = type("DeferredCommand", (DeferredCommand,), {"source": (module, name)})
    app.command(command, cls=kind, help=_docstring(module, name))(lambda: None)


def _docstring(module: str, name: str) -> str:
    """Return a docstring without importing the module."""
    source = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    definitions = (ast.FunctionDef, ast.ClassDef)
    found = next(node for node in ast.parse(source).body if isinstance(node, definitions) and node.name == name)
    return ast.get_docstring(found) or ""
