"""The team of threads: what it runs, what becomes of exceptions and of Ctrl-C."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import strads
from strads import cluster
from strads.cluster import ThreadTeam

# Each of a few jobs takes minutes. The first task of the long loop tells that it runs.
LONG_LOOP = """
import os, signal, threading, time
import strads

def body(k, x, rounds):
    total = 0.0
    for i in range(rounds):
        total += (total + i) % 7.0
    x[k % 1000] = total

def interrupt_once_running():
    while x[:].max() == 0.0:
        time.sleep(0.01)
    interrupted.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

strads.init(threads=2)
x = strads.dvector.zeros(1000, "f8")
interrupted = []
strads.async_for(1_000_000, body, x, 0)
threading.Thread(target=interrupt_once_running, daemon=True).start()
try:
    strads.async_for(1_000_000, body, x, 1_000_000)
except KeyboardInterrupt:
    waited = time.monotonic() - interrupted[0]
    strads.async_for(1000, body, x, 1)  # the threads are free again
    print("waited", waited, flush=True)
"""


def test_run_calls_every_thread_once():
    team = ThreadTeam(3)
    meeting = threading.Barrier(3, timeout=30)
    seen: list[int] = []

    def meet(thread: int) -> None:
        meeting.wait()  # only passes when all three run at once
        seen.append(thread)

    team.run(meet)
    team.close()
    assert sorted(seen) == [0, 1, 2]


def test_two_calls_at_a_time_do_not_wait_for_each_other(monkeypatch):
    team = ThreadTeam(2)
    submit = team._pool.submit

    def late(*arguments):
        time.sleep(1e-3)
        return submit(*arguments)

    monkeypatch.setattr(team._pool, "submit", late)

    def call() -> None:
        for _ in range(20):
            meeting = threading.Barrier(2, timeout=2)  # breaks if each thread has taken another call's
            team.run(lambda _, meeting=meeting: meeting.wait())

    with ThreadPoolExecutor(2) as callers:
        for future in [callers.submit(call) for _ in range(2)]:
            future.result()
    team.close()


def test_an_exception_reaches_the_caller_after_the_others_have_ended():
    team = ThreadTeam(2)
    stopped = threading.Event()
    ended: list[int] = []

    def work(thread: int) -> None:
        if thread == 0:
            raise ValueError("thread 0 failed")
        assert stopped.wait(30)
        ended.append(thread)

    with pytest.raises(ValueError, match="thread 0 failed"):
        team.run(work, on_interrupt=stopped.set)
    assert ended == [1]
    team.run(ended.append)  # still usable
    team.close()
    assert sorted(ended) == [0, 1, 1]


def test_for_each_covers_every_number_once():
    team = ThreadTeam(3)
    seen: list[int] = []
    team.for_each(seen.append, 1000)
    assert sorted(seen) == list(range(1000))
    team.for_each(seen.append, 0)
    team.close()
    assert len(seen) == 1000


def test_for_each_stops_at_an_exception():
    team = ThreadTeam(1)
    seen: list[int] = []

    def work(number: int) -> None:
        if number == 10:
            raise ValueError("number 10")
        seen.append(number)

    with pytest.raises(ValueError, match="number 10"):
        team.for_each(work, 1_000)
    team.close()
    assert seen[:10] == list(range(10))
    assert 10 not in seen


def test_init_and_shutdown():
    with strads.init(threads=3) as runtime:
        assert cluster.current() is runtime
        assert runtime.team().size == 3
        assert runtime.team() is runtime.team(3)
        assert runtime.team(np.int64(2)).size == 2
        team = runtime.team()
    with pytest.raises(RuntimeError):
        team.run(lambda thread: None)  # its threads have ended
    assert cluster.current() is not runtime
    assert cluster.current().threads == cluster.available_cores()
    strads.shutdown()
    strads.shutdown()  # nothing left to do


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_threads(threads):
    with pytest.raises(strads.ArgumentError, match="whole number of threads"):
        strads.init(threads=threads)


def test_unknown_backend():
    with pytest.raises(strads.ArgumentError, match="'slurm' is not available"):
        strads.init("slurm")


def test_interrupt_ends_a_loop_soon():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LONG_LOOP], capture_output=True, text=True, env=environment, timeout=120
    )
    word, seconds = done.stdout.split()
    assert word == "waited"
    assert float(seconds) < 20  # to the end of its job it would be minutes
    assert done.returncode == 0
