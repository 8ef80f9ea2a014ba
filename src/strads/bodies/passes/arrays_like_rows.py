"""Compiler pass for arrays made like a row, as by `np.zeros_like(W[i])`: ghosts of rows have a size, but no array.

Otherwise such a body would be recorded on copies of rows, which takes several times as long to compile and to run.
"""

from types import CodeType
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.ir_utils import find_outer_value, guard
from numba.np.numpy_support import as_dtype

from strads.engine.compiling import compiled
from strads.engine.views.kinds import GhostRowType


def _define_like(make: Any, like: Any) -> Any:
    """Return what replaces the function `like` of NumPy, given the one that makes an array of a shape and a dtype."""

    @compiled
    def of_rows_too(a, dtype=None):  # type: ignore[no-untyped-def]
        if not isinstance(a, GhostRowType):
            return lambda a, dtype=None: like(a, dtype)
        if dtype is not None and getattr(dtype, "value", dtype) is not None:
            return lambda a, dtype=None: make(a.shape, dtype)
        own = as_dtype(a.member("fill"))
        return lambda a, dtype=None: make(a.shape, own)

    return of_rows_too


_LIKE = {
    like: _define_like(make, like)
    for make, like in ((np.zeros, np.zeros_like), (np.ones, np.ones_like), (np.empty, np.empty_like))
}


def make_arrays_like_rows(function_ir: Any, code: CodeType) -> None:
    """Replace the functions of NumPy that make arrays like others."""
    found = [
        (statement, replacement)
        for block in function_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if (replacement := _replacement(function_ir, statement)) is not None
    ]
    for statement, replacement in found:
        statement.value = ir.FreeVar(0, "of_rows_too", replacement, statement.loc)


def _replacement(function_ir: Any, statement: Any) -> Any:
    value = statement.value
    if isinstance(value, ir.Global | ir.FreeVar):
        function = value.value
    elif isinstance(value, ir.Expr) and value.op == "getattr" and value.attr.endswith("_like"):
        function = guard(find_outer_value, function_ir, statement.target)
    else:
        return None
    return _LIKE.get(function) if isinstance(function, type(np.zeros_like)) else None
