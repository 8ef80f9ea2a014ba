"""A run that fails stops its own threads, not those of other runs, and its own error is the one that is raised."""

import threading

import numpy as np
import pytest

import strads
from strads.errors import BodyIndexError


def bump(k, e, x):
    x[e[k]] += 1
    x[e[k] - 1] -= 1


def collatz(k, S, x):
    n = S[k]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        x[k] += 1


def gather(k, P, J, V, y):
    for q in range(P[k], P[k + 1]):
        y[J[q]] += V[q]


def test_a_run_that_fails_beside_another():
    rng = np.random.default_rng(0)
    wrong = rng.integers(0, 100, 5000)
    wrong[4000] = 100
    S, is_over, failures = strads.dvector(rng.integers(1, 10**6, 50_000)), threading.Event(), []

    def fail() -> None:
        while not is_over.is_set():
            with pytest.raises(BodyIndexError):
                strads.async_for(5000, bump, strads.dvector(wrong), strads.dvector(np.zeros(100, np.int64)))
            failures.append(True)

    with strads.init(threads=2):
        expected = strads.dvector(np.zeros(50_000, np.int64))
        strads.async_for(50_000, collatz, S, expected)
        other = threading.Thread(target=fail)
        other.start()
        try:
            for _ in range(40):
                x = strads.dvector(np.zeros(50_000, np.int64))
                strads.async_for(50_000, collatz, S, x)
                assert np.array_equal(x, expected)
        finally:
            is_over.set()
            other.join()
    assert failures


def test_the_cause_is_raised_wherever_it_is():
    P = np.arange(0, 6003, 3)
    P[-1] = 6001  # one too many, on the last node
    J, V = np.random.default_rng(0).integers(0, 500, 6000), np.ones(6000)
    with strads.init(nodes=3, threads=2):
        for _ in range(100):
            with pytest.raises(BodyIndexError):
                strads.async_for(2000, gather, P, J, V, strads.dvector(np.zeros(500)))
