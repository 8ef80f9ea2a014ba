"""How functions are defined that only compiled code calls, and what they keep in registers."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from strads.engine.inner_functions import InnerCompiler

# Options of functions called only from compiled code: interpreter wrappers would take a third of compile time.
# Whether references to arrays are counted (`_nrt`) is inherited from the caller unless it is given. Those that are kept
# on disk (`cache=True`) need machine code.
ON_DISK = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}
INNER = {**ON_DISK, "pipeline_class": InnerCompiler}
INLINED = {**INNER, "forceinline": True}
# Of functions that allocate no arrays and return none but the caller's: counting would be a quarter of the code.
UNCOUNTED = {**INLINED, "_nrt": False}


def by_types(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of a function that gets types and returns an implementation; it takes options of `overload`.

    Compiled code, and only that, calls the result with values.
    """

    def define(choose: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(choose)
        def stub(*_: Any) -> Any:
            raise NotImplementedError(f"{choose.__name__} is for compiled code only")

        overload(stub, **options)(choose)
        return stub

    return define


compiled = by_types(jit_options=INNER)


@intrinsic(prefer_literal=True)
def local_counters(typingctx: Any, size: Any) -> Any:
    """Make an int64 array of zeros, of a constant size, on the stack of the calling function.

    After inlining the compiler keeps it in registers. It must not outlive the function.
    """
    if not isinstance(size, types.IntegerLiteral):
        return None
    array_type = types.Array(types.int64, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count = size.literal_value
        cell = cgutils.alloca_once_value(builder, ir.Constant(ir.ArrayType(ir.IntType(64), count), None))
        array = context.make_array(array_type)(context, builder)
        items, eight = context.get_constant(types.intp, count), context.get_constant(types.intp, 8)
        array.data = builder.bitcast(cell, array.data.type)
        array.nitems, array.itemsize = items, eight
        array.shape = cgutils.pack_array(builder, [items])
        array.strides = cgutils.pack_array(builder, [eight])
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()

    return array_type(size), codegen


@intrinsic
def constant_item(typingctx: Any, array: Any, index: Any) -> Any:
    """Load `array[index]`, which nothing changes while the calling function runs.

    So the compiler can load it once, before a loop: of other loads it must assume that a store of the body changes
    their value.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, args[0]).data
        value = builder.load(builder.gep(data, [args[1]]))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    return array.dtype(array, types.intp), codegen
