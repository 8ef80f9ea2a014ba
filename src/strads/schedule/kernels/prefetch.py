"""Prefetching of memory, for compiled code with irregular accesses, or that writes to many streams in turn."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

SOON = 16  # accesses ahead at which memory is fetched: some hundred nanoseconds
_AHEAD = 128  # bytes: the cache line after the next
_READ, _WRITE, _KEEP, _DATA = 0, 1, 3, 1


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Fetch the cache line of `array[index]`, which is about to be read.

    By itself the processor has few cache misses in flight, because its out-of-order window does not reach further.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _fetch(builder, address(context, builder, array, args), _READ)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def prefetch_ahead(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch for writing the memory after `array[index]`, which need not exist.

    Hardware prefetchers follow only a few streams.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = address(context, builder, array, args)
        _fetch(builder, builder.gep(place, [ir.IntType(32)(_AHEAD)]), _WRITE)
        return context.get_dummy_value()

    return types.void(array, types.uintp), codegen


@intrinsic
def prefetch_bytes(typingctx: Any, array: Any, offset: Any) -> Any:
    """Fetch the cache line so many bytes after the beginning of an array's memory, which need not exist."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        _fetch(builder, builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [args[1]]), _READ)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def prefetch_rows(positions: tuple[int, ...]) -> Any:
    """Make a compiled `fetch(arrays, row)` that prefetches a row, which need not exist, of the arrays at `positions`.

    Items that are not arrays are skipped. The processor's own prefetchers do not run far enough ahead of a stream if
    there is much other work.
    """

    @intrinsic
    def fetch(typingctx: Any, arrays: Any, row: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            for position in positions:
                kind = arrays[position]
                if not isinstance(kind, types.Array):
                    continue
                array = context.make_array(kind)(context, builder, builder.extract_value(args[0], position))
                stride = builder.extract_value(array.strides, 0)
                data = builder.bitcast(array.data, ir.IntType(8).as_pointer())
                _fetch(builder, builder.gep(data, [builder.mul(args[1], stride)]), _READ)
            return context.get_dummy_value()

        return types.void(arrays, types.intp), codegen

    return fetch


def address(context: Any, builder: Any, array: Any, args: Any) -> Any:
    """Return the address of an element of an array, given both, as bytes."""
    data = context.make_array(array)(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())


def _fetch(builder: Any, place: Any, purpose: int) -> None:
    i32 = ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [place.type, i32, i32, i32])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", (place.type,), function_type)
    builder.call(fetch, [place, i32(purpose), i32(_KEEP), i32(_DATA)])
