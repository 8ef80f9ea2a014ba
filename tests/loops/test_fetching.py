"""Loops in sequence fetch rows ahead where that pays; the result is that of the plain loop, whatever the tables."""

import numpy as np
import pytest

import strads
from strads.loops.on_nodes import node_tasks
from strads.schedule import loop_sample

TASKS, ROWS = 3000, 500
RECORD = np.dtype([("first", "i4"), ("second", "i4"), ("score", "f8")])
LONG_RECORD = np.dtype([("n", "i8"), ("x", "f8", (20,))])


def rate(k, games, rating):
    g = games[k]
    change = 0.1 * (g.score - rating[g.first] + rating[g.second])
    rating[g.first] += change
    rating[g.second] -= change


def of_rows(k, J, W):
    w, v = W[J[k, 0]], W[J[k, 1]]
    for f in range(len(w)):
        w[f] += 0.5 * v[f]
        v[f] -= 0.25 * w[f]


def by_element(k, J, W):
    for f in range(W.shape[1]):
        W[J[k, 0], f] += 0.5 * W[J[k, 1], f]


def of_blocks(k, J, W):
    W[J[k, 0], 1, 2] += W[J[k, 1], 0, 1] + 1.0


def of_records(k, J, R):
    R[J[k, 0]].n += 1
    R[J[k, 0]].x[3] += R[J[k, 1]].x[4] + 1.0


def of_ragged(k, J, W):
    w = W[J[k, 0]]
    for f in range(len(w)):
        w[f] += 1.0 + f


def of_map(k, J, M):
    M[10 * J[k, 0]] += M[10 * J[k, 1]] + 1.0


def of_relaxed(k, J, W, t):
    W[J[k, 0]] += 1.0
    t[J[k, 1]] += W[J[k, 0]]


def in_a_branch(k, J, W):
    if J[k, 0] > 100:
        W[J[k, 0]] += W[J[k, 1]] + 1.0
    elif k > 10:
        W[-1] += 1.0


def make(name):
    """Return the body's arguments after the index, new for each call."""
    rng = np.random.default_rng(3)
    pairs = strads.dvector(rng.integers(0, ROWS, (TASKS, 2)), dtype="i4")
    games = np.empty(TASKS, RECORD)
    games["first"], games["second"] = pairs.to_numpy().T
    games["score"] = rng.random(TASKS)
    lengths = rng.integers(0, 30, ROWS)
    tables = {
        "rate": (strads.dvector(games), strads.dvector.zeros(ROWS)),
        "of_rows": (pairs, strads.dvector(0.01 * rng.normal(size=(ROWS, 70)))),
        "by_element": (pairs, strads.dvector(0.01 * rng.normal(size=(ROWS, 70)))),
        "of_blocks": (pairs, strads.dvector.zeros((ROWS, 2, 3))),
        "of_records": (pairs, strads.dvector(np.zeros(ROWS, LONG_RECORD))),
        "of_ragged": (pairs, strads.dvector([np.zeros(length) for length in lengths])),
        "of_map": (pairs, strads.dmap({10 * row: 0.0 for row in range(ROWS)})),
        "of_relaxed": (pairs, strads.dvector.zeros(ROWS), strads.relaxed(strads.dvector.zeros(ROWS))),
        "in_a_branch": (pairs, strads.dvector.zeros(ROWS)),
    }
    return tables[name]


def values(table):
    table = getattr(table, "table", table)
    return np.concatenate([np.ravel(row) for row in table]) if table.is_ragged else table.to_numpy()


@pytest.mark.few(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "body",
    [rate, of_rows, by_element, of_blocks, of_records, of_ragged, of_map, of_relaxed, in_a_branch],
    ids=lambda body: body.__name__,
)
def test_rows_fetched_ahead_change_no_result(body, threads, monkeypatch):
    monkeypatch.setattr(loop_sample, "WAITING_SHARE", -1.0)
    monkeypatch.setattr(node_tasks, "CACHED", 0)
    fetched, expected = make(body.__name__), make(body.__name__)
    stats = strads.async_for(TASKS, body, *fetched, strategy="sequential", threads=threads, fastmath=False)
    assert stats.plan.details.prefetch_distance > 0
    assert "tasks ahead" in stats.plan.explain()
    monkeypatch.setattr(loop_sample, "WAITING_SHARE", 2.0)
    other = strads.async_for(
        range(TASKS), body, *expected, strategy="sequential", threads=threads, fastmath=False, seed=1
    )
    assert other.plan.details.prefetch_distance == 0
    for mine, other in zip(fetched[1:], expected[1:], strict=True):
        assert np.array_equal(values(mine), values(other))


def add_pair(k, J, W):
    W[J[k, 0]] += W[J[k, 1]] + 1.0


@pytest.mark.parametrize(("rows", "is_fetched"), [(2_000_000, True), (1000, False)])
def test_only_rows_that_are_not_in_the_cache_are_fetched(rows, is_fetched):
    pairs = strads.dvector(np.random.default_rng(0).integers(0, rows, (20_000, 2)), dtype="i4")
    stats = strads.async_for(20_000, add_pair, pairs, strads.dvector.zeros(rows), strategy="sequential")
    assert (stats.plan.details.prefetch_distance > 0) == is_fetched


def test_rows_that_follow_each_other_are_not_fetched():
    pairs = strads.dvector(np.stack([np.arange(20_000), np.arange(20_000) + 1], 1), dtype="i4")
    stats = strads.async_for(20_000, add_pair, pairs, strads.dvector.zeros(2_000_000), strategy="sequential")
    assert stats.plan.details.prefetch_distance == 0


def wrong_late(k, J, W):
    W[J[k]] += 1.0


def test_an_index_that_does_not_exist_is_the_error_of_its_task():
    rows = np.zeros(5000, "i4")
    rows[4321] = 1_000_000
    table = strads.dvector.zeros(1_000_000)
    with pytest.raises(strads.BodyIndexError, match="4321"):
        strads.async_for(5000, wrong_late, strads.dvector(rows), table, strategy="sequential")
    assert not table.to_numpy().any()
