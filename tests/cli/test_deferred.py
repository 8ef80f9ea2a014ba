"""Commands are imported when they are run; until then, they are known by name and docstring."""

import subprocess
import sys

import pytest
import typer

from strads.cli import app
from strads.cli.deferred import DeferredCommand


def _deferred() -> dict[str, DeferredCommand]:
    commands = dict(typer.main.get_command(app).commands)
    return commands | {f"train {name}": each for name, each in commands.pop("train").commands.items()}


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"], ["unknown"]])
def test_help_and_errors_import_no_libraries(arguments: list[str], environment: dict[str, str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "strads", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (2 if arguments == ["unknown"] else 0)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "strads.cli" in imported
    assert not imported & {"numpy", "numba", "sklearn", "pyarrow"}


@pytest.mark.parametrize("name", sorted(_deferred()))
def test_a_command_has_the_name_and_the_help_of_what_it_stands_for(name: str) -> None:
    stub = _deferred()[name]
    command = stub.loaded()
    assert (command.name, command.help) == (stub.name, stub.help)
    if name.startswith("train "):  # runs record the name of their class
        assert stub.source[1].lower() == f"{stub.name}run"
