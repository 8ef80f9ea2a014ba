"""Groups of options that several commands share: declared once, as the fields of a dataclass."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

from strads.errors import ArgumentError, InputError

_MOST = 2**31 - 1
_MOST_OF = {"seed": 2**63 - 1}


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the fields of its parameters that are dataclasses as options, for typer to read."""
    own = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}
    shown: list[Parameter] = []
    for each in own:
        if each.name in groups:
            shown += map(_parameter, fields(groups[each.name]))
        else:
            shown.append(each.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, value in given.items():
            _check_size(name, value)
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        try:
            return command(**given)
        except EOFError as error:  # which click takes for Ctrl-D
            raise InputError(f"a file ends too early: {error or 'is it complete?'}") from error

    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def _check_size(name: str, value: Any) -> None:
    """Reject integers that no count can be: arithmetic on them may overflow."""
    most = _MOST_OF.get(name, _MOST)
    if isinstance(value, int) and value > most:
        shown = str(value) if len(str(value)) <= 25 else f"{str(value)[:25]}…"
        option = name.replace("_", "-")
        raise ArgumentError(f"--{option} {shown}: {most} is the largest number here")


def _parameter(field: "Field[Any]") -> Parameter:
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type)
