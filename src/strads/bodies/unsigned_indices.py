"""Compiler pass that compiles indices which are not negative without the choice that counts from the end.

Python counts negative indices from the end, so Numba compiles each `a[i]` to a choice between i and i + len(a). Where
indices come from data, as the columns of a sparse row, such choices can take longer than the arithmetic. Unsigned
indices have none. Only the index is converted, where it is used: LLVM learns nothing about the number itself, from
which it could conclude that other results, which may overflow, are not negative.
"""

from collections.abc import Iterator
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
                block.body = list(_converted(block, names))
            return bool(names)

    return register_pass(mutates_CFG=False, analysis_only=False)(UnsignedIndices)


def _converted(block: Any, names: set[str]) -> Iterator[Any]:
    """Yield the statements of a block with conversions before those that index."""
    tuples = dict[str, list[Any]]()  # variables → items of the tuples that they hold
    for statement in block.body:
        indexed = _indexed(statement)
        if indexed is not None:
            holder, container = indexed
            items = tuples.get(holder.index.name)
            if items is None and holder.index.name in names:
                yield from _conversion(block, holder, container, statement.loc)
            elif items is not None and any(item.name in names for item in items):
                yield from _conversion_of_items(block, holder, container, items, names, statement.loc)
        yield statement
        if isinstance(statement, ir.Assign):
            name, value = statement.target.name, statement.value
            tuples = {of: items for of, items in tuples.items() if of != name and all(i.name != name for i in items)}
            if isinstance(value, ir.Expr) and value.op == "build_tuple":
                tuples[name] = value.items


def _indexed(statement: Any) -> tuple[Any, Any] | None:
    """Return what has the index of a statement, and the container; None for other statements."""
    if isinstance(statement, ir.SetItem):
        return statement, statement.target
    value = statement.value if isinstance(statement, ir.Assign) else None
    return (value, value.value) if isinstance(value, ir.Expr) and value.op == "getitem" else None


def _conversion(block: Any, holder: Any, container: Any, loc: Any) -> Iterator[Any]:
    """Yield statements that convert an index, and use the result instead."""
    converted, function = (block.scope.redefine(name, loc) for name in ("$strads_index", "$strads_unsigned"))
    yield ir.Assign(ir.FreeVar(0, "unsigned_index", unsigned_index, loc), function, loc)
    yield ir.Assign(ir.Expr.call(function, (container, holder.index), (), loc), converted, loc)
    holder.index = converted


def _conversion_of_items(
    block: Any, holder: Any, container: Any, items: list[Any], names: set[str], loc: Any
) -> Iterator[Any]:
    """The same for items of a tuple that some `names` hold."""
    converted = list[Any]()
    for item in items:
        part = ir.Expr.getitem(container, item, loc)
        if item.name in names:
            yield from _conversion(block, part, container, loc)
        converted.append(part.index)
    index = block.scope.redefine("$strads_indices", loc)
    yield ir.Assign(ir.Expr.build_tuple(converted, loc), index, loc)
    holder.index = index
