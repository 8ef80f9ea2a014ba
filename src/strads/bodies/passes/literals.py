"""A compiler pass that gives float literals the precision of what they meet, among float32 tables."""

from types import CodeType
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.ir_utils import find_callname, get_definition, guard, replace_vars_inner

from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.python_floats import WeakFloat, plain


def make_literals_weak(function_ir: Any, code: CodeType) -> None:
    """Replace float literals, and floats that are global, by weak ones if float32 can represent them.

    What lists, dictionaries and arrays are made of is converted to doubles; Numba would make float32 of it.
    """
    for block in function_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            constant = getattr(statement, "value", None)
            if isinstance(constant, ir.Const | ir.Global | ir.FreeVar) and _fits(constant.value):
                # Not a constant: array expressions are rebuilt as Python source, which has no such literals.
                statement.value = ir.FreeVar(0, f"literal {constant.value}", _weak(constant.value), constant.loc)
            else:
                body += _convert_kept(function_ir, statement, block)
            body.append(statement)
        block.body = body


def _convert_kept(function_ir: Any, statement: Any, block: Any) -> list[Any]:
    """Let a statement take doubles for what it keeps; return the statements that convert, to precede it."""
    added: list[Any] = []
    converted = {}
    for variable in _kept(function_ir, statement):
        added += call_of(plain, (variable,), block, statement.loc)
        converted[variable.name] = added[-1].target
    if converted:
        statement.value = replace_vars_inner(statement.value, converted)
    return added


def _kept(function_ir: Any, statement: Any) -> list[Any]:
    """Variables whose values a statement stores in a list, set, dictionary or new array, or sums."""
    value = getattr(statement, "value", None)
    if isinstance(statement, ir.SetItem):
        target = guard(get_definition, function_ir, statement.target)
        return [value] if getattr(target, "op", None) == "build_map" else []
    if not isinstance(value, ir.Expr):
        return []
    if value.op in ("build_list", "build_set"):
        return list(value.items)
    if value.op == "build_map":
        return [item for _, item in value.items]
    if value.op == "call":
        callee = guard(get_definition, function_ir, value.func)
        adds = isinstance(callee, ir.Expr) and callee.op == "getattr" and callee.attr in ("append", "insert")
        name, module = guard(find_callname, function_ir, value) or ("", "")
        of_all = module == "builtins" and name in ("sum", "min", "max") and len(value.args) == 1
        if adds or of_all or (name, module) == ("full", "numpy"):
            return list(value.args)
    return []


def _weak(value: Any) -> Any:
    return tuple(map(WeakFloat, value)) if isinstance(value, tuple) else WeakFloat(value)


def _fits(value: object) -> bool:
    """Whether float32 has such a number, or tuple of numbers; of whole numbers, exactly this one."""
    if type(value) is tuple:
        return bool(value) and all(type(item) is float and _fits(item) for item in value)
    if type(value) is not float:
        return False
    if value == 0 or not np.isfinite(value):
        return True
    limits = np.finfo(np.float32)
    return float(limits.tiny) <= abs(value) <= float(limits.max) and (
        not value.is_integer() or float(np.float32(value)) == value
    )
