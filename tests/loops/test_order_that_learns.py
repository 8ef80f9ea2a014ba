"""The loss falls in the order of a plan as it does in random order, though a plan's jobs are blocks of rows."""

import numpy as np
import pytest
from numba import njit

import strads

RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")])


def body(k, ratings, W, H, rate):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += rate * err * h[f]
        h[f] += rate * err * wf


step = njit(body)


@njit
def in_order(order, ratings, W, H, rate):
    for k in order:
        step(k, ratings, W, H, rate)


def problem(tasks, users, items, rank=8):
    rng = np.random.default_rng(0)
    ratings = np.empty(tasks, RATING)
    ratings["user"], ratings["item"] = rng.integers(0, users, tasks), rng.integers(0, items, tasks)
    U, V = rng.normal(0, 0.7, (users, 4)), rng.normal(0, 0.7, (items, 4))
    ratings["score"] = (U[ratings["user"]] * V[ratings["item"]]).sum(1) + rng.normal(0, 0.3, tasks)
    factors = [rng.normal(0, 0.1, (rows, rank)).astype("f4") for rows in (users, items)]
    return ratings, *factors


def rmse(ratings, W, H):
    products = np.einsum("nf,nf->n", np.asarray(W)[ratings["user"]], np.asarray(H)[ratings["item"]])
    return float(np.sqrt(np.mean((ratings["score"] - products) ** 2)))


@pytest.mark.parametrize(("users", "items"), [(1000, 500), (20_000, 100), (3000, 50)])
def test_the_loss_falls_as_in_random_order(users, items):
    ratings, W, H = problem(800_000, users, items)
    tables = strads.dvector(ratings), strads.dvector(W), strads.dvector(H)
    rng, shuffled, planned = np.random.default_rng(1), [], []
    for _ in range(3):
        in_order(rng.permutation(len(ratings)), ratings, W, H, np.float32(0.03))
        stats = strads.async_for(len(ratings), body, *tables, 0.03, threads=2)
        shuffled.append(rmse(ratings, W, H))
        planned.append(rmse(ratings, tables[1], tables[2]))
    assert stats.strategy == "rotation"
    assert "passes" in stats.plan.reason
    np.testing.assert_array_less(planned, 1.01 * np.array(shuffled))


def test_of_sorted_data_the_loss_falls_as_in_random_order():
    """Consecutive tasks share a pass, for the sake of tables that tasks read in turn, but only a few of them."""
    ratings, W, H = problem(800_000, 1000, 500)
    ratings = np.sort(ratings, order=["user", "item"])
    tables = strads.dvector(ratings), strads.dvector(W), strads.dvector(H)
    in_order(np.random.default_rng(1).permutation(len(ratings)), ratings, W, H, np.float32(0.03))
    strads.async_for(len(ratings), body, *tables, 0.03, threads=2)
    assert rmse(ratings, tables[1], tables[2]) < 1.01 * rmse(ratings, W, H)


def test_rows_that_are_visited_seldom_need_one_pass():
    ratings, W, H = problem(100_000, 20_000, 5000)
    stats = strads.async_for(len(ratings), body, strads.dvector(ratings), strads.dvector(W), strads.dvector(H), 0.03)
    assert "passes" not in stats.plan.reason


def counting(k, ratings, W, H, rate, counts):
    body(k, ratings, W, H, rate)
    counts[0] += 1


def test_relaxed_tables_are_not_merged_more_often():
    ratings, W, H = problem(800_000, 1000, 500)
    counts = strads.relaxed(strads.dvector.zeros(1, dtype="i8"))
    stats = strads.async_for(
        len(ratings), counting, strads.dvector(ratings), strads.dvector(W), strads.dvector(H), 0.03, counts, threads=2
    )
    assert stats.strategy == "rotation"
    assert "passes" not in stats.plan.reason
    assert counts.table[0] == len(ratings)
