"""Stopping compiled code that might not terminate: loops of a body check whether their run is to stop."""

import contextvars
import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

ENDLESS = "a while loop does not end"
TOO_LONG = "a while loop runs too many iterations to be recorded"
MAX_ITERATIONS = 1 << 30  # limit for a `while` loop in one function call during reconnaissance
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
_FLAG, _IS_ASKED = "strads_stop_flag", "strads_stop_is_asked"
llvmlite.binding.add_symbol(_FLAG, _flag.ctypes.data)
llvmlite.binding.add_symbol(_IS_ASKED, ctypes.cast(_is_asked, ctypes.c_void_p).value)


@intrinsic
def _is_stopping(typingctx: Any) -> Any:
    """Read the flag, which other threads write, with an atomic load, so that it is never cached in a register.

    Only if it is set ask the interpreter, which takes a microsecond, whether it is meant for this thread.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        module, integer = builder.module, ir.IntType(64)
        pointer = module.globals.get(_FLAG) or ir.GlobalVariable(module, integer, _FLAG)
        zero = ir.Constant(integer, 0)
        answer = cgutils.alloca_once_value(builder, zero)
        is_set = builder.icmp_signed("!=", builder.load_atomic(pointer, "monotonic", 8), zero)
        with builder.if_then(is_set, likely=False):
            function = cgutils.get_or_insert_function(module, ir.FunctionType(integer, []), _IS_ASKED)
            builder.store(builder.call(function, []), answer)
        return builder.icmp_signed("!=", builder.load(answer), zero)

    return types.boolean(), codegen


@register_jitable
def check_stop() -> None:
    """Raise StoppedError if the run is to stop."""
    if _is_stopping():
        raise StoppedError("the loop was interrupted")


@register_jitable
def check_iteration(turns):  # type: ignore[no-untyped-def]
    """Count an iteration of a `while` loop, and raise StoppedError if the run is to stop."""
    check_stop()
    return turns + 1


@register_jitable
def check_recorded_iteration(turns):  # type: ignore[no-untyped-def]
    """As `check_iteration`, for reconnaissance, where no other task changes what a loop may be waiting for."""
    check_stop()
    if turns >= MAX_ITERATIONS:
        raise RuntimeError(ENDLESS)
    return turns + 1


@register_jitable
def check_chosen_iteration(turns):  # type: ignore[no-untyped-def]
    """As `check_iteration`, where reconnaissance may miss a loop's exit, so that another strategy has to be found."""
    check_stop()
    if turns >= MAX_CHOSEN_ITERATIONS:
        raise RuntimeError(TOO_LONG)
    return turns + 1


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
