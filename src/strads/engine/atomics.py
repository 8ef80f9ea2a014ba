"""Atomic operations on array elements, and spin-waiting with yields, for compiled code without the GIL."""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_ORDERING = "seq_cst"


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


@intrinsic
def fetch_add(typingctx: Any, array: Any, index: Any, amount: Any) -> Any:
    """Add `amount` to `array[index]` atomically; returns the previous value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, array, args[0], args[1])
        value = context.cast(builder, args[2], amount, array.dtype)
        return builder.atomic_rmw("add", pointer, value, _ORDERING)

    return array.dtype(array, types.intp, amount), codegen


@intrinsic
def compare_and_swap(typingctx: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    """Set `array[index]` to `desired` if it equals `expected`, atomically; returns whether it did."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, array, args[0], args[1])
        old = context.cast(builder, args[2], expected, array.dtype)
        new = context.cast(builder, args[3], desired, array.dtype)
        result = builder.cmpxchg(pointer, old, new, _ORDERING, _ORDERING)
        return builder.extract_value(result, 1)

    return types.boolean(array, types.intp, expected, desired), codegen


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Load `array[index]` atomically, never cached in a register; elements must have 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, array, args[0], args[1])
        return builder.load_atomic(pointer, _ORDERING, 8)

    return array.dtype(array, types.intp), codegen


@intrinsic
def _yield_processor(typingctx: Any) -> Any:
    """Yield the processor: otherwise, with more threads than cores, waiting threads would burn their time slices."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(nogil=True, cache=True)
def pause(attempts: int) -> None:
    """Back off before the next attempt; after many attempts, yield the processor each time."""
    if attempts > 64:
        _yield_processor()
