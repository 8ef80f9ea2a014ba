"""A lowering pass after which integer arithmetic wraps around at 64 bits, as NumPy's does.

Numba lets LLVM assume that signed sums never overflow. In `if A[i] + 1 < len(x): x[A[i]] += 1` LLVM then takes `A[i]`
for less than `len(x)` even if it is the largest integer, drops the check of the index, and writes outside of the table.
"""

from typing import Any

from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class _WrappingLower(Lower):
    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        result = super().lower_binop(resty, expr, op)
        flags: list[str] = getattr(result, "flags", [])
        if "nsw" in flags:
            flags.remove("nsw")
        return result


@register_pass(mutates_CFG=True, analysis_only=False)
class WrappingLowering(NativeLowering):
    """Replaces Numba's lowering of one function."""

    _name = "strads_wrapping_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """The class that lowers the function."""
        return _WrappingLower
