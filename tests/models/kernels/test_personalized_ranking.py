"""Kernels of Bayesian personalized ranking: draws by popularity, rejection of likes, steps as in the paper."""

import math

import numpy as np
import pytest

from strads.models.kernels.personalized_ranking import (
    CORRECT,
    LOG_LIKELIHOOD,
    NO_FILTER,
    SKIPPED,
    _draw,
    _is_like,
    make_filter,
    rank_cell,
)
from strads.models.ranking.program import popularity


def test_rows_are_drawn_by_their_counts():
    counts = np.array([5, 0, 1, 10, 4])
    table, others, found = popularity(counts), np.empty(128, np.int32), np.zeros(5)
    for first in range(0, 128_000, 128):
        _draw(table, np.uint64(3), first, others)
        found += np.bincount(others, minlength=5)
    assert found[1] == 0
    np.testing.assert_allclose(found / found.sum(), counts / counts.sum(), atol=0.005)


def test_where_nothing_is_liked_any_row_is_drawn():
    others = np.empty(128, np.int32)
    _draw(popularity(np.zeros(4, int)), np.uint64(0), 0, others)
    assert set(others) == {0, 1, 2, 3}
    assert len(popularity(np.zeros(0, int)).shares) == 0


@pytest.mark.parametrize(("n_users", "n_rows", "most_wrong"), [(50, 40, 0.0), (30_000, 20_000, 1 / 15)])
def test_a_filter_has_all_likes_and_few_other_pairs(n_users, n_rows, most_wrong):
    rng = np.random.default_rng(0)
    pairs = rng.choice(n_users * n_rows, 1000, replace=False)
    users, rows = (pairs // n_rows).astype(np.int32), (pairs % n_rows).astype(np.int32)
    likes = make_filter(users, rows, n_users, n_rows)
    assert all(_is_like(user, row, n_rows, likes) for user, row in zip(users, rows, strict=True))
    others = np.setdiff1d(rng.choice(n_users * n_rows, 2000, replace=False), pairs)
    assert np.mean([_is_like(pair // n_rows, pair % n_rows, n_rows, likes) for pair in others]) <= most_wrong


def one_step(verify: bool = False) -> tuple:
    """A single like of user 1 and item 0; the other item is 2."""
    rng = np.random.default_rng(1)
    W, H = rng.normal(size=(2, 16)).astype(np.float32), rng.normal(size=(3, 16)).astype(np.float32)
    biases, figures = rng.normal(size=3).astype(np.float32), np.zeros(3)
    before = W.astype(float), H.astype(float), biases.astype(float)
    users, rows = np.array([1], np.int32), np.array([0], np.int32)
    likes = make_filter(np.array([1, 1], np.int32), np.array([0, 2], np.int32), 2, 3) if verify else NO_FILTER
    table = popularity(np.array([0, 0, 1]))
    rates = np.float32(0.1), np.float32(0.02)
    rank_cell(users, rows, W, H, biases, table, likes, verify, *rates, np.uint64(0), figures)
    return before, (W, H, biases), figures


def test_a_step_ascends_the_paper_s_objective():
    (W, H, biases), found, figures = one_step()
    w, i, j = W[1].copy(), H[0].copy(), H[2].copy()
    x = w @ (i - j) + biases[0] - biases[2]
    wrong = 1 / (1 + math.exp(x))
    W[1] += 0.1 * (wrong * (i - j) - 0.02 * w)
    H[0] += 0.1 * (wrong * w - 0.02 * i)
    H[2] += 0.1 * (-wrong * w - 0.02 * j)
    biases[0] += 0.1 * (wrong - 0.02 * biases[0])
    biases[2] += 0.1 * (-wrong - 0.02 * biases[2])
    for array, expected in zip(found, (W, H, biases), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)
    assert figures[LOG_LIKELIHOOD] == pytest.approx(math.log(1 - wrong), rel=1e-5)
    assert figures[CORRECT] == (x > 0)
    assert figures[SKIPPED] == 0


def test_where_the_user_likes_both_items_there_is_no_step():
    before, after, figures = one_step(verify=True)
    assert all((array == old).all() for array, old in zip(after, before, strict=True))
    assert figures.tolist() == [0.0, 0.0, 1.0]
