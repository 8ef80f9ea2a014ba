"""Signals that come while code is compiled, when an exception would be lost and the process crash; others' handlers."""

import queue
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


def test_a_handler_of_the_program_stays_whatever_it_is(tmp_path):
    received = queue.SimpleQueue()
    before = signal.signal(signal.SIGTERM, received.put)  # takes two arguments as a handler must: item and block
    try:
        with strads.checkpoint(tmp_path):
            signal.raise_signal(signal.SIGTERM)
            assert received.get(timeout=5) == signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) == received.put
    finally:
        signal.signal(signal.SIGTERM, before)
