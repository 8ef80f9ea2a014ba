"""The highest of many scores, and the area under the curve, against plain NumPy."""

import numpy as np
import pytest

from strads.models.kernels.rankings import areas_under_curve, top_items


@pytest.mark.parametrize("most", [1, 3, 20])
def test_the_best_items_in_order(most):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 8, (30, 20)).astype(np.float32)  # with equal scores
    excluded = [np.sort(rng.choice(20, rng.integers(0, 21), replace=False)) for _ in range(30)]
    offsets = np.concatenate([[0], np.cumsum([len(items) for items in excluded])])
    items, best = np.empty((30, most), np.int64), np.empty((30, most), np.float32)
    top_items(scores.copy(), offsets, np.concatenate(excluded).astype(np.int32), items, best)
    for user in range(30):
        allowed = np.setdiff1d(np.arange(20), excluded[user])
        expected = allowed[np.argsort(-scores[user, allowed], kind="stable")][:most]
        missing = most - len(expected)
        assert items[user].tolist() == [*expected, *[-1] * missing]
        assert best[user].tolist() == [*scores[user, expected], *[-np.inf] * missing]


def test_areas_under_curve():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (40, 15)).astype(np.float32)
    kinds = rng.integers(0, 3, (40, 15))  # known, held out, neither
    kinds[0], kinds[1] = 0, 1
    known, held = ([np.flatnonzero(row == kind) for row in kinds] for kind in (0, 1))
    lists = []
    for items in (known, held):
        offsets = np.concatenate([[0], np.cumsum([len(own) for own in items])])
        lists += [offsets, np.concatenate(items).astype(np.int32)]
    areas = np.empty(40)
    areas_under_curve(scores, *lists, areas)
    for user in range(40):
        own, others = scores[user, held[user]], scores[user, kinds[user] == 2]
        pairs = own[:, None] - others
        expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean() if pairs.size else np.nan
        assert areas[user] == pytest.approx(expected, nan_ok=True)
