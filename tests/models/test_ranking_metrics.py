"""Ranking metrics against plain definitions, and what is held out for them."""

import math

import numpy as np
import pytest

from strads.errors import ArgumentError, InputError
from strads.models import (
    BayesianPersonalizedRanking,
    MatrixFactorization,
    evaluate_ranking,
    last_share,
    leave_one_out,
)

RNG = np.random.default_rng(0)
PAIRS = np.unique(np.stack([RNG.integers(0, 40, 900), RNG.integers(0, 60, 900)], 1), axis=0)
PAIRS = PAIRS[RNG.permutation(len(PAIRS))]
TRAIN, HELD = PAIRS[:500], PAIRS[500:]


@pytest.mark.parametrize("k", [1, 5, 200])
@pytest.mark.parametrize("kind", ["bpr", "mf"])
def test_figures_are_those_of_the_definitions(kind, k):
    if kind == "bpr":
        model = BayesianPersonalizedRanking(4, iterations=5).fit(TRAIN)
    else:
        model = MatrixFactorization(4, max_iter=3).fit(TRAIN, RNG.integers(1, 6, len(TRAIN)))
    known = set(map(tuple, TRAIN.tolist()))
    items, users = set(model.item_ids_.tolist()), set(model.user_ids_.tolist())
    relevant: dict[int, set[int]] = {}
    for user, item in HELD.tolist():
        if user in users and item in items and (user, item) not in known:
            relevant.setdefault(user, set()).add(item)
    figures = []
    for user, wanted in relevant.items():
        ranked = model.recommend(user, N=len(items))[0].tolist()
        hits = [item in wanted for item in ranked[:k]]
        best = sum(1 / math.log2(1 + place) for place in range(1, min(k, len(wanted)) + 1))
        gain = sum(hit / math.log2(1 + place) for place, hit in enumerate(hits, 1))
        precisions = [sum(hits[:place]) / place for place, hit in enumerate(hits, 1) if hit]
        others = [place for place, item in enumerate(ranked) if item not in wanted]
        pairs = [place < other for place, item in enumerate(ranked) if item in wanted for other in others]
        figures.append(
            (sum(hits) / k, sum(hits) / len(wanted), gain / best, sum(precisions) / min(k, len(wanted)), np.mean(pairs))
        )
    found = evaluate_ranking(model, HELD, k)
    expected = np.mean(figures, axis=0)
    assert np.allclose([found.precision, found.recall, found.ndcg, found.map, found.auc], expected)
    assert (found.k, found.users) == (k, len(relevant))
    assert found.pairs + found.left_out == len(HELD)


def test_what_cannot_be_measured():
    model = BayesianPersonalizedRanking(4, iterations=1).fit(TRAIN)
    with pytest.raises(InputError, match="none of the 1 held-out pairs"):
        evaluate_ranking(model, ([999], [3]))
    with pytest.raises(InputError, match="none of the 500 held-out pairs"):
        evaluate_ranking(model, TRAIN)
    with pytest.raises(ArgumentError, match="k=0"):
        evaluate_ranking(model, HELD, 0)
    forgetful = MatrixFactorization(2, max_iter=1, remember_ratings=False).fit(TRAIN, np.ones(len(TRAIN)))
    with pytest.raises(ArgumentError, match="remember_ratings=False"):
        evaluate_ranking(forgetful, HELD)


def test_leave_one_out():
    users = ["b", "a", "b", "c", "a", "b"]
    assert leave_one_out(users, [3, 1, 2, 0, 1, 3]).tolist() == [False, False, False, False, True, True]
    dates = np.array(["2026-01-02", "2026-01-03", "2026-01-01"], "M8[D]")
    assert leave_one_out([7, 7, 7], dates).tolist() == [False, True, False]
    held = leave_one_out(PAIRS[:, 0])
    assert (np.bincount(PAIRS[held, 0], minlength=40) == 1).all()
    assert leave_one_out(PAIRS[:, 0]).tolist() == held.tolist() != leave_one_out(PAIRS[:, 0], random_state=1).tolist()


def test_last_share():
    times = np.array([5.0, 1, 4, 2, 3, 3, 9, 7, 8, 6])
    assert np.flatnonzero(last_share(times, 0.3)).tolist() == [6, 7, 8]
    assert np.flatnonzero(last_share(times, 0.65)).tolist() == [0, 2, 6, 7, 8, 9]  # the two at 3 stay together
    for bad in (0, 1, -0.1, "x"):
        with pytest.raises(ArgumentError, match="give a number between 0 and 1"):
            last_share(times, bad)
    for unknown in ([1.0, np.nan], [1.0, np.inf], np.array(["2026", "NaT"], "M8[Y]")):
        with pytest.raises(ArgumentError, match="without NaN or NaT"):
            last_share(unknown, 0.5)
        with pytest.raises(ArgumentError, match="without NaN or NaT"):
            leave_one_out([1, 1], unknown)
    with pytest.raises(InputError, match="3 users, but 2 times"):
        leave_one_out([1, 2, 3], [1, 2])
