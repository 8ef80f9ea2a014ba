"""A compiler pass for powers of a constant, as in `10.0 ** (x / 400.0)`: `exp2` is four times as fast.

LLVM does the same if it may assume that there are no NaNs, which bodies need not guarantee.
"""

import math
import operator
from types import CodeType
from typing import Any

import numpy as np
from numba import types
from numba.core import ir
from numba.core.ir_utils import get_definition, guard

from strads.bodies.passes.inserted_calls import call_of
from strads.engine.compiling import compiled


@compiled
def power(base, exponent, logarithm):  # type: ignore[no-untyped-def]
    """`base ** exponent`, given log₂ of the base."""
    if not isinstance(exponent, types.Float) or not isinstance(base, types.Float | types.Integer):
        return lambda base, exponent, logarithm: base**exponent
    if base == types.float32 and exponent == types.float32:
        return lambda base, exponent, logarithm: math.exp2(exponent * np.float32(logarithm))
    return lambda base, exponent, logarithm: math.exp2(exponent * logarithm)


def approximate_powers(function_ir: Any, code: CodeType) -> None:
    """Replace powers of positive literals."""
    for block in function_ir.blocks.values():
        body: list[Any] = []
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr) and value.op == "binop" and value.fn is operator.pow:
                base = _constant(function_ir, value.lhs)
                if base is not None:
                    body += _call(block, statement, value, math.log2(base))
                    continue
            body.append(statement)
        block.body = body


def _constant(function_ir: Any, variable: Any) -> float | None:
    definition = guard(get_definition, function_ir, variable)
    value = definition.value if isinstance(definition, ir.Const | ir.FreeVar) else None
    if isinstance(value, int | float | np.floating) and 0 < value < np.inf:
        return float(value)
    return None


def _call(block: Any, statement: Any, expression: Any, logarithm: float) -> list[Any]:
    loc = statement.loc
    constant = block.scope.redefine("$strads_logarithm", loc)
    return [
        ir.Assign(ir.FreeVar(0, f"logarithm {logarithm}", logarithm, loc), constant, loc),
        *call_of(power, (expression.lhs, expression.rhs, constant), block, loc, statement.target),
    ]
