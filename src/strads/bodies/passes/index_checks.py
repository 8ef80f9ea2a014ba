"""Compiler pass for bounds checks: adds them to indices not proved in bounds; makes nonnegative indices unsigned.

Python counts negative indices from the end, so Numba compiles each `a[i]` to a choice between i and i + len(a). Where
indices come from data, as the columns of a sparse row, such choices can take longer than the arithmetic. Unsigned
indices have none. Only the index is converted, where it is used: LLVM learns nothing about the number itself, from
which it could conclude that other results, which may overflow, are not negative.

Numba checks either all indices of a function or none. Here only those are checked that may not exist: a check in an
inner loop keeps LLVM from vectorizing it.
"""

from collections.abc import Sequence
from types import CodeType
from typing import Any

from llvmlite import ir as llvm
from numba import types
from numba.core import cgutils, ir
from numba.core.errors import TypingError
from numba.extending import intrinsic

from strads.bodies.analysis.inlining import Variable, indexed
from strads.bodies.passes.inserted_calls import call_of
from strads.engine.views.indices import INDEX_ERROR
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


@intrinsic
def checked_index(typing_context: Any, container: Any, index: Any) -> Any:
    """Return an index of an array, with its numbers unsigned, or raise `IndexError`; other containers check theirs."""
    if not isinstance(container, types.Array):
        return index(container, index), lambda context, builder, signature, arguments: arguments[1]
    items = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    axes = _axes(items, container.ndim)
    numbers = [item if axis is None else types.uint64 for item, axis in zip(items, axes, strict=True)]
    result = types.Tuple(numbers) if isinstance(index, types.BaseTuple) else numbers[0]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(container)(context, builder, arguments[0])
        shape = cgutils.unpack_tuple(builder, array.shape, container.ndim)
        if result is not types.uint64:
            values = cgutils.unpack_tuple(builder, arguments[1], len(items))
        else:
            values = [arguments[1]]
        for place, axis in enumerate(axes):
            if axis is not None:
                values[place] = _checked(context, builder, values[place], items[place], shape[axis])
        return context.make_tuple(builder, result, values) if isinstance(result, types.BaseTuple) else values[0]

    return result(container, index), generate


def _axes(items: Sequence[Any], ndim: int) -> list[int | None]:
    """Return the axis of an array that each item of an index selects from; None for items that cannot be outside."""
    found: list[int | None] = []
    axis = 0
    for place, item in enumerate(items):
        if isinstance(item, types.Array):
            raise TypingError("an array of indices is not checked number by number")
        found.append(axis if isinstance(item, types.Integer) else None)
        if isinstance(item, types.EllipsisType):
            axis = ndim - sum(not isinstance(other, types.NoneType) for other in items[place + 1 :])
        elif not isinstance(item, types.NoneType):
            axis += 1
    return found


def _checked(context: Any, builder: Any, value: Any, of_type: Any, size: Any) -> Any:
    """Return the position that an index denotes on an axis, or raise `IndexError`."""
    position = context.cast(builder, value, of_type, types.int64 if of_type.signed else types.uint64)
    if of_type.signed:
        is_negative = builder.icmp_signed("<", position, llvm.Constant(position.type, 0))
        position = builder.select(is_negative, builder.add(position, size), position)
    with builder.if_then(builder.icmp_unsigned(">=", position, size), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, (INDEX_ERROR,))
    return position


def convert_indices(
    function_ir: Any, code: CodeType, *, unsigned: frozenset[Variable], checked: frozenset[Variable]
) -> None:
    """Convert some variables wherever they are used as indices.

    Parameters
    ----------
    unsigned
        Variables that are not negative.
    checked
        Variables that may be outside of an array.
    """
    conversion = _Conversion(_names(unsigned, code), _names(checked, code))
    dicts = _dicts(function_ir)
    for block in function_ir.blocks.values():
        block.body = conversion.converted(block, dicts)
    if conversion.missing:
        raise NotImplementedError(f"no indices {sorted(conversion.missing)} in {code.co_name}")


def _names(variables: frozenset[Variable], code: Any) -> frozenset[str]:
    return frozenset(name for of, name in variables if of == code)


def _dicts(function_ir: Any) -> frozenset[str]:
    """Return the variables that hold a dict made in the function.

    Numba learns its type from what is stored in it, and what a call returns, like that of a conversion of an index of
    the dict, only from the types of the arguments: it would know neither.
    """
    found = frozenset[str]()
    assigned = [s for block in function_ir.blocks.values() for s in block.find_insts(ir.Assign)]
    while True:
        holding = frozenset(
            s.target.name
            for s in assigned
            if (isinstance(s.value, ir.Expr) and s.value.op == "build_map")
            or (isinstance(s.value, ir.Var) and s.value.name in found)
        )
        if holding == found:
            return found
        found = holding


class _Conversion:
    """The conversion of the indices of one function; `missing` are the checked ones that have not been found yet."""

    def __init__(self, unsigned: frozenset[str], checked: frozenset[str]):
        self._unsigned, self._checked = unsigned, checked
        self.missing = set(checked)

    def converted(self, block: Any, dicts: frozenset[str]) -> list[Any]:
        """Return the statements of a block with conversions before those that index anything but one of the `dicts`."""
        converted = list[Any]()
        tuples = dict[str, list[Any]]()  # variables → items of the tuples that they hold
        for statement in block.body:
            holder, container = indexed(statement)
            if holder is not None and container.name in dicts:
                self.missing.discard(holder.index.name)
            elif holder is not None:
                name, loc = holder.index.name, statement.loc
                items = tuples.get(name, [])
                if any(item.name in self._unsigned for item in items):
                    parts = [
                        _call(block, converted, unsigned_index, container, item, loc)
                        if item.name in self._unsigned
                        else item
                        for item in items
                    ]
                    holder.index = block.scope.redefine("$strads_indices", loc)
                    converted.append(ir.Assign(ir.Expr.build_tuple(parts, loc), holder.index, loc))
                elif name in self._unsigned:
                    holder.index = _call(block, converted, unsigned_index, container, holder.index, loc)
                if name in self._checked:
                    holder.index = _call(block, converted, checked_index, container, holder.index, loc)
                    self.missing.discard(name)
            converted.append(statement)
            if isinstance(statement, ir.Assign):
                target, value = statement.target.name, statement.value
                tuples = {
                    of: items
                    for of, items in tuples.items()
                    if of != target and all(item.name != target for item in items)
                }
                if isinstance(value, ir.Expr) and value.op == "build_tuple":
                    tuples[target] = value.items
        return converted


def _call(block: Any, statements: list[Any], convert: Any, container: Any, index: Any, loc: Any) -> Any:
    """Append statements that convert an index, and return the variable with the result."""
    statements += call_of(convert, (container, index), block, loc)
    return statements[-1].target
