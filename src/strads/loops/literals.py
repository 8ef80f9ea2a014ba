"""A compiler pass that gives float literals the tables' precision.

In NumPy's promotion rules (NEP 50) a Python float never widens an array; in Numba a literal is a double, so that
`0.5 * w[f]` would compute in double precision among float32 tables.
"""

from typing import Any

import numpy as np
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import IRProcessing


@register_pass(mutates_CFG=False, analysis_only=False)
class SingleLiterals(FunctionPass):
    """Replaces float literals by float32 values where these can hold them."""

    _name = "strads_single_literals"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Rewrite one function's IR."""
        changed = False
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                constant = statement.value
                if isinstance(constant, ir.Const) and _fits(constant.value):
                    # Not a constant again: array expressions are rebuilt as Python source, which has no float32.
                    value = np.float32(constant.value)
                    statement.value = ir.FreeVar(0, f"literal {value}", value, constant.loc)
                    changed = True
        return changed


def _fits(value: object) -> bool:
    if type(value) is not float:
        return False
    limits = np.finfo(np.float32)
    return value == 0 or not np.isfinite(value) or bool(limits.tiny <= abs(value) <= limits.max)


class SinglePrecisionCompiler(CompilerBase):
    """Numba's compiler with `SingleLiterals`."""

    def define_pipelines(self) -> list[Any]:
        """Add the pass as soon as there is an IR."""
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(SingleLiterals, IRProcessing)
        pipeline.finalize()
        return [pipeline]
