"""A compiler pass that gives float literals the precision of what they meet, among float32 tables."""

from types import CodeType
from typing import Any

import numpy as np
from numba.core import ir

from strads.engine.views.python_floats import WeakFloat


def make_literals_weak(function_ir: Any, code: CodeType) -> None:
    """Replace float literals, and floats that are global, by weak ones if float32 can represent them."""
    for block in function_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            constant = statement.value
            if isinstance(constant, ir.Const | ir.Global | ir.FreeVar) and _fits(constant.value):
                # Not a constant: array expressions are rebuilt as Python source, which has no such literals.
                statement.value = ir.FreeVar(0, f"literal {constant.value}", WeakFloat(constant.value), constant.loc)


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
