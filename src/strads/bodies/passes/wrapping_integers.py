"""A lowering pass after which integers that do not fit 64 bits wrap around, as NumPy's do.

Numba lets LLVM assume that no sum of signed integers overflows. In `if A[i] + 1 < len(x): x[A[i]] += 1` LLVM then takes
`A[i]` for less than `len(x)` even if it is the largest integer, drops the check of the index, and writes outside of the
table.

Sums that are only used as indices keep the assumption, which vectorized inner loops need: an index that has overflowed
fails its check (see `index_checks`), and one that passes has not overflowed. Products may overflow to small numbers.
"""

import operator
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower

from strads.bodies.analysis.inlining import indexed
from strads.bodies.passes.index_checks import checked_index, unsigned_index
from strads.engine.inner_functions import InnerLowering

_SUMS = (operator.add, operator.sub, operator.iadd, operator.isub)
_CONVERSIONS = (unsigned_index, checked_index)


class _WrappingLower(Lower):
    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        result = super().lower_binop(resty, expr, op)
        flags: list[str] = getattr(result, "flags", [])
        if "nsw" in flags and expr not in self._indices:
            flags.remove("nsw")
        return result

    @cached_property
    def _indices(self) -> set[Any]:
        return set(_sums_that_only_index(self.blocks))


@register_pass(mutates_CFG=True, analysis_only=False)
class WrappingLowering(InnerLowering):
    """Replaces Numba's lowering of one function."""

    _name = "strads_wrapping_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """The class that lowers the function."""
        return _WrappingLower


def _sums_that_only_index(blocks: dict[int, Any]) -> Iterator[Any]:
    """Find the sums that are compared, stored, passed or returned nowhere, not even as part of others."""
    statements = [statement for block in blocks.values() for statement in block.body]
    conversions = {
        s.target.name
        for s in statements
        if isinstance(s, ir.Assign)
        and isinstance(s.value, ir.FreeVar)
        and any(s.value.value is each for each in _CONVERSIONS)
    }
    parts = dict[str, list[str]]()  # variables → those of which they consist
    sums = dict[str, list[Any]]()
    used_otherwise = list[str]()
    for statement in statements:
        if isinstance(statement, ir.Del):
            continue
        value = getattr(statement, "value", None)
        found = _parts(value, conversions)
        if isinstance(statement, ir.Assign) and found is not None:
            parts.setdefault(statement.target.name, []).extend(found)
            if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
                sums.setdefault(statement.target.name, []).append(value)
            continue
        holder, container = indexed(statement)
        if holder is None:
            used_otherwise += [variable.name for variable in statement.list_vars()]
        else:
            used_otherwise += [container.name] + ([value.name] if isinstance(value, ir.Var) else [])
    found_otherwise = set[str]()
    while used_otherwise:
        name = used_otherwise.pop()
        if name not in found_otherwise:
            found_otherwise.add(name)
            used_otherwise += parts.get(name, [])
    return (each for name, values in sums.items() if name not in found_otherwise for each in values)


def _parts(value: Any, conversions: set[str]) -> list[str] | None:
    """Return the variables that make up an index or a part of one; None for values of other kinds."""
    if isinstance(value, ir.Var):
        return [value.name]
    if not isinstance(value, ir.Expr):
        return None
    if value.op in ("binop", "inplace_binop") and value.fn in _SUMS:
        return [value.lhs.name, value.rhs.name]
    if value.op == "phi":
        return [each.name for each in value.incoming_values if each is not ir.UNDEFINED]
    if value.op == "build_tuple":
        return [each.name for each in value.items]
    if value.op == "call" and value.func.name in conversions:
        return [value.args[1].name]
    return None
