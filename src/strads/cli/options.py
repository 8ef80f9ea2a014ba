"""Groups of options that several commands share: declared once, as the fields of a dataclass."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from strads.cli.run_directory import FILES
from strads.errors import ArgumentError, InputError

_MOST = 2**31 - 1
_MAX_OF = {"seed": 2**63 - 1}
_WRITTEN = ("out", "vectors")  # options that name what a command writes: every other path is read


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the fields of its parameters that are dataclasses as options, for typer to read.

    A command may be a dataclass itself: calling it makes an instance.
    """
    own = inspect.signature(command).parameters.values()
    groups = {each.name: _fields(each.annotation) for each in own if is_dataclass(each.annotation)}
    shown = [option for each in own for option in groups.get(each.name, [each])]
    shown = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in shown]
    kinds = {each.name: each.annotation for each in own}

    @wraps(command, updated=())
    def run(**given: Any) -> Any:
        for option in shown:
            _check_size(option, given.get(option.name))
        _refuse_replacing(shown, given)
        for name, options in groups.items():
            given[name] = kinds[name](**{option.name: given.pop(option.name) for option in options})
        try:
            return command(**given)
        except EOFError as error:  # which click takes for Ctrl-D
            raise InputError(f"a file ends too early: {error or 'is it complete?'}") from error

    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def _fields(group: Any) -> list[Parameter]:
    return list(inspect.signature(group).parameters.values())


def _check_size(option: Parameter, value: Any) -> None:
    """Reject integers too large for any count: arithmetic on them may overflow."""
    most = _MAX_OF.get(option.name, _MOST)
    if isinstance(value, int) and value > most:
        shown = str(value) if len(str(value)) <= 25 else f"{str(value)[:25]}…"
        raise ArgumentError(f"{_flag(option)} {shown}: the largest possible number is {most}")


def _refuse_replacing(options: list[Parameter], given: Mapping[str, Any]) -> None:
    """Reject an output that would replace a file which the command reads, whatever `--overwrite` says."""
    paths = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    read = [each for name, some in paths.items() if name not in _WRITTEN for each in some if isinstance(each, Path)]
    for option in options:
        out = given.get(option.name)
        if option.name not in _WRITTEN or out is None:
            continue
        for written in (out, *(out / name for name in FILES)):
            for path in read:
                if path.is_file() and written.exists() and path.samefile(written):
                    raise InputError(
                        f"{path}: is a file that this command reads, and {_flag(option)} {out} would replace it: "
                        f"choose another {_flag(option)}"
                    )


def _flag(option: Parameter) -> str:
    """Return the long name of an option: the one that its declaration gives, or that of the parameter."""
    declared = option.annotation.__metadata__[-1]
    names = (declared.default, *(declared.param_decls or ()))  # in Annotated, the first name is where a default was
    own = (name for name in names if isinstance(name, str) and name.startswith("--"))
    return next(own, "--" + option.name.replace("_", "-"))
