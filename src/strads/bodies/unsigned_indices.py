"""Compiler pass that compiles indices which are not negative without the choice that counts from the end.

Python counts negative indices from the end, so Numba compiles each `a[i]` to a choice between i and i + len(a). Where
indices come from data, as the columns of a sparse row, such choices can take longer than the arithmetic. Unsigned
indices have none. Only the index is converted, where it is used: LLVM learns nothing about the number itself, from
which it could conclude that other results, which may overflow, are not negative.
"""

from functools import cache
from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.extending import intrinsic

from strads.bodies.analysis.inlining import Variable
from strads.engine.views.kinds import TABLES, GhostRowType

_POSITIONAL = (types.Array, *TABLES, GhostRowType)  # containers of which an index may be unsigned


@intrinsic
def unsigned_index(typing_context: Any, container: Any, index: Any) -> Any:
    """Return an index that is not negative as an unsigned integer, if the container takes such."""
    is_signed = isinstance(index, types.Integer) and index.signed
    result = types.uint64 if is_signed and isinstance(container, _POSITIONAL) else index

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[1]
        return context.cast(builder, number, index, types.int64) if result is types.uint64 else number

    return result(container, index), generate


@cache
def unsigned_indices(variables: frozenset[Variable]) -> type[FunctionPass]:
    """Return the pass for functions in which some variables are not negative wherever they are used as indices."""

    class UnsignedIndices(FunctionPass):
        _name = "strads_unsigned_indices"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            function_ir, code = state.func_ir, state.func_id.func.__code__
            names = {name for of, name in variables if of == code}
            for block in function_ir.blocks.values():
                block.body = _converted(block, names)
            return bool(names)

    return register_pass(mutates_CFG=False, analysis_only=False)(UnsignedIndices)


def _converted(block: Any, names: set[str]) -> list[Any]:
    """Return the statements of a block with conversions before those that index."""
    converted = list[Any]()
    tuples = dict[str, list[Any]]()  # variables → items of the tuples that they hold
    for statement in block.body:
        (holder, container), loc = _indexed(statement), statement.loc
        items = None if holder is None else tuples.get(holder.index.name)
        if items is not None and any(item.name in names for item in items):
            parts = [_as_unsigned(block, converted, container, i, loc) if i.name in names else i for i in items]
            index = block.scope.redefine("$strads_indices", loc)
            converted.append(ir.Assign(ir.Expr.build_tuple(parts, loc), index, loc))
            holder.index = index
        elif items is None and holder is not None and holder.index.name in names:
            holder.index = _as_unsigned(block, converted, container, holder.index, loc)
        converted.append(statement)
        if isinstance(statement, ir.Assign):
            name, value = statement.target.name, statement.value
            tuples = {of: items for of, items in tuples.items() if of != name and all(i.name != name for i in items)}
            if isinstance(value, ir.Expr) and value.op == "build_tuple":
                tuples[name] = value.items
    return converted


def _indexed(statement: Any) -> tuple[Any, Any]:
    """Return what has the index of a statement, and the container; None twice for other statements."""
    if isinstance(statement, ir.SetItem):
        return statement, statement.target
    value = statement.value if isinstance(statement, ir.Assign) else None
    return (value, value.value) if isinstance(value, ir.Expr) and value.op == "getitem" else (None, None)


def _as_unsigned(block: Any, statements: list[Any], container: Any, index: Any, loc: Any) -> Any:
    """Append statements that convert an index, and return the variable with the result."""
    result, function = (block.scope.redefine(name, loc) for name in ("$strads_index", "$strads_unsigned"))
    statements.append(ir.Assign(ir.FreeVar(0, "unsigned_index", unsigned_index, loc), function, loc))
    statements.append(ir.Assign(ir.Expr.call(function, (container, index), (), loc), result, loc))
    return result
