"""Signals that come while code is compiled: an exception raised then would be lost, and the process would crash."""

import signal
import time

import pytest
from numba.core.compiler_lock import global_compiler_lock

import strads
from strads.cli.interrupts import Interrupts


def compile_while_a_signal_comes() -> None:
    with global_compiler_lock:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0.05)
        compiled.append(True)
    time.sleep(5.0)
    pytest.fail("the signal did not come again")


compiled: list[bool] = []


def test_a_program_with_checkpoints_ends_after_compiling(tmp_path):
    compiled.clear()
    with pytest.raises(SystemExit, match="143"), strads.checkpoint(tmp_path):
        compile_while_a_signal_comes()
    assert compiled


def test_a_command_ends_after_compiling():
    compiled.clear()
    with Interrupts() as signals, pytest.raises(KeyboardInterrupt):
        compile_while_a_signal_comes()
    assert (compiled, signals.received) == ([True], "SIGTERM")
