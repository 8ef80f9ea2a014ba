"""`while` loops that count to a bound: told from those that may never end, which have to check whether to stop."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from launching import in_its_own_process
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import run_frontend
from serial import run_or_refuse

import strads
from strads.bodies.analysis.counting_loops import CountingLoops

ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
TOP = (1 << 63) - 10


def up(a, n):
    i = 0
    while i < n:
        i += 2


def down(a, n):
    while n > 0:
        n = n - 1


def bound_on_the_left(a, n):
    i = 0
    while n >= i:
        i += 1


def to_a_length(a, n):
    i = 0
    while i < len(a):
        a[i] = 0
        i += 1


def to_a_shape(a, n):
    i = 0
    while i < a.shape[0] - 1:
        a[i] = 0
        i += 1


def of_compressed_rows(a, n):
    total, p = 0, a[n]
    while p < a[n + 1]:
        total += a[p]
        p += 1
    return total


def by_a_global_number(a, n):
    i = np.uint64(a[0])
    while i > n:
        i -= ONE


def from_what_is_summed(a, n):
    i = 0
    total = 0.0
    while i < a[n]:
        total += i
        i += 1


def with_another_exit(a, n):
    i = 0
    while i < n and a[i] > 0:
        if a[i] == 3:
            break
        i += 1


def in_both_arms(a, n):
    i = 0
    while i < n:
        if a[i] > 0:
            i += 1
        else:
            i += 2
            a[i] = 0
        i += 1


@pytest.mark.parametrize(
    "function",
    [
        *(up, down, bound_on_the_left, to_a_length, to_a_shape, of_compressed_rows, by_a_global_number),
        *(from_what_is_summed, with_another_exit, in_both_arms),
    ],
)
def test_what_counts(function):
    assert counted(function) == [True]


def away(a, n):
    i = 0
    while i < n:
        i -= 1


def in_one_arm(a, n):
    i = 0
    while i < n:
        if a[i] > 0:
            i += 1


def there_and_back(a, n):
    i = 0
    while i < n:
        i += 1
        if a[i] > 0:
            i -= 1


def to_a_moving_bound(a, n):
    i = 0
    while i < n:
        i += 1
        n += 1


def to_what_it_writes(a, n):
    i = 0
    while i < a[n]:
        a[n] += 1
        i += 1


def grow(a, n):
    a[n] += 1


def to_what_a_helper_writes(a, n):
    i = 0
    while i < a[n]:
        grow(a, n)
        i += 1


def compared_before(a, n):
    i = 0
    more = i < n
    while more:
        i += 1


def compared_sometimes(a, n):
    i = 0
    more = i < n
    while more:
        if a[i] > 0:
            more = i < n
        i += 1


def to_what_was_computed_before(a, n):
    i = 0
    following = i + 1
    while i < n:
        i = following


def to_what_was_computed_once(a, n):
    i = total = 0
    while i < n:
        if total == 0:
            following = i + 1
        i = following
        total += a[i]


def to_an_item_of_what_is_added_to(a, n):
    i, row = 0, a[n]
    while i < row[0]:
        row += 1
        i += 1


def by_long_steps(a, n):
    i = 0
    while i <= TOP:
        i += 1 << 62


def waiting(a, n):
    while a[n] < 1:
        pass


def by_a_variable_step(a, n):
    i = 0
    while i < len(a):
        i += n


def by_nothing(a, n):
    i = 0
    while i < n:
        i += 0


def only_before_the_exit(a, n):
    i = 0
    while True:
        if a[i] > 0 and i >= n:
            break
        i += 1


@pytest.mark.parametrize(
    "function",
    [
        *(away, in_one_arm, there_and_back, to_a_moving_bound, to_what_it_writes, to_what_a_helper_writes),
        *(compared_before, compared_sometimes, to_what_was_computed_before, to_what_was_computed_once),
        *(to_an_item_of_what_is_added_to, by_long_steps),
        *(waiting, by_a_variable_step, by_nothing, only_before_the_exit),
    ],
)
def test_what_may_never_end(function):
    assert counted(function) == [False]


def counted(function):
    """Whether each loop of a function counts."""
    blocks = run_frontend(function).blocks
    cfg = compute_cfg_from_blocks(blocks)
    loops = CountingLoops(blocks, cfg)
    return [loops.counter(loop) is not None for loop in cfg.loops().values()]


def with_continue(k, a, W):
    i = 0
    while i < len(a):
        if a[i] == k % 3:
            i += 1
            continue
        W[k] += a[i]
        i += 1


def sums_of_rows(k, P, V, W):
    p = P[k]
    while p < P[k + 1]:
        W[k] += V[p]
        p += 1


def test_results_are_those_of_plain_python():
    rng = np.random.default_rng(0)
    a = strads.dvector(rng.integers(0, 4, 10).astype(float))
    assert run_or_refuse(50, with_continue, a, strads.dvector.zeros(50)) is None
    P = strads.dvector(np.sort(rng.integers(0, 40, 21)))
    assert run_or_refuse(20, sums_of_rows, P, strads.dvector(np.arange(40.0)), strads.dvector.zeros(20)) is None


def to_infinity(k, limit, found, W):
    i = 0
    while i < limit[k]:
        if found[k] > 0:
            break
        W[k] += 1
        i += 1


def around_zero(k, limit, found, W):
    i = np.uint64(7)
    while i > ZERO:
        if found[k] > 0:
            break
        W[k] += 1
        i -= TWO


def push(queue, value):
    queue.append(value)


def over_a_growing_list(k, limit, found, W):
    queue, i = [k], 0
    while i < len(queue):
        if found[k] == 0 and len(queue) < limit[k]:
            push(queue, i)
        W[k] += 1
        i += 1


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["to_infinity", "around_zero", "over_a_growing_list"])
@in_its_own_process(60)
def test_a_count_without_end_can_be_interrupted(name):
    body = globals()[name]
    limit, found, W = np.full(4, np.inf), strads.dvector(np.ones(4)), strads.dvector.zeros(4)
    strads.async_for(4, body, strads.dvector(limit), found, W)  # ends, and is compiled
    found[:] = 0
    came: list[float] = []

    def interrupt() -> None:
        came.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        strads.async_for(4, body, strads.dvector(limit), found, W)
    assert time.monotonic() - came[0] < 10
