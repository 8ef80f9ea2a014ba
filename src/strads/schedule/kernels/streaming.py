"""Writing to many places of memory in turn by whole cache lines, which need not be read first.

Storing a part of a line makes the processor fetch the rest of it. Kernels that append to thousands of sequences
therefore collect what belongs to a line in a buffer, which stays in the cache, and stream it once it is complete.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import DTypeLike, NDArray

from strads.schedule.kernels.prefetch import address

LINE = 64  # bytes of a cache line


def empty_lines(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array that begins with a cache line."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    return memory[begin : begin + size].view(dtype).reshape(shape)


def begins_line(array: NDArray[Any]) -> bool:
    """Whether an array begins with a cache line."""
    return array.ctypes.data % LINE == 0


@intrinsic
def stream_lines(typingctx: Any, target: Any, to: Any, source: Any, begin: Any, count: Any) -> Any:
    """Write `count` elements past the caches, `target[to:]` from `source[begin:]`: whole lines of both.

    Other threads see them after `finish_streams`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        line = ir.VectorType(ir.IntType(32), LINE // 4).as_pointer()
        written = builder.bitcast(address(context, builder, target, (args[0], args[1])), line)
        read = builder.bitcast(address(context, builder, source, (args[2], args[3])), line)
        size = context.get_abi_sizeof(context.get_data_type(source.dtype))
        lines = builder.udiv(builder.mul(args[4], args[4].type(size)), args[4].type(LINE))
        with cgutils.for_range(builder, lines) as loop:
            value = builder.load(builder.gep(read, [loop.index]), align=LINE)
            store = builder.store(value, builder.gep(written, [loop.index]), align=LINE)
            store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return types.void(target, types.uintp, source, types.uintp, types.uintp), codegen


@intrinsic
def finish_streams(typingctx: Any) -> Any:
    """Make this thread's streamed lines visible to others before anything that it writes later."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen
