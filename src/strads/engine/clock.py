"""A clock for compiled code."""

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def nanoseconds(typingctx: Any) -> Any:
    """Return the time of the system's monotonic clock in nanoseconds, an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer, long = ir.IntType(32), ir.IntType(64)
        seconds_and_rest = cgutils.alloca_once(builder, ir.ArrayType(long, 2))  # a `timespec` of 64-bit systems
        kind = ir.FunctionType(integer, [integer, seconds_and_rest.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [ir.Constant(integer, time.CLOCK_MONOTONIC), seconds_and_rest])
        seconds, rest = (builder.load(cgutils.gep_inbounds(builder, seconds_and_rest, 0, i)) for i in (0, 1))
        return builder.add(builder.mul(seconds, ir.Constant(long, 1_000_000_000)), rest)

    return types.int64(), codegen
