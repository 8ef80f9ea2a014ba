"""Prefetching of memory, for compiled code that writes to many streams in turn."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_AHEAD = 128  # bytes: the cache line after the next
_WRITE, _KEEP, _DATA = 1, 3, 1


@intrinsic
def prefetch_ahead(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch for writing the memory after `array[index]`, which need not exist.

    Hardware prefetchers follow only a few streams.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        i8, i32 = ir.IntType(8), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [args[1]]), i8.as_pointer())
        ahead = builder.gep(place, [i32(_AHEAD)])
        function_type = ir.FunctionType(ir.VoidType(), [ahead.type, i32, i32, i32])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (ahead.type,), function_type)
        builder.call(fetch, [ahead, i32(_WRITE), i32(_KEEP), i32(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.uintp), codegen
