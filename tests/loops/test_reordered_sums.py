"""Sums that choose rows: runs may reorder them, check what they chose, and are repeated in order if that differs."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import strads
from strads import async_for, dvector

TASKS, FEATURES, CENTRES = 3000, 16, 24


def nearest(k, x, centres, sums, counts):
    best, chosen = np.inf, 0
    for j in range(centres.shape[0]):
        distance = 0.0
        for f in range(centres.shape[1]):
            distance += (x[k, f] - centres[j, f]) ** 2
        if distance < best:
            best, chosen = distance, j
    counts[chosen] += 1
    for f in range(centres.shape[1]):
        sums[chosen, f] += x[k, f]


def last_improvement(k, x, centres, label, least):
    best = np.inf
    for j in range(centres.shape[0]):
        distance = 0.0
        for f in range(centres.shape[1]):
            distance += (x[k, f] - centres[j, f]) ** 2
        if distance < best:
            best = distance
            label[k] = j
    least[k] = best


def look_up(k, x, values, y):
    total = 0.0
    for f in range(x.shape[1]):
        total += x[k, f]
    y[k] = values[int(total)]


def points(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(TASKS, FEATURES))


def centres_of(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(CENTRES, FEATURES))


def tied() -> tuple[np.ndarray, np.ndarray]:
    """Points as far from all centres, if nothing is rounded: these are permutations of each other."""
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(size=(TASKS, 1)), FEATURES, axis=1)
    return x, np.array([rng.permutation(centres_of()[0]) for _ in range(CENTRES)])


def sums_and_counts() -> list[dvector]:
    return [dvector(np.zeros((CENTRES, FEATURES))), dvector(np.zeros(CENTRES, np.int64))]


def labels() -> list[dvector]:
    return [dvector(np.zeros(TASKS, np.int64)), dvector(np.zeros(TASKS))]


@functools.cache
def plainly_compiled(body: Callable[..., None]) -> Callable[..., None]:
    return njit(body)


def in_order(body: Callable[..., None], *arrays: np.ndarray, order: Any = range(TASKS)) -> list[np.ndarray]:
    """What the plain loop writes without reordering anything."""
    compiled = plainly_compiled(body)
    for k in order:
        compiled(k, *arrays)
    return list(arrays[2:])


def empty(body: Callable[..., None]) -> list[np.ndarray]:
    return [table.to_numpy().copy() for table in (sums_and_counts() if body is nearest else labels())]


def is_guarded(stats: strads.LoopStatistics) -> bool:
    return "sums that the run may reorder" in stats.plan.explain()


def is_in_order(stats: strads.LoopStatistics) -> bool:
    return "sums are not reordered" in stats.plan.explain()


def check_result(body: Callable[..., None], **options: Any) -> list[np.ndarray]:
    """Run twice, compare with the plain loop, and return the tables."""
    x, centres, tables = points(), centres_of(), sums_and_counts() if body is nearest else labels()
    for _ in range(2):
        stats = async_for(TASKS, body, dvector(x), dvector(centres), *tables, record_order=True, **options)
    assert is_guarded(stats)
    wanted = in_order(body, x, centres, *empty(body), order=stats.order)
    wanted = in_order(body, x, centres, *wanted, order=stats.order)
    found = [table.to_numpy() for table in tables]
    for table, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-12)
    return found


@pytest.mark.parametrize("body", [nearest, last_improvement])
def test_the_result_is_that_of_the_loop(body):
    for one, two in zip(check_result(body, threads=1), check_result(body, threads=2), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.nodes
@pytest.mark.parametrize("body", [nearest, last_improvement])
def test_the_result_on_nodes_is_that_of_the_loop(runtime, body):
    check_result(body)


@pytest.mark.nodes
@pytest.mark.parametrize("body", [nearest, last_improvement])
def test_ties_that_rounding_decides(runtime, body):
    x, centres = tied()
    tables = sums_and_counts() if body is nearest else labels()
    arguments = dvector(x), dvector(centres), *tables
    for _ in range(2):
        stats = async_for(TASKS, body, *arguments, record_order=True)
    if body is nearest:  # tasks have left the blocks of their jobs
        assert is_in_order(stats)
        wanted = in_order(body, x, centres, *empty(body), order=stats.order)
        for table, expected in zip(tables, in_order(body, x, centres, *wanted, order=stats.order), strict=True):
            np.testing.assert_array_equal(table.to_numpy(), expected)
    else:  # each task has rows of its own, and touches them whatever is rounded
        distances = ((x[:, None] - centres) ** 2).sum(-1)
        chosen = distances[np.arange(TASKS), tables[0].to_numpy()]
        np.testing.assert_allclose(chosen, distances.min(1), rtol=1e-12)


def test_an_index_that_only_another_rounding_takes_out_of_range():
    x, values = np.full((TASKS, 10), 0.1), np.array([3.0])  # in order, these sum to 1 − 2⁻⁵³
    y = dvector(np.zeros(TASKS))
    stats = async_for(TASKS, look_up, dvector(x), dvector(values), y)
    assert is_in_order(stats)
    np.testing.assert_array_equal(y.to_numpy(), np.full(TASKS, 3.0))
    x[7] += 1.0
    with pytest.raises(strads.BodyIndexError, match="task 7"):
        async_for(TASKS, look_up, dvector(x), dvector(values), y)


def test_the_plan_holds_until_what_chooses_rows_changes():
    x, centres, tables = dvector(points()), dvector(centres_of()), sums_and_counts()
    async_for(TASKS, nearest, x, centres, *tables, strategy="rotation")
    assert async_for(TASKS, nearest, x, centres, *tables, strategy="rotation").reconnaissance_seconds == 0
    centres[:] = centres_of(3)
    stats = async_for(TASKS, nearest, x, centres, *tables, strategy="rotation", record_order=True)
    assert is_guarded(stats)
    wanted = in_order(nearest, x.to_numpy(), centres_of(3), *empty(nearest), order=stats.order)
    before = in_order(nearest, x.to_numpy(), centres_of(), *empty(nearest))
    np.testing.assert_array_equal(tables[1].to_numpy(), wanted[1] + 2 * before[1])


def test_sums_keep_their_order_where_asked_for():
    arguments = dvector(points()), dvector(centres_of()), *sums_and_counts()
    assert not is_guarded(async_for(TASKS, nearest, *arguments, fastmath=False))
