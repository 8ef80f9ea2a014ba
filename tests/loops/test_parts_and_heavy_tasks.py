"""Loops over a part of their tables, whose rows are not copied; tasks with so many accesses that a sample suffices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from serial import run_or_refuse

import strads
from strads import async_for
from strads.loops import reconnaissance
from strads.loops.on_nodes import recording_decision
from strads.loops.reconnaissance import Reconnaissance
from strads.schedule.records.access import SparseRecords, TableShape
from strads.schedule.records.hot_rows import ACCESSES, hot_row, sample

ROWS = 60


def whole(rng, shape):
    """Return small numbers whose sums and halves are exact."""
    return rng.integers(-8, 8, shape).astype(float)


def from_the_row(k, A, B, W):
    W[k] = 0.5 * W[k] + A[k] + B[k, 1]


def from_ragged_rows(k, R, A, W):
    row = R[k]
    for i in range(len(row)):
        W[(k + i) % len(W)] += row[i] * A[k]


@pytest.mark.few(1)
@pytest.mark.parametrize("threads", [1, 2])
@given(start=st.integers(-4, 8), stop=st.integers(30, ROWS), step=st.integers(1, 3), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_a_loop_over_a_part_of_the_rows(threads, start, stop, step, seed):
    rng = np.random.default_rng(seed)
    A, B = strads.dvector(whole(rng, ROWS)), strads.dvector(whole(rng, (ROWS, 2)))
    W = strads.dvector(whole(rng, ROWS))
    R = strads.dvector([whole(rng, n) for n in rng.integers(0, 4, ROWS)])
    for _ in range(2):
        assert run_or_refuse(range(start, stop, step), from_the_row, A, B, W, threads=threads) is None
        assert run_or_refuse(range(start, stop, step), from_ragged_rows, R, A, W, threads=threads) is None


def test_a_part_of_a_table_is_checked_against_its_rows():
    A, B, W = strads.dvector(np.ones(ROWS)), strads.dvector(np.ones((ROWS, 2))), strads.dvector.zeros(ROWS)
    for indices in (range(1, ROWS + 1), range(ROWS, ROWS + 3), range(-ROWS - 1, 2)):
        with pytest.raises(strads.BodyIndexError):
            async_for(indices, from_the_row, A, B, W, threads=2)
        assert not W.to_numpy().any()


def nearest_is_pulled(k, X, M):
    best, which = np.inf, 0
    for m in range(len(M)):
        distance = 0.0
        for f in range(len(M[m])):
            distance += (X[k, f] - M[m, f]) ** 2
        if distance < best:
            best, which = distance, m
    for m in range(len(M)):
        pull = 0.3 * np.exp(-abs(m - which) / 2)
        for f in range(len(M[m])):
            M[m, f] += pull * (X[k, f] - M[m, f])


def test_many_accesses_of_a_task_are_not_recorded():
    rng = np.random.default_rng(1)
    X, M = rng.normal(size=(5000, 8)), rng.normal(size=(50, 8))
    serial = M.copy()
    tables = strads.dvector(X), strads.dvector(M)
    stats = async_for(5000, nearest_is_pulled, *tables, threads=2, record_order=True)
    assert "checked in the run: nothing, as the body proves" in stats.plan.explain()
    plain = njit(nearest_is_pulled)
    for k in stats.order:
        plain(k, X, serial)
    np.testing.assert_allclose(tables[1].to_numpy(), serial, rtol=1e-6)


def by_column(k, X, r, w):
    slope = 0.0
    for i in range(len(r)):
        slope += X[k, i] * r[i]
    w[k] += slope
    for i in range(len(r)):
        r[i] = X[k, i] - r[i]


def test_of_tasks_that_touch_all_rows_a_sample_is_recorded(monkeypatch):
    rng = np.random.default_rng(2)
    logged = []
    probe = Reconnaissance._probe
    monkeypatch.setattr(Reconnaissance, "_probe", lambda *args: logged.append(probe(*args)) or logged[-1])
    X, r = strads.dvector(whole(rng, (64, 5000))), strads.dvector(whole(rng, 5000))
    w = strads.dvector.zeros(64)
    assert run_or_refuse(64, by_column, X, r, w, threads=2) is None
    assert async_for(64, by_column, X, r, w, threads=2).plan.strategy == "sequential"
    assert sum(len(log.counts) for logs in logged for log in logs) < 40
    assert hot_row(sample(of_all_rows(tasks=1000, rows=5000))) is not None
    assert sample(of_all_rows(tasks=1000, rows=5000)).tasks < 100


def multiples(k, composite):
    if k >= 2 and composite[k] == 0:
        m = k * k
        while m < len(composite):
            composite[m] = 1
            m += k


def test_of_a_stretch_with_a_few_heavy_tasks_those_before_them_are_sampled(monkeypatch):
    logged = []
    probe = Reconnaissance._probe
    monkeypatch.setattr(Reconnaissance, "_probe", lambda *args: logged.append(probe(*args)) or logged[-1])
    composite = strads.dvector(np.zeros(300_000, np.uint8))
    async_for(300_000, multiples, composite, order="sequential", threads=2)
    assert 0 < max(len(log.rows) for logs in logged for log in logs) < 2 * ACCESSES
    assert np.flatnonzero(composite.to_numpy()[2:20] == 0).tolist() == [0, 1, 3, 5, 9, 11, 15, 17]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_runs_in_its_order_whose_records_grow_too_large(monkeypatch, threads):
    monkeypatch.setattr(recording_decision, "_UNEXPECTED_RECORDS", 1 << 20)
    monkeypatch.setattr(recording_decision, "_MAX_UNEXPECTED_RECORDS", 0)
    composite, serial = strads.dvector(np.zeros(200_000, np.uint8)), np.zeros(200_000, np.uint8)
    for k in range(len(serial)):
        multiples(k, serial)
    for _ in range(2):
        stats = async_for(200_000, multiples, composite, order="sequential", threads=threads)
        np.testing.assert_array_equal(composite.to_numpy(), serial)
    assert threads == 1 or "records of its many accesses" in stats.plan.explain()


def scattered(k, lengths, x):
    for p in range(lengths[k]):
        x[(k + 7 * p) % len(x)] += k + 1
    x[k % len(x)] -= k


@pytest.mark.parametrize("heavy", [slice(0, 2), slice(-1, None), slice(0, None, 129)])
@pytest.mark.parametrize("rows", [7, 50_000])
def test_a_few_heavy_tasks_are_planned_for_in_little_time_and_memory(heavy, rows):
    lengths = np.zeros(30_000, int)
    lengths[:130][heavy] = 60_000  # as many accesses for each task would take gigabytes
    L, x = strads.dvector(lengths), strads.dvector(np.zeros(rows))
    for _ in range(2):
        assert run_or_refuse(len(lengths), scattered, L, x, threads=2) is None
    assert run_or_refuse(130, scattered, L, x, threads=2) is None


@given(room=st.integers(1, 300), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_records_are_the_same_if_a_log_has_little_room(room, seed):
    rng = np.random.default_rng(seed)
    R, W = strads.dvector([whole(rng, n) for n in rng.integers(0, 9, ROWS)]), strads.dvector.zeros(ROWS)
    A = strads.dvector(whole(rng, ROWS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconnaissance, "_ROOM", room)
        assert run_or_refuse(ROWS, from_ragged_rows, R, A, W, threads=2) is None


def of_all_rows(tasks, rows):
    every = np.tile(np.arange(rows, dtype=np.int32), tasks)
    offsets = np.arange(tasks + 1, dtype=np.int64) * rows
    return SparseRecords((TableShape("r", rows, 8),), offsets, every, np.ones(len(every), np.uint8))


def pairs_item_by_item(k, a, b, W, V):
    for f in range(W.shape[1]):
        W[a[k], f] += W[b[k], f] * V[k % len(V), f] % 7


def one_filter(k, a, b, P, V):
    block, other = P[a[k]], P[b[k]]
    gain = (block[0, 1] + other[1][2] * V[k % len(V), 0]) % 7
    for i in range(block.shape[0]):
        for j in range(P.shape[2]):
            block[i, j] += gain
    other[-1, 0] -= block.size


def blocks_that_are_stored(k, a, b, P, V):
    P[a[k]] = V[:2, :3]
    P[b[k], 1] = V[k % len(V)]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [pairs_item_by_item, one_filter, blocks_that_are_stored])
@given(seed=st.integers(0, 99))
@settings(max_examples=10)
def test_rows_used_item_by_item_and_rows_of_two_dimensions(body, seed):
    rng = np.random.default_rng(seed)
    a, b = (strads.dvector(rng.integers(0, 30, 200)) for _ in range(2))
    shape = (30, 3) if body is pairs_item_by_item else (30, 2, 3)
    W, V = (strads.dvector(rng.integers(-8, 8, size)) for size in (shape, (5, 3)))
    assert run_or_refuse(200, body, a, b, W, V, threads=2, strategy="components") is None


PLAYER = [
    ("games", "i8"),
    ("active", "?"),
    ("rating", "f8"),
    ("last", "i8", (3,)),
    ("moves", "i8", (2, 2)),
    ("z", "c16"),
]


def game(k, a, b, players, V):
    one, other = players[a[k]], players[b[k]]
    one.games += 1 + V[k % len(V), 0]
    one.active = other.games % 2 == 0
    one.rating = 0.5 * other.rating + (0.25 if one.active else 0.5)
    for f in range(len(one.last)):
        one.last[f] += other.last[-1 - f] + one.last.size
    other.moves[1, 0] = one.moves[0][1] + k
    other.z = one.z + 1j
    players[b[k]].moves[0, 1] -= other.moves.shape[1]


def swapped(k, a, b, players, V):
    before = players[a[k]].games
    players[a[k]] = players[b[k]]
    players[b[k]].games = before


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [game, swapped])
@given(seed=st.integers(0, 99))
@settings(max_examples=10)
def test_records(body, seed):
    rng = np.random.default_rng(seed)
    a, b = (strads.dvector(rng.integers(0, 30, 200)) for _ in range(2))
    players = np.zeros(30, PLAYER)
    for name in players.dtype.names:
        players[name] = rng.integers(0, 9, players[name].shape)
    W, V = strads.dvector(players), strads.dvector(rng.integers(-8, 8, (5, 3)))
    assert run_or_refuse(200, body, a, b, W, V, threads=2, strategy="components") is None


def test_a_row_used_item_by_item_is_logged_once_and_none_is_copied(monkeypatch):
    rng = np.random.default_rng(3)
    found = []
    run = Reconnaissance.run
    monkeypatch.setattr(
        Reconnaissance, "run", lambda self, *rest: found.append((self, run(self, *rest))) or found[-1][1]
    )
    a, b = strads.dvector(np.arange(200) % 15), strads.dvector(15 + np.arange(200) % 14)
    for body, shape in ((pairs_item_by_item, (30, 300)), (one_filter, (30, 2, 300))):
        W, V = (strads.dvector(rng.integers(-8, 8, size)) for size in (shape, (5, 300)))
        async_for(200, body, a, b, W, V, threads=2)
        reconnaissance, records = found[-1]
        assert not reconnaissance.recorder.scratch
        assert records.rows.shape == (200, 2)
    async_for(200, game, a, b, strads.dvector(np.zeros(30, PLAYER)), V, threads=2)
    assert not found[-1][0].recorder.scratch


def many_of_few(k, A, w):
    for i in range(100):
        w[(7 * k + i) % len(w)] += A[k]


def all_twice_as_often(k, A, w):
    """Each task touches few rows."""
    for i in range(20):
        w[(7 * k + i) % len(w)] += A[k]


@pytest.mark.parametrize(("dtype", "tasks", "rows"), [(float, 3000, 500), (int, 25_000, 200_000)])
def test_records_much_larger_than_the_tables_are_not_made(dtype, tasks, rows, monkeypatch):
    """Integers that are only added to are counted in copies."""
    found = []
    run = Reconnaissance.run
    monkeypatch.setattr(Reconnaissance, "run", lambda self, *rest: found.append(run(self, *rest)) or found[-1])
    A, w = strads.dvector(np.arange(tasks, dtype=dtype) % 5), strads.dvector(np.zeros(rows, dtype))
    for _ in range(2):
        plan = async_for(tasks, many_of_few, A, w, threads=2).plan
    touched = (7 * np.arange(tasks)[:, None] + np.arange(100)) % rows
    sums = np.bincount(touched.ravel(), np.repeat(A.to_numpy(), 100), minlength=rows)
    assert (w.to_numpy() == 2 * sums).all()
    assert all(records.rows.size < 100 * tasks / 2 for records in found)
    assert (plan.jobs == 1) == (dtype is float)
    assert ("much more memory" in plan.explain()) == (dtype is float)


def test_records_of_light_tasks_are_made_whatever_they_weigh():
    A, w = strads.dvector(np.arange(9000.0) % 5), strads.dvector.zeros(500)
    assert run_or_refuse(9000, all_twice_as_often, A, w, threads=2) is None
    assert "much more memory" not in async_for(9000, all_twice_as_often, A, w, threads=2).plan.explain()
