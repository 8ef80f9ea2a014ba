"""A compiler pass that gives float literals the precision of what they meet, among float32 tables."""

from types import CodeType
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.ir_utils import find_callname, guard

from strads.engine.views.python_floats import WeakFloat

_CONVERSIONS = {"int", "round", "floor", "ceil", "trunc", "range", "intp", "intc", "int8", "int16", "int32", "int64"}
_CONVERSIONS |= {"uint", "uintp", "uintc", "uint8", "uint16", "uint32", "uint64"}


def make_literals_weak(function_ir: Any, code: CodeType) -> None:
    """Replace float literals, and floats that are global, by weak ones if float32 can represent them."""
    exact = _index_arithmetic(function_ir)
    for block in function_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            constant = statement.value
            if statement.target.name in exact or not isinstance(constant, ir.Const | ir.Global | ir.FreeVar):
                continue
            if _fits(constant.value):
                # Not a constant: array expressions are rebuilt as Python source, which has no such literals.
                statement.value = ir.FreeVar(0, f"literal {constant.value}", WeakFloat(constant.value), constant.loc)


def _index_arithmetic(function_ir: Any) -> set[str]:
    """Names of the variables used to compute an integer, as in `x[int(k * 0.7)]`: their literals are plain doubles.

    Lists and functions of weak floats would hold and return float32.

    The search goes backwards from each conversion to an integer through its whole expression, and further through
    variables that do not depend on tables.
    """
    definitions = function_ir._definitions
    from_tables = _computed_from_tables(definitions)
    waiting = [
        argument
        for block in function_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if isinstance(statement.value, ir.Expr) and _converts(function_ir, statement.value)
        for argument in statement.value.args
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop().name
        if name in found or (not name.startswith("$") and name in from_tables):
            continue
        found.add(name)
        for source in definitions[name]:
            waiting.extend(_operands(source))
    return found


def _converts(function_ir: Any, expression: Any) -> bool:
    """Whether an expression converts a number to an integer."""
    name = guard(find_callname, function_ir, expression) if expression.op == "call" else None
    return name is not None and name[0] in _CONVERSIONS


def _computed_from_tables(definitions: Any) -> set[str]:
    """Names of the variables whose value depends on an indexed read."""
    found: set[str] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for name, sources in definitions.items():
            for source in sources:
                reads = isinstance(source, ir.Expr) and source.op in ("getitem", "static_getitem")
                if reads or any(operand.name in found for operand in _operands(source)):
                    found.add(name)
    return found


def _operands(source: Any) -> list[Any]:
    if isinstance(source, ir.Var):
        return [source]
    return source.list_vars() if isinstance(source, ir.Expr) else []


def _fits(value: object) -> bool:
    """Whether float32 has such a number; of whole numbers, exactly this one."""
    if type(value) is not float:
        return False
    if value == 0 or not np.isfinite(value):
        return True
    limits = np.finfo(np.float32)
    return bool(limits.tiny <= abs(value) <= limits.max) and (
        not value.is_integer() or float(np.float32(value)) == value
    )
