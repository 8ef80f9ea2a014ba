"""Signals that come during a compilation."""

import os
import threading

from numba.core.compiler_lock import global_compiler_lock

_AGAIN = 0.01  # seconds


def is_sent_again(number: int) -> bool:
    """Whether a signal handler must not raise an exception yet: the signal is sent once more in a moment.

    This is so while the main thread compiles a function or loads a compiled one. Python ignores exceptions in LLVM's
    callbacks, and LLVM continues without the code that the callback would have returned: the process crashes.
    """
    if not global_compiler_lock.is_locked():
        return False
    again = threading.Timer(_AGAIN, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
    return True
