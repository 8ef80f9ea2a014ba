"""Calls of our own functions that compiler passes insert into a body."""

from typing import Any

from numba.core import ir


def call_of(function: Any, arguments: tuple[Any, ...], block: Any, loc: Any, target: Any = None) -> list[Any]:
    """Return the statements of a call, of which the last assigns the result to `target`, by default a new variable.

    Parameters
    ----------
    function
        The function, with an overload for compiled code.
    arguments
        Variables.
    block
        Where the statements are going to be: new variables belong to its scope.
    loc
        Place in the source that errors name.
    """
    callee = block.scope.redefine("$strads_function", loc)
    result = target or block.scope.redefine("$strads_result", loc)
    return [
        ir.Assign(ir.FreeVar(0, function.__name__, function, loc), callee, loc),
        ir.Assign(ir.Expr.call(callee, arguments, (), loc), result, loc),
    ]
