"""The team of threads: what it runs, what becomes of exceptions and of Ctrl-C, and calls from its own members."""

import contextlib
import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import strads
from strads import cluster
from strads.cluster import ThreadTeam
from strads.cluster.critical_sections import interrupts_deferred

# Each of a few jobs takes minutes. The first task of the long loop tells that it runs.
LONG_LOOP = """
import os, signal, sys, threading, time
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
strategy = sys.argv[1]
strads.async_for(1_000_000, body, x, 0, strategy=strategy)
threading.Thread(target=interrupt_once_running, daemon=True).start()
try:
    strads.async_for(1_000_000, body, x, 1_000_000, strategy=strategy)
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


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_member_that_calls_its_team_gets_one_of_its_own(size):
    seen: list[tuple[int, int]] = []

    def outer(thread: int) -> None:
        meeting = threading.Barrier(size, timeout=10)

        def inner(number: int) -> None:
            meeting.wait()  # as compiled threads do: all are there at once
            seen.append((thread, number))

        team.run(inner)

    with contextlib.closing(ThreadTeam(size)) as team:
        team.run(outer)
    assert sorted(seen) == [(a, b) for a in range(size) for b in range(size)]


def test_a_member_that_calls_its_team_by_way_of_another():
    seen: list[str] = []
    with contextlib.closing(ThreadTeam(1)) as first, contextlib.closing(ThreadTeam(2)) as second:

        def back(thread: int) -> None:
            first.run(lambda _: seen.append("run"))
            first.for_each(lambda _: seen.append("for_each"), 3)

        first.run(lambda _: second.run(back))
    assert sorted(seen) == ["for_each"] * 6 + ["run"] * 2


def test_an_exception_of_an_inner_call_reaches_the_outer_caller():
    def outer(thread: int) -> None:
        team.run(lambda _: 1 // 0)

    with contextlib.closing(ThreadTeam(2)) as team:
        with pytest.raises(ZeroDivisionError):
            team.run(outer)
        team.run(lambda thread: None)  # still usable


def test_members_see_the_context_of_the_caller():
    level = contextvars.ContextVar("level", default=0)
    seen: list[int] = []
    with contextlib.closing(ThreadTeam(2)) as team:
        level.set(1)
        team.run(lambda thread: seen.append(level.get()))
        team.for_each(lambda number: seen.append(level.get()), 2)
    assert seen == [1, 1, 1, 1]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("interrupted", [0, 1, 2])
def test_an_interrupt_while_threads_are_started_waits_for_all(monkeypatch, interrupted, before):
    """Ctrl-C may come at any time: before a thread is given its part, or when it has it, but nobody has noted so."""
    team = ThreadTeam(3)
    submit, calls = team._pool.submit, []

    def submit_and_interrupt(*arguments):
        calls.append(arguments)
        if before and len(calls) == interrupted + 1:
            raise KeyboardInterrupt
        future = submit(*arguments)
        if not before and len(calls) == interrupted + 1:
            raise KeyboardInterrupt
        return future

    monkeypatch.setattr(team._pool, "submit", submit_and_interrupt)
    meeting, seen = threading.Barrier(3, timeout=10), []

    def work(thread: int) -> None:
        meeting.wait()  # all threads come, or none gets through
        seen.append(thread)

    with pytest.raises(KeyboardInterrupt):
        team.run(work)
    assert sorted(seen) == [0, 1, 2]
    monkeypatch.undo()
    team.run(work)  # still usable
    team.close()
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("interrupts", [1, 2, 5])
def test_interrupts_while_it_waits_wait_for_all(monkeypatch, interrupts):
    team = ThreadTeam(2)
    stopped, ended = threading.Event(), []
    wait, times = threading.Condition.wait_for, []

    def wait_and_interrupt(condition, predicate, timeout=None):
        if threading.current_thread() is threading.main_thread():
            times.append(None)
            if len(times) <= interrupts:
                raise KeyboardInterrupt
        return wait(condition, predicate, timeout)

    def work(thread: int) -> None:
        assert stopped.wait(10)
        time.sleep(0.05)
        ended.append(thread)

    monkeypatch.setattr(threading.Condition, "wait_for", wait_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        team.run(work, on_interrupt=stopped.set)
    assert sorted(ended) == [0, 1]
    times.clear()
    begun: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        team.for_each(begun.append, 1_000_000)
    assert len(begun) < 1_000_000
    monkeypatch.undo()
    team.close()


def test_what_a_failed_call_refers_to_is_freed_with_it():
    class Large:
        pass

    def call() -> "weakref.ref[Large]":
        large = Large()

        def work(thread: int) -> None:
            raise ValueError(f"{large} is in this frame")

        with contextlib.suppress(ValueError):
            team.run(work)
        return weakref.ref(large)

    gc.disable()
    try:
        with contextlib.closing(ThreadTeam(2)) as team:
            found = call()
            team.run(lambda thread: None)  # threads keep what they did last
    finally:
        gc.enable()
    assert found() is None


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


def test_threads_that_ask_at_once_get_the_same(monkeypatch):
    from strads.cluster import node, runtime

    def slowly(kind):
        return lambda *arguments: time.sleep(0.05) or kind(*arguments)

    for module, name in ((runtime, "Here"), (runtime, "ThreadsCluster"), (runtime, "ThreadTeam"), (node, "ThreadTeam")):
        monkeypatch.setattr(module, name, slowly(getattr(module, name)))
    with strads.init(threads=2) as chosen, ThreadPoolExecutor(4) as callers:
        for ask in (
            lambda _: chosen.here,
            lambda _: chosen.cluster,
            lambda _: chosen.team(),
            lambda _: chosen.here._nodes[0].team,
        ):
            assert len({id(found) for found in callers.map(ask, range(4))}) == 1
        names = list(callers.map(lambda _: [chosen.cluster.new_name() for _ in range(500)], range(4)))
    assert len({name for of_caller in names for name in of_caller}) == 2000


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_threads(threads):
    with pytest.raises(strads.ArgumentError, match=r"threads=.*: give a whole number, 1 or more"):
        strads.init(threads=threads)


@pytest.mark.parametrize("name", ["timeout", "latency", "bandwidth"])
@pytest.mark.parametrize("value", [-1, np.nan, True, "fast"])
def test_bad_numbers_of_seconds_and_bytes(name, value):
    with strads.init(threads=1) as chosen:
        with pytest.raises(strads.ArgumentError, match=f"{name}=.*give a number of"):
            strads.init(nodes=2, **{name: value})
        assert strads.cluster.current() is chosen


@pytest.mark.parametrize("options", [{"checkpoint_every": 0}, {"checkpoint_dir": "nonsense://x"}])
def test_an_init_that_fails_leaves_no_runtime(tmp_path, options):
    threads = cluster.available_cores() + 1
    with pytest.raises(strads.ArgumentError):
        strads.init(threads=threads, **{"checkpoint_dir": tmp_path} | options)
    assert cluster.current().threads != threads


def test_a_deferred_interrupt_comes_even_after_an_error():
    def fail():
        with interrupts_deferred(cluster.current().cluster):
            signal.raise_signal(signal.SIGINT)
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as found:
        fail()
    assert isinstance(found.value.__context__, ValueError)


def test_unknown_backend():
    with pytest.raises(strads.ArgumentError, match="'slurm' is not available"):
        strads.init("slurm")


@pytest.mark.few(1)
@pytest.mark.parametrize("strategy", ["auto", "locked"])
def test_interrupt_ends_a_loop_soon(strategy):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LONG_LOOP, strategy], capture_output=True, text=True, env=environment, timeout=120
    )
    word, seconds = done.stdout.split()
    assert word == "waited"
    assert float(seconds) < 20  # to the end of its job it would be minutes
    assert done.returncode == 0
