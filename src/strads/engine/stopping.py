"""Stopping compiled code that might not terminate: loops of a body check whether their run is to stop."""

import contextvars
import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from strads.engine.compiling import compiled
from strads.engine.views.types import ViewType

ENDLESS = "a while loop does not end"
TOO_LONG = "a while loop runs too many iterations to be recorded"
MAX_ITERATIONS = 1 << 30  # limit for a `while` loop in one function call during reconnaissance
_STRIDE = 256  # iterations between two looks at the flag
_NOT_GROWING = types.Integer, types.Array, types.BaseTuple, types.UnicodeType, ViewType
MAX_CHOSEN_ITERATIONS = 1 << 14  # where a real run would exit the loop, possibly soon


class StoppedError(RuntimeError):
    """Raised in each thread of a run that is stopped, by Ctrl-C or because another thread has failed."""

    is_consequence = True


class _Run:
    """A run that can be stopped."""

    is_asked = False


_runs: contextvars.ContextVar[tuple[_Run, ...]] = contextvars.ContextVar("stoppable_runs", default=())
_flag = np.zeros(1, np.int64)  # whether any run of the process is to stop
_users = threading.Lock()
_requests = 0


@ctypes.CFUNCTYPE(ctypes.c_int64)
def _is_asked() -> int:
    """Whether a run that this thread works for is to stop; the thread has the context in which the run was started."""
    return int(any(run.is_asked for run in _runs.get()))


# By symbol: cached code loaded from disk finds what its own process has.
_FLAG, _IS_ASKED, _IS_STOPPING = "strads_stop_flag", "strads_stop_is_asked", "strads_is_stopping"
llvmlite.binding.add_symbol(_FLAG, _flag.ctypes.data)
llvmlite.binding.add_symbol(_IS_ASKED, ctypes.cast(_is_asked, ctypes.c_void_p).value)


def _define_is_stopping(module: ir.Module) -> ir.Function:
    """Define a function that reads the flag and, only if it is set, asks the interpreter, which takes a microsecond.

    A function apart, which leaves memory and registers as they are, so that a loop that calls it keeps in registers
    what it would without it.
    """
    integer = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(integer, []), _IS_STOPPING)
    function.linkage, function.calling_convention = "internal", "preserve_allcc"
    for attribute in ("noinline", "nounwind", "cold", "inaccessiblememonly"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    zero = ir.Constant(integer, 0)
    flag = module.globals.get(_FLAG) or ir.GlobalVariable(module, integer, _FLAG)
    with builder.if_then(builder.icmp_signed("==", builder.load_atomic(flag, "monotonic", 8), zero)):
        builder.ret(zero)
    builder.ret(builder.call(cgutils.get_or_insert_function(module, function.ftype, _IS_ASKED), []))
    return function


@intrinsic
def _is_stopping(typingctx: Any) -> Any:
    """Whether the run that this thread works for is to stop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.globals.get(_IS_STOPPING) or _define_is_stopping(builder.module)
        return builder.icmp_signed("!=", builder.call(function, []), ir.Constant(ir.IntType(64), 0))

    return types.boolean(), codegen


@register_jitable
def check_stop() -> None:
    """Raise StoppedError if the run is to stop."""
    if _is_stopping():
        raise StoppedError("the loop was interrupted")


class IterationCheck(NamedTuple):
    """What each iteration of a `while` loop does: count down from `first` by `check`, a function of the count.

    `check_counting`: the same, where the loop moves a number to a limit by constant steps: a function of these, too,
    and of what the limit is the length of.
    """

    first: int
    check: Callable[[int], int]
    check_counting: Callable[[int, Any, Any, Any], int] | None = None


@register_jitable
def _check_iteration(left):  # type: ignore[no-untyped-def]
    """Raise StoppedError now and then if the run is to stop; a decrement and its branch are one instruction."""
    left -= 1
    if left == 0:
        check_stop()
        left = _STRIDE
    return left


@compiled
def _check_counting(left, number, limit, sized):  # type: ignore[no-untyped-def]
    """Do nothing if the loop ends, as a `for` loop does.

    Infinity is never reached, nor the end of what grows; a number without a sign may step over zero, and wrap around.
    """
    is_signed = isinstance(number, types.Integer) and number.signed
    if is_signed and isinstance(limit, types.Integer) and isinstance(sized, _NOT_GROWING):
        return lambda left, number, limit, sized: left
    return lambda left, number, limit, sized: _check_iteration(left)


@register_jitable
def _check_recorded_iteration(left):  # type: ignore[no-untyped-def]
    if left == 0:
        raise RuntimeError(ENDLESS)
    if left % _STRIDE == 0:
        check_stop()
    return left - 1


@register_jitable
def _check_chosen_iteration(left):  # type: ignore[no-untyped-def]
    if left == 0:
        raise RuntimeError(TOO_LONG)
    return left - 1


IN_RUNS = IterationCheck(_STRIDE, _check_iteration, _check_counting)
# In reconnaissance no other task changes what a loop may be waiting for: one that goes on does not end.
IN_RECONNAISSANCE = IterationCheck(MAX_ITERATIONS, _check_recorded_iteration)
# Where reconnaissance may miss a loop's exit, so that another strategy has to be found.
WHERE_CHOSEN = IterationCheck(MAX_CHOSEN_ITERATIONS, _check_chosen_iteration)


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Yield a function that makes bodies stop soon, in all threads that are started within this context."""
    global _requests
    run = _Run()

    def stop() -> None:
        global _requests
        with _users:
            if not run.is_asked:
                run.is_asked = True
                _requests += 1
                _flag[0] = 1

    before = _runs.set((*_runs.get(), run))
    try:
        yield stop
    finally:
        _runs.reset(before)
        if run.is_asked:
            with _users:
                _requests -= 1
                if _requests == 0:
                    _flag[0] = 0
