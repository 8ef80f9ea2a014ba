"""The tree of sums against plain sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.schedule.dynamic import priorities
from strads.schedule.dynamic.priorities import find_leaf, make_tree, set_priority, total_priority

sizes = st.integers(1, 700)
weights = st.one_of(st.just(0.0), st.floats(1e-30, 1e30), st.just(1e150))


@given(sizes, st.data())
def test_sums_after_any_changes_are_those_of_a_new_tree(count, data):
    leaves = np.array(data.draw(st.lists(weights, min_size=count, max_size=count)))
    tree = make_tree(leaves)
    for leaf, weight in data.draw(st.lists(st.tuples(st.integers(0, count - 1), weights), max_size=30)):
        set_priority(tree, leaf, weight)
        leaves[leaf] = weight
        assert tree.sums[tree.offsets[-1] + leaf] == weight
    np.testing.assert_array_equal(tree.sums, make_tree(leaves).sums)
    assert total_priority(tree) == pytest.approx(leaves.sum(), rel=1e-12)


@given(sizes, st.data(), st.floats(0.0, 1.0, exclude_max=True))
def test_a_share_finds_the_leaf_where_the_running_sum_exceeds_it(count, data, share):
    leaves = np.array(data.draw(st.lists(st.integers(0, 5).map(float), min_size=count, max_size=count)))
    found = find_leaf(make_tree(leaves), share)
    if leaves.sum() == 0.0:
        assert found == -1
        return
    assert leaves[found] > 0.0
    ends, target = np.cumsum(leaves), share * leaves.sum()
    assert ends[found] - leaves[found] <= target * (1 + 1e-9)
    assert target <= ends[found] * (1 + 1e-9)


def test_no_drift_after_a_million_changes():
    rng = np.random.default_rng(0)
    tree, leaves = make_tree(np.ones(5000)), np.ones(5000)
    for _ in range(10):
        chosen, values = rng.integers(0, 5000, 100_000), 10.0 ** rng.uniform(-12, 12, 100_000)
        _set_many(tree, chosen, values)
        for leaf, value in zip(chosen, values, strict=True):
            leaves[leaf] = value
    _set_many(tree, np.arange(4990), np.zeros(4990))  # the large ones go: what is left must be exact
    assert total_priority(tree) == pytest.approx(leaves[4990:].sum(), rel=1e-13)


def _set_many(tree, chosen, values):
    for leaf, value in zip(chosen, values, strict=True):
        set_priority(tree, leaf, value)


def test_draws_are_proportional():
    tree, state, counts = make_tree(np.array([1.0, 0.0, 2.0, 4.0, 1.0])), np.array([7], np.uint64), np.zeros(5)
    for _ in range(20_000):
        counts[find_leaf(tree, priorities.random_share(state))] += 1
    np.testing.assert_allclose(counts / 20_000, [0.125, 0.0, 0.25, 0.5, 0.125], atol=0.015)
