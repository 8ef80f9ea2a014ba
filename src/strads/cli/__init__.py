"""The command line: `strads train`, commands that use a model, `strads demo`, `strads info`."""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import strads
from strads.cli import train
from strads.cli.deferred import add_deferred
from strads.cli.failure import FAILED, plain_warnings, report
from strads.cli.narrow import fit_help
from strads.errors import StradsError
from strads.launchers import is_first, is_launched

_COMPLETE = "_STRADS_COMPLETE"  # set by shells that ask what may come next

app = typer.Typer(
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(train.app, name="train")
for _name in ("predict", "recommend", "similar", "evaluate"):
    add_deferred(app, _name, "use", _name)
for _name in ("topics", "demo", "info"):
    add_deferred(app, _name, _name, _name)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"strads {strads.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _strads(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Write the sequential machine-learning loop, run it in parallel with the same result.

    Begin with [bold]strads demo[/bold].
    """
    train.help_without_command(context)


def main() -> None:
    """Entry point of the `strads` command."""
    try:
        strads._starting.started()
        code = run(sys.argv[1:])
    except KeyboardInterrupt as error:
        code = report(error, debug=False)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code: 0, 1 failed, 2 wrong input or options, 130 interrupted.

    Under `mpiexec` only the first process runs the command and returns; the others are its nodes.
    """
    debug = "--debug" in arguments
    try:
        if _COMPLETE not in os.environ and is_launched():
            importlib.import_module("strads._public").cluster.current()
    except StradsError as error:
        return report(error, debug=debug) if is_first() else FAILED  # the first process reports the same
    try:
        command = typer.main.get_command(app)
        fit_help(command)
        with plain_warnings():
            code = command.main(list(arguments), prog_name="strads", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug=debug)
    return code if isinstance(code, int) else 0
