"""Calls for which an earlier call's plan cannot be used: what `explain` says of them, and what becomes of that plan."""

from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

import strads
from strads import cluster
from strads.loops import kept_loops
from strads.loops.on_nodes import preparation
from strads.loops.on_nodes.specs import NodeLoop

TASKS, ROWS = 2000, 500


def spread(k, source, weight, total):
    i = source[k]
    if weight[k] > 0:
        total[i] += weight[k]


def tables(rows=ROWS):
    rng = np.random.default_rng(0)
    return strads.dvector(rng.integers(0, rows, TASKS)), strads.dvector(rng.random(TASKS)), strads.dvector.zeros(rows)


def why(body, *arguments, tasks=TASKS):
    lines = strads.async_for(tasks, body, *arguments).plan.explain().splitlines()
    return [line for line in lines if line.startswith("prepared again")]


def test_a_plan_that_lasts_is_not_prepared_again():
    source, weight, total = tables()
    for _ in range(3):
        assert why(spread, source, weight, total) == []
        total[0] = 1


def test_changed_data_are_named_with_the_line_where_they_choose_rows():
    source, weight, total = tables()
    for _ in range(2):
        why(spread, source, weight, total)
    source[0] = 3
    (line,) = why(spread, source, weight, total)
    assert line.startswith("prepared again: data that choose rows have changed: source (")
    assert line.endswith("total[i] += weight[k])")
    assert f"{__file__}:{spread.__code__.co_firstlineno + 3}: " in line


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda source, weight, total: (source, weight, strads.dvector.zeros(ROWS)), "not those of earlier calls"),
        (lambda source, weight, total: (source, strads.dvector(weight.storage.astype("f4")), total), "shapes or types"),
    ],
)
def test_other_tables(change, reason):
    given = tables()
    why(spread, *given)
    (line,) = why(spread, *change(*given))
    assert reason in line


def test_other_indices():
    given = tables()
    why(spread, *given)
    assert why(spread, *given, tasks=TASKS - 1) == [
        "prepared again: the indices of the loop are not those of earlier calls"
    ]


def test_a_loop_that_does_not_serve_a_call_still_knows_what_it_was_prepared_for(monkeypatch):
    """Here because its tables lie elsewhere on the nodes; the data have changed, too, so that a plan would not pay."""
    source, weight, total = tables()
    for call in range(4):
        source[0] = call
        stats = strads.async_for(TASKS, spread, source, weight, total)
    assert stats.planning_seconds == 0  # it is prepared for any data
    kept = kept_loops._kept[-1]
    kept.facts = replace(kept.facts, placed={0: None})
    monkeypatch.setattr(kept_loops.KeptLoop, "_lies_as_planned", lambda *_: False)
    source[0] = 5
    (line,) = why(spread, source, weight, total)
    assert line.startswith("prepared again: data that choose rows have changed")


# -- what becomes of earlier plans -------------------------------------------------------------------------------------


def left_behind():
    """Prepared loops that this process stores as a node, though none of its calls can use them."""
    (stored,) = cluster.current().here.run(attrgetter("store"))
    return {n for n, item in stored.items() if isinstance(item, NodeLoop)} - {kept.name for kept in kept_loops._kept}


def pick(k, source, weight, out):
    out[k] = weight[source[k]]


def follow(k, source, weight, out):
    j = source[k]
    out[j] += weight[0]
    source[k] = j


@pytest.mark.parametrize("body", [pick, follow])
def test_no_outdated_loop_stays_on_a_node(body):
    earlier = left_behind()
    for _ in range(2):
        source, weight, out = (strads.dvector(np.arange(20_000)), *(strads.dvector.zeros(20_000) for _ in range(2)))
        for call in range(4):
            source[0] = call
            strads.async_for(20_000, body, source, weight, out)
    assert left_behind() <= earlier


def test_no_loop_stays_on_a_node_whose_preparation_is_interrupted(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    def count(k, source, counts):
        counts[source[k]] += 1

    earlier = left_behind()
    monkeypatch.setattr(preparation, "copies_are_best", lambda *_: False)
    monkeypatch.setattr(preparation, "of_few_rows", lambda *_: frozenset())
    monkeypatch.setattr(preparation, "counters_are_the_bottleneck", interrupt)
    with pytest.raises(KeyboardInterrupt):
        why(count, strads.dvector(np.zeros(TASKS, "i8")), strads.dvector.zeros(4, "i8"))
    assert left_behind() <= earlier
