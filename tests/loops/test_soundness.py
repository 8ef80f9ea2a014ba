"""Bodies that try to hide from the analysis what they write, and by what they choose their rows."""

import os

import numpy as np
import pytest

import strads
from strads import async_for

N = 4000


def rows_in_tuple(k, users, W, H):
    for row in (W[users[k]], H[users[k]]):
        row[0] += 1.0


def rows_in_list(k, users, W, H):
    rows = [W[users[k]], H[users[k]]]
    rows[0][0] += 1.0
    rows[1][0] += 1.0


def rows_zipped(k, users, W, H):
    for w, h in zip([W[users[k]]], [H[users[k]]]):  # noqa: B905
        w[0] += 1.0
        h[0] += 1.0


def rows_split(k, users, W, H):
    parts = np.split(W[users[k]], 2)
    parts[0][0] += 1.0
    H[users[k], 0] += 1.0


def rows_enumerated(k, users, W, H):
    for _, row in enumerate((W[users[k]], H[users[k]])):
        row[0] += 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [rows_in_tuple, rows_enumerated, rows_in_list, rows_zipped, rows_split])
def test_rows_kept_in_containers_are_written_once_or_refused(body):
    users = strads.dvector(np.random.default_rng(0).integers(0, 50, N))
    W, H = strads.dvector.zeros((50, 2)), strads.dvector.zeros((50, 2))
    try:
        stats = async_for(N, body, users, W, H)
    except strads.CompileError:
        assert not W.to_numpy().any()
        return
    counts = np.bincount(users.to_numpy(), minlength=50)
    assert np.array_equal(W.to_numpy()[:, 0], counts)
    assert np.array_equal(H.to_numpy()[:, 0], counts)
    assert stats.strategy != "independent"


def put(buffer, value):
    buffer[0] = int(value)


def by_helper(k, W, H):
    buffer = np.zeros(1, np.int64)
    put(buffer, W[k, 0])
    W[k, 0] += 0.0
    H[(k + buffer[0]) % len(H), 0] += 1.0


def by_view(k, W, H):
    buffer = np.zeros(2, np.int64)
    part = buffer[1:]
    part[0] = int(W[k, 0])
    W[k, 0] += 0.0
    H[(k + buffer[1]) % len(H), 0] += 1.0


def by_list(k, W, H):
    numbers = [0]
    numbers.append(int(W[k, 0]))
    W[k, 0] += 0.0
    H[(k + numbers[1]) % len(H), 0] += 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [by_helper, by_view, by_list])
def test_values_kept_in_local_containers_choose_no_row_unseen(body):
    W = strads.dvector(np.random.default_rng(0).integers(0, 1000, (N, 1)).astype("f4"))
    H = strads.dvector.zeros((64, 1))
    async_for(N, body, W, H)
    assert H.to_numpy().sum() == N


def test_rounding_does_not_choose_other_rows_than_were_recorded():
    def body(k, X, counts):
        counts[int(X[k] / 49.0) - 1] += 1
        counts[int(k / 49.0 * 49.0)] += 1

    n = 20_000
    X = strads.dvector((np.arange(n) + 1) * 49.0)
    counts = strads.dvector.zeros(n, "i8")
    async_for(n, body, X, counts)
    expected = np.zeros(n, np.int64)
    for k in range(n):
        expected[int((k + 1) * 49.0 / 49.0) - 1] += 1
        expected[int(k / 49.0 * 49.0)] += 1
    assert np.array_equal(counts.to_numpy(), expected)


def test_rounding_does_not_choose_other_branches():
    def body(k, X, counts):
        total = 0.0
        for f in range(X.shape[1]):
            total += X[k, f]
        if total > 8.0:
            counts[0] += 1
        else:
            counts[1] += 1

    X = strads.dvector.uniform((5000, 16), seed=0)
    counts = strads.dvector.zeros(2, "i8")
    async_for(5000, body, X, counts)
    totals = np.zeros(5000, "f4")
    for f in range(16):
        totals += X.to_numpy()[:, f]
    assert counts.to_list() == [(totals > 8).sum(), (totals <= 8).sum()]


def test_length_and_shape_are_those_of_the_table():
    def body(k, aligned, rows, docs, W, out):
        out[k] = len(aligned) + aligned[k] + 10 * len(docs) * len(docs[k]) + rows[k, 0] * rows.shape[0]
        W[k, 0] += W.shape[0] * 100 + W.shape[1] + W.size + W.ndim + aligned.size

    aligned, rows = strads.dvector(np.ones(100)), strads.dvector(np.ones((100, 2)))
    docs = strads.dvector([[1, 2], *([[3]] * 99)])
    W, out = strads.dvector.zeros((20, 3)), strads.dvector.zeros(10)
    async_for(10, body, aligned, rows, docs, W, out)
    assert out[0] == 100 + 1 + 10 * 100 * 2 + 100
    assert out[1] == 100 + 1 + 10 * 100 + 100
    assert W[0, 0] == 2000 + 3 + 60 + 2 + 100


def test_huge_unsigned_indices_are_out_of_range():
    def body(k, index, x):
        x[index[k]] += 1.0

    index = strads.dvector(np.full(10, 2**64 - 5, np.uint64))
    x = strads.dvector.zeros(8)
    with pytest.raises(strads.BodyIndexError):
        async_for(10, body, index, x)
    assert not x.to_numpy().any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own():
    def body(k, x):
        x[k] += 1.0

    x = strads.dvector.zeros(8)
    async_for(8, body, x)
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(20)
        async_for(8, body, x)
        os._exit(0 if x.to_list() == [2.0] * 8 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_alternating_indices_keep_their_plans():
    def body(k, index, x):
        x[index[k]] += 1.0

    index, x = strads.dvector(np.arange(100) % 7), strads.dvector.zeros(7)
    for epoch in range(3):
        for half in (range(50), range(50, 100)):
            stats = async_for(half, body, index, x)
            assert (stats.reconnaissance_seconds > 0) == (epoch == 0)
