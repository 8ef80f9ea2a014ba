"""What `explain` says of calls for which an earlier call's plan cannot be used: why not, and where data choose rows."""

import numpy as np
import pytest

import strads

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
    assert f"{__file__}:14: " in line


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
