"""Compiler pass that tells LLVM which indices are not negative.

Python counts negative indices from the end, so Numba compiles each `a[i]` to a choice between i and i + len(a). Where
indices come from data, as the columns of a sparse row, such choices can take longer than the arithmetic.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.extending import intrinsic

from strads.bodies.analysis.inlining import Variable, is_result


@intrinsic
def nonnegative(typing_context: Any, value: Any) -> Any:
    """Return a value that is not negative if it is an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (number,) = arguments
        if isinstance(value, types.Integer) and value.signed:
            assume = builder.module.declare_intrinsic("llvm.assume", (), llvm.FunctionType(llvm.VoidType(), [_BIT]))
            builder.call(assume, [builder.icmp_signed(">=", number, llvm.Constant(number.type, 0))])
        return number

    return value(value), generate


_BIT = llvm.IntType(1)


@cache
def nonnegative_in(variables: frozenset[Variable]) -> type[FunctionPass]:
    """Return the pass for functions in which some variables hold results that are not negative."""

    class NonnegativeResults(FunctionPass):
        _name = "strads_nonnegative"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            function_ir, code = state.func_ir, state.func_id.func.__code__
            names = {name for of, name in variables if of == code}
            for block in function_ir.blocks.values():
                block.body = list(_with_assumptions(block, names))
            return bool(names)

    return register_pass(mutates_CFG=False, analysis_only=False)(NonnegativeResults)


def _with_assumptions(block: Any, names: set[str]) -> Iterator[Any]:
    for statement in block.body:
        if not is_result(statement) or statement.target.name not in names:
            yield statement
            continue
        loc = statement.loc
        result, function = (block.scope.redefine(name, loc) for name in ("$strads_result", "$strads_nonnegative"))
        yield ir.Assign(statement.value, result, loc)
        yield ir.Assign(ir.FreeVar(0, "nonnegative", nonnegative, loc), function, loc)
        yield ir.Assign(ir.Expr.call(function, (result,), (), loc), statement.target, loc)
