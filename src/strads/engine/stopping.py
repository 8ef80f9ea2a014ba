"""Stopping compiled code that might not terminate: loops of a body check a process-wide flag."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

INTERRUPTED = "the loop was interrupted"
ENDLESS = "a while loop does not end"
TOO_LONG = "a while loop runs too many iterations to be recorded"
MOST_TURNS = 1 << 30  # limit for a `while` loop in one function call during reconnaissance
MOST_CHOSEN_TURNS = 1 << 14  # where a real run would exit the loop, possibly soon

_flag = np.zeros(1, np.int64)
_SYMBOL = "strads_stop_flag"  # by symbol: cached code loaded from disk finds the flag of its own process
llvmlite.binding.add_symbol(_SYMBOL, _flag.ctypes.data)
_users = threading.Lock()
_requests = 0


@intrinsic
def _is_stopping(typingctx: Any) -> Any:
    """Read the flag, which other threads write, with an atomic load, so that it is never cached in a register."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        module = builder.module
        pointer = module.globals.get(_SYMBOL) or ir.GlobalVariable(module, ir.IntType(64), _SYMBOL)
        return builder.icmp_signed("!=", builder.load_atomic(pointer, "monotonic", 8), ir.Constant(ir.IntType(64), 0))

    return types.boolean(), codegen


@register_jitable
def check_stop() -> None:
    """Raise RuntimeError if all loops of the process are to stop."""
    if _is_stopping():
        raise RuntimeError(INTERRUPTED)


@register_jitable
def check_turn(turns):  # type: ignore[no-untyped-def]
    """Count an iteration of a `while` loop, and raise RuntimeError if the loop is to stop."""
    check_stop()
    return turns + 1


@register_jitable
def check_recorded_turn(turns):  # type: ignore[no-untyped-def]
    """As `check_turn`, for reconnaissance, where no other task changes what a loop may be waiting for."""
    check_stop()
    if turns >= MOST_TURNS:
        raise RuntimeError(ENDLESS)
    return turns + 1


@register_jitable
def check_chosen_turn(turns):  # type: ignore[no-untyped-def]
    """As `check_turn`, where reconnaissance may miss a loop's exit, so that another strategy has to be found."""
    check_stop()
    if turns >= MOST_CHOSEN_TURNS:
        raise RuntimeError(TOO_LONG)
    return turns + 1


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Yield a function that makes all bodies of this process stop soon; the flag is cleared for the next loop."""
    global _requests
    asked = False

    def stop() -> None:
        nonlocal asked
        global _requests
        with _users:
            if not asked:
                asked = True
                _requests += 1
                _flag[0] = 1

    try:
        yield stop
    finally:
        if asked:
            with _users:
                _requests -= 1
                if _requests == 0:
                    _flag[0] = 0
