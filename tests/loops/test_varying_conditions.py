"""Branches on data that vary from call to call: both arms are recorded, so that the plan lasts."""

import numpy as np
import pytest

import strads
from strads import async_for

TASKS, ROWS = 40_000, 30_000


def repel(k, starts, neighbours, x, force, reach):
    for p in range(starts[k], starts[k + 1]):
        j = neighbours[p]
        distance = x[k] - x[j]
        if abs(distance) < reach:
            force[k] += distance
            force[j] -= distance


def above(k, i, score, threshold, totals, floors):
    if score[k] > threshold:
        totals[i[k]] += score[k]
    elif floors[i[k]] < -threshold:
        totals[i[(k + 7) % len(i)]] -= 1.0


def looked_up(k, i, j, table, totals):
    if table[j[k]] > 0.5:
        totals[i[k]] += table[j[k]]


def chosen(k, i, score, totals):
    if score[k] > 0:
        totals[i[k]] += 1.0
    else:
        totals[int(-10 * score[k])] += 1.0


def replayed(body, order, *arguments):
    for k in order:
        body(k, *arguments)


def run(body, arguments, written, vary, calls=5, **options):
    """Run a loop on data that `vary` changes before each call, and compare it with its replay; return the plans."""
    plans = []
    for call in range(calls):
        arguments = vary(call, *arguments)
        plain = [a.to_numpy().copy() if isinstance(a, strads.dvector) else a for a in arguments]
        stats = async_for(TASKS, body, *arguments, record_order=True, fastmath=False, **options)
        replayed(body, stats.order, *plain)
        assert arguments[written].to_numpy().tobytes() == plain[written].tobytes()
        plans.append(stats.plan)
    return plans


def pairs():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 4, TASKS)
    starts = np.concatenate([[0], np.cumsum(counts)])
    owners = np.repeat(np.arange(TASKS), counts)
    neighbours = np.clip(owners + rng.integers(-40, 40, len(owners)), 0, TASKS - 1)
    x = strads.dvector(rng.normal(size=TASKS))
    return strads.dvector(starts), strads.dvector(neighbours), x, strads.dvector.zeros(TASKS), 0.5


def moved(call, starts, neighbours, x, force, reach):
    x[:] = x.to_numpy() + np.random.default_rng(call).normal(size=TASKS)
    return starts, neighbours, x, force, 0.4 + 0.1 * call


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{"threads": 2}, {"mode": "python"}])
def test_particles_that_move_keep_their_plan(options):
    plans = run(repel, pairs(), 3, moved, **options)
    assert plans[2] is plans[3] is plans[4]
    assert plans[4].strategy != "sequential"


def scores():
    rng = np.random.default_rng(5)
    i = strads.dvector(rng.integers(0, ROWS, TASKS))
    return (
        i,
        strads.dvector(rng.normal(size=TASKS)),
        0.0,
        strads.dvector.zeros(ROWS),
        strads.dvector(rng.normal(size=ROWS)),
    )


def lifted(call, i, score, threshold, totals, floors):
    return i, score, 0.3 * call - 0.5, totals, floors


@pytest.mark.few(1)
@pytest.mark.parametrize("threads", [1, 2])
def test_in_order_the_outcomes_are_those_of_the_call(threads):
    run(repel, pairs(), 3, moved, order="sequential", threads=threads)
    run(above, scores(), 3, lifted, order="sequential", threads=threads)


def test_a_threshold_that_moves_keeps_the_plan():
    plans = run(above, scores(), 3, lifted, threads=2)
    assert plans[2] is plans[3] is plans[4]
    assert plans[4].strategy != "sequential"


def test_rows_that_vary_themselves_are_recorded_anew():
    def vary(call, i, score, totals):
        return i, strads.dvector(np.random.default_rng(call).uniform(-3, 3, TASKS)), totals

    i = strads.dvector(np.random.default_rng(1).integers(0, ROWS, TASKS))
    run(chosen, (i, strads.dvector.zeros(TASKS), strads.dvector.zeros(ROWS)), 2, vary, threads=2)


@pytest.mark.parametrize("wrong", [ROWS, -ROWS - 1])
def test_indices_that_decide_are_checked_in_the_run(wrong):
    """They did not exist when both arms were recorded: numbers that vary may become indices out of range."""
    rng = np.random.default_rng(2)
    i, j = strads.dvector(rng.integers(0, ROWS, TASKS)), strads.dvector(rng.integers(0, ROWS, TASKS))
    table, totals = strads.dvector(rng.random(ROWS)), strads.dvector.zeros(ROWS)

    def vary(call, *arguments):
        j[:] = np.random.default_rng(call).integers(-ROWS, ROWS, TASKS)
        table[:] = np.random.default_rng(call).random(ROWS)
        return arguments

    run(looked_up, (i, j, table, totals), 3, vary, threads=2)
    before = totals.to_numpy().copy()
    j[TASKS // 2] = wrong
    with pytest.raises(strads.BodyIndexError):
        async_for(TASKS, looked_up, i, j, table, totals, threads=2)
    assert totals.to_numpy().tobytes() == before.tobytes()
    j[TASKS // 2] = -1
    run(looked_up, (i, j, table, totals), 3, lambda call, *arguments: arguments, threads=2)


@pytest.mark.nodes
def test_on_nodes_the_plan_lasts_too(runtime):
    plans = run(repel, pairs(), 3, moved)
    assert plans[2] is plans[3] is plans[4]
    assert plans[4].strategy != "sequential"
