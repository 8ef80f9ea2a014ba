"""Atomic operations under real threads, which hold no GIL."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from strads.engine.atomics import compare_and_swap, fetch_add, pause

THREADS, ROUNDS = 4, 100_000


@njit(nogil=True)
def count_up(counter, rounds):
    previous = -1
    for _ in range(rounds):
        seen = fetch_add(counter, 1, 1)
        if seen <= previous:
            return False
        previous = seen
    return True


@njit(nogil=True)
def count_under_lock(lock, counter, rounds):
    for _ in range(rounds):
        attempts = 0
        while not compare_and_swap(lock, 0, 0, 1):
            attempts += 1
            pause(attempts)
        counter[0] += 1
        counter[1] += counter[0] % 2
        fetch_add(lock, 0, -1)


@njit(nogil=True)
def swap(array, index, expected, desired):
    return compare_and_swap(array, index, expected, desired)


@njit(nogil=True)
def add(array, index, amount):
    return fetch_add(array, index, amount)


def on_threads(function, *arguments):
    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(function, *arguments) for _ in range(THREADS)]]


def test_no_increment_is_lost():
    counter = np.zeros(3, np.int64)
    assert all(on_threads(count_up, counter, ROUNDS))  # every thread sees the counter rise
    assert counter.tolist() == [0, THREADS * ROUNDS, 0]


def test_a_spin_lock_protects():
    lock, counter = np.zeros(1, np.int32), np.zeros(2, np.int64)
    on_threads(count_under_lock, lock, counter, ROUNDS // 4)
    total = THREADS * (ROUNDS // 4)
    assert counter.tolist() == [total, total // 2]
    assert lock[0] == 0


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_one_thread_sees_values_before_and_after(dtype):
    array = np.array([5, 6], dtype)
    assert not swap(array, 1, 5, 9)
    assert array.tolist() == [5, 6]
    assert swap(array, 1, 6, 9)
    assert add(array, 0, -8) == 5
    assert array.tolist() == [-3, 9]
