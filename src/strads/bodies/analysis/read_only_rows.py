"""Rows that a function holds in variables, as in `row = T[i]`, and never writes."""

from collections.abc import Iterable, Mapping
from typing import Any

from numba.core import ir
from numba.core.ir_utils import build_definitions

from strads.bodies.analysis.structure import reachable

_SIZES = ("shape", "size", "ndim", "dtype")
_READING = ("binop", "unary")
_PASSING = ("cast", "phi")  # the result is an operand
_ITEM = ("getitem", "static_getitem")


def only_read_rows(blocks: Mapping[int, Any]) -> set[tuple[int, int]]:
    """Return the places (block, statement) of `row = T[i]` where nothing that the row is assigned to is written.

    Tables are those of rows of numbers: a row's item has no memory of its own. The rule only looks at names: it holds
    for a function whose callees are inlined, too, if it holds for the function. Passing a row to a function counts as
    writing it.
    """
    definitions = build_definitions(blocks)
    passed: dict[str, set[str]] = {}  # variable → those that it is assigned to
    changed: set[str] = set()
    items = {}
    for label, block in blocks.items():
        for number, statement in enumerate(block.body):
            if not isinstance(statement, ir.Assign):
                changed |= _changed_by(statement)
                continue
            value, target = statement.value, statement.target.name
            if isinstance(value, ir.Expr) and value.op in _ITEM:
                items[label, number] = target
            if isinstance(value, ir.Var):
                passed.setdefault(value.name, set()).add(target)
            elif isinstance(value, ir.Expr):
                for name in _passed_by(value, definitions):
                    passed.setdefault(name, set()).add(target)
                changed |= _changed_in(value, definitions)
            elif not isinstance(value, ir.Const | ir.Global | ir.FreeVar | ir.Arg):
                changed |= _names(statement.list_vars())
    return {
        place for place, name in items.items() if not reachable([name], lambda name: passed.get(name, ())) & changed
    }


def _names(variables: Iterable[Any]) -> set[str]:
    return {variable.name for variable in variables}


def _changed_by(statement: Any) -> set[str]:
    if isinstance(statement, ir.Del | ir.Jump | ir.Branch | ir.Print):
        return set()
    if isinstance(statement, ir.SetItem):
        return {statement.target.name, statement.value.name}
    return _names(statement.list_vars())


def _changed_in(expression: Any, definitions: Mapping[str, list[Any]]) -> set[str]:
    """Return the variables whose memory an expression may write, or keep in a container."""
    if expression.op in (*_READING, *_PASSING, *_ITEM):
        return set()
    if expression.op == "getattr" and expression.attr in _SIZES:
        return set()
    if expression.op == "inplace_binop":
        return {expression.lhs.name}
    if expression.op == "call" and _is_call_of(expression, (len,), definitions):
        return set()
    return _names(expression.list_vars())


def _passed_by(expression: Any, definitions: Mapping[str, list[Any]]) -> set[str]:
    """Return the variables whose memory the value of an expression may share."""
    if expression.op in _PASSING:
        return _names(expression.list_vars())
    if expression.op == "static_getitem" and isinstance(expression.index, int):
        return set()
    if expression.op in _ITEM:
        index = expression.index if expression.op == "getitem" else expression.index_var
        return set() if index is not None and is_number(index.name, definitions) else {expression.value.name}
    return set()


def is_number(name: str, definitions: Mapping[str, list[Any]], seen: set[str] | None = None) -> bool:
    """Whether a variable is certainly not a slice, given the values that are assigned to each variable."""
    seen = set() if seen is None else seen
    if name in seen:
        return True
    seen.add(name)
    values = definitions.get(name, [])
    return bool(values) and all(_is_numeric(value, definitions, seen) for value in values)


def _is_numeric(value: Any, definitions: Mapping[str, list[Any]], seen: set[str]) -> bool:
    if isinstance(value, ir.Const):
        return isinstance(value.value, int)
    if isinstance(value, ir.Var):
        return is_number(value.name, definitions, seen)
    if not isinstance(value, ir.Expr):
        return False
    if value.op in _PASSING:
        return all(is_number(name, definitions, seen) for name in _names(value.list_vars()))
    if value.op == "call":
        return _is_call_of(value, (len, int, min, max, abs), definitions)
    if value.op in ("pair_first", "iternext", "getiter"):
        return all(_is_range(each, definitions) for each in definitions.get(value.value.name, [None]))
    return value.op in (*_READING, "inplace_binop")


def _is_range(value: Any, definitions: Mapping[str, list[Any]]) -> bool:
    if isinstance(value, ir.Var):
        return all(_is_range(each, definitions) for each in definitions.get(value.name, [None]))
    if not isinstance(value, ir.Expr):
        return False
    if value.op in ("iternext", "getiter"):
        return all(_is_range(each, definitions) for each in definitions.get(value.value.name, [None]))
    return value.op == "call" and _is_call_of(value, (range,), definitions)


def _is_call_of(call: Any, functions: tuple[Any, ...], definitions: Mapping[str, list[Any]]) -> bool:
    of = definitions.get(call.func.name, [])
    return bool(of) and all(isinstance(value, ir.Global | ir.FreeVar) and value.value in functions for value in of)
