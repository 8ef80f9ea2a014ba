"""Results of workers are merged in the same tree, wherever the workers are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.schedule.dynamic.merging import merge_subtree, own_subtrees
from strads.schedule.nodes.workers import place_workers


def pair(earlier, later):
    """Show how it came about."""
    return f"({earlier}{later})"


@given(workers=st.integers(1, 40), nodes=st.integers(1, 45))
def test_the_same_tree_on_any_number_of_nodes(workers, nodes):
    leaves = {(worker, worker + 1): f"{worker}." for worker in range(workers)}
    node_of = place_workers(workers, nodes)
    found = {}
    for node in set(node_of):
        own = [worker for worker in range(workers) if node_of[worker] == node]
        here = {subtree: leaves[subtree] for subtree in leaves if subtree[0] in own}
        subtrees = own_subtrees((0, workers), (own[0], own[-1] + 1))
        assert len(subtrees) <= 2 * max(1, workers.bit_length())
        found |= {subtree: merge_subtree(subtree, here, pair) for subtree in subtrees}
    merged = merge_subtree((0, workers), found, pair)
    assert merged == merge_subtree((0, workers), leaves, pair)
    assert merged.replace("(", "").replace(")", "") == "".join(leaves.values())


def test_a_node_with_a_power_of_two_of_workers_sends_one_result():
    assert own_subtrees((0, 8), (4, 8)) == [(4, 8)]
    assert own_subtrees((0, 8), (0, 8)) == [(0, 8)]
    assert own_subtrees((0, 8), (3, 8)) == [(3, 4), (4, 8)]


def test_a_worker_without_a_result():
    with pytest.raises(KeyError):
        merge_subtree((0, 3), {(0, 1): 1, (2, 3): 1}, pair)
