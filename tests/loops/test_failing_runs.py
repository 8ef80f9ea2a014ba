"""A run that fails stops its own threads, not those of other runs, and its own error is the one that is raised."""

import threading

import numpy as np
import pytest

import strads
from strads.errors import BodyIndexError
from strads.loops.on_nodes import undo


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


def walk(k, steps, places, visits, log):
    """Where each task writes depends on what the earlier ones wrote, so a run that fails has to be undone."""
    places[0] += steps[k]
    visits[places[0]] += 1.0
    log[k].last = visits[places[0]]
    log[k].count += 1


@pytest.mark.parametrize("threads", [1, 2])
def test_long_tables_are_restored(threads):
    """Their old values are copied in pieces, into memory that is kept."""
    rng, rows = np.random.default_rng(0), 1_500_000
    with strads.init(threads=threads):
        visits = strads.dvector(rng.random(rows))
        log = strads.dvector(np.zeros(300_000, [("last", "f4"), ("count", "i8")]))
        for tasks, first, fails in ((300, 5, False), (300, rows - 300, True), (200_000, 7, False), (400, rows, True)):
            steps, places = strads.dvector(np.ones(tasks, np.int64)), strads.dvector(np.array([first, 0]))
            old = [table.to_numpy().copy() for table in (places, visits, log)]
            if fails:
                with pytest.raises(BodyIndexError):
                    strads.async_for(tasks, walk, steps, places, visits, log)
                assert all(map(np.array_equal, old, (places, visits, log)))
            else:
                strads.async_for(tasks, walk, steps, places, visits, log)
                assert places[0] == first + tasks
                old[1][first + 1 : first + tasks + 1] += 1.0
                assert np.array_equal(visits, old[1])


def test_kept_copies_have_a_limit(monkeypatch):
    monkeypatch.setattr(undo, "_most_kept", lambda: 1 << 23)
    short, long = (strads.dvector(np.zeros(rows)) for rows in (900_000, 1_500_000))
    log = strads.dvector(np.zeros(100, [("last", "f4"), ("count", "i8")]))
    for visits, is_kept in ((short, True), (long, False), (short, True)):
        strads.async_for(50, walk, strads.dvector(np.ones(50, "i8")), strads.dvector(np.zeros(1, "i8")), visits, log)
        assert (visits in undo._buffers) == is_kept
