"""The names in a function's code, and what those of its closure stand for."""

import dis
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


@lru_cache(1024)
def all_names(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function and its nested functions use, those of attributes included."""
    return frozenset(code.co_names).union(*map(all_names, _nested(code)))


@lru_cache(1024)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function and its nested functions look up in their module."""
    own = (item.argval for item in dis.get_instructions(code) if item.opname in _LOADS)
    return frozenset(own).union(*map(global_names, _nested(code)))


def cell_value(cell: types.CellType) -> Any:
    """Return what a name of a closure stands for; None if it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
