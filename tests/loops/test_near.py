"""Rows that a body draws from those that its job owns: `rng.near`."""

import numpy as np
import pytest
from serial import refuse, run_or_refuse

import strads
from strads import async_for

TASKS, USERS, ITEMS = 6000, 400, 300


def one_more(k, pairs, U, C, rng, share):
    U[pairs[k, 0]] += 1
    C[pairs[k, 1]] += 1
    for _ in range(2):
        j = rng.near(C)
        if j != pairs[k, 1]:
            C[j] += U[pairs[k, 0]] % 5


def weighted(k, pairs, U, C, rng, share):
    i, o = pairs[k, 0], pairs[k, 1]
    j = rng.near(C, share)
    U[i] += C[o] % 7 + 2 * C[j]
    C[j] += U[i] % 3
    C[o] += 1


def until_other(k, pairs, U, C, rng, share):
    j = rng.near(C)
    while j == pairs[k, 1]:
        j = rng.near(C)
    C[j] -= 1
    C[pairs[k, 1]] += j
    U[pairs[k, 0]] += rng.near(U) % 3


def from_both(k, pairs, U, C, rng, share):
    u, c = rng.near(U), rng.near(C, weights=share)
    U[u] += C[c] % 4
    C[pairs[k, 1]] += U[pairs[k, 0]]
    C[c] += 1
    U[pairs[k, 0]] %= 1000


def other(rng, table, than):
    for _ in range(3):
        j = rng.near(table)
        if j != than:
            return j
    return than


def in_a_helper(k, pairs, U, C, rng, share):
    o = pairs[k, 1]
    j = other(rng, C, o)
    C[o] += 1
    C[j] += U[pairs[k, 0]] % 5
    U[pairs[k, 0]] += 1


def without_another_row(k, pairs, U, C, rng, share):
    C[rng.near(C)] += U[pairs[k, 0]] % 3
    U[pairs[k, 0]] += 1


def both_ends(k, pairs, U, C, rng, share):
    i, j = pairs[k, 0] % 300, pairs[k, 1]
    C[i] += 1
    C[j] += C[i] % 3
    n = rng.near(C, share)
    if n != i and n != j:
        C[n] -= C[i] % 4


def by_condition(k, pairs, U, C, rng, share):
    if U[pairs[k, 0]] % 3 > 0:
        C[rng.near(C)] += 1
    elif rng.random() < 0.5:
        C[pairs[k, 1]] += 2
    U[pairs[k, 0]] += C[pairs[k, 1]]


def of_all_rows(k, pairs, U, C, rng, share):
    C[pairs[k, 1]] += pairs[rng.near(pairs), 0]
    U[pairs[k, 0]] += rng.near(pairs)


def beside_it(k, pairs, U, C, rng, share):
    C[pairs[k, 1]] += 1
    C[(rng.near(C) + 1) % len(C)] += U[pairs[k, 0]]
    U[pairs[k, 0]] += 1


BODIES = [
    one_more,
    weighted,
    until_other,
    from_both,
    in_a_helper,
    without_another_row,
    both_ends,
    by_condition,
    of_all_rows,
    beside_it,
]


def arguments(tasks=TASKS):
    random = np.random.default_rng(0)
    pairs = strads.dvector(
        np.stack([random.integers(0, USERS, tasks), (ITEMS * random.random(tasks) ** 2)], 1).astype(int)
    )
    U, C = (strads.dvector.zeros(n, dtype=np.int64) for n in (USERS, ITEMS))
    return pairs, U, C, strads.random(3), strads.weights(np.arange(ITEMS) % 5)


@pytest.mark.few(1)
@pytest.mark.parametrize("body", BODIES)
def test_the_result_is_that_of_the_recorded_order(body):
    given = arguments()
    for _ in range(6):  # rows are dealt anew before the fifth
        assert run_or_refuse(range(TASKS), body, *given) is None
    assert given[2].to_numpy().any()


def totals(body, calls=6, tasks=TASKS, **options):
    given = arguments(tasks)
    for _ in range(calls):
        async_for(range(tasks), body, *given, **options)
    return np.concatenate([given[1].to_numpy(), given[2].to_numpy()])


@pytest.mark.few(2)
@pytest.mark.parametrize("body", BODIES)
def test_the_same_bits_for_any_number_of_threads_and_in_the_interpreter(body):
    expected = totals(body, threads=1)
    for threads in (2, 5, 16):
        np.testing.assert_array_equal(totals(body, threads=threads), expected)
    few = 300
    np.testing.assert_array_equal(totals(body, 5, few, mode="python"), totals(body, 5, few))


@pytest.mark.few(1)
@pytest.mark.nodes
@pytest.mark.parametrize("body", BODIES)
def test_near_on_nodes(runtime, body):
    given = arguments()
    for _ in range(6):
        assert run_or_refuse(range(TASKS), body, *given) is None


def with_rows_that_none_writes(k, pairs, U, C, rng):
    U[pairs[k, 0]] += C[ITEMS + k % 50]
    C[pairs[k, 1]] += 1
    U[rng.near(U)] += 1


@pytest.mark.nodes
def test_rows_read_outside_the_block_are_sent_to_other_nodes(runtime):
    pairs, U, _, rng, _ = arguments()
    C = strads.dvector(np.arange(ITEMS + 50))
    for _ in range(6):
        assert run_or_refuse(range(TASKS), with_rows_that_none_writes, pairs, U, C, rng, strategy="rotation") is None


def in_minibatches(batch, W, rng):
    for k in batch:
        W[k] += 1
        W[rng.near(W)] += 1


def test_minibatches_draw_from_all_rows():
    W, rng = strads.dvector.zeros(100, dtype=np.int64), strads.random(2)
    strads.register_aggregation(W, "sum")
    strads.sync_for(strads.dvector(np.arange(100)), in_minibatches, W, rng, batch_size=5)
    assert W.to_numpy().sum() == 200
    assert W.to_numpy().max() > 2


def of_a_map(k, m, rng):
    m[k] += rng.near(m)


def of_a_row(k, m, rng):
    m[k] += rng.near(m[k : k + 2])


def of_a_number(k, m, rng):
    m[k] += rng.near(3)


def test_what_has_no_rows_to_draw():
    refuse(strads.CompileError, range(3), of_a_map, strads.dmap(range(3), [1, 2, 3]), strads.random(0))
    for body in (of_a_row, of_a_number):
        refuse(strads.CompileError, range(3), body, strads.dvector.zeros(5, dtype=np.int64), strads.random(0))


def with_two_weights(k, C, rng, share, other):
    C[k] += 1
    C[rng.near(C, share)] += 1
    C[rng.near(C, other)] += 1


def with_a_shorter_table(k, C, shorter, rng):
    C[k] += 1
    shorter[k] += 1
    j = rng.near(C)
    shorter[j] += C[j]


def test_tables_that_do_not_fit_together():
    C, shorter = strads.dvector.zeros(20, dtype=np.int64), strads.dvector.zeros(10, dtype=np.int64)
    share = strads.weights(np.ones(20))
    refuse(strads.ArgumentError, range(10), with_two_weights, C, strads.random(0), share, share.copy())
    refuse(strads.ArgumentError, range(10), with_a_shorter_table, C, shorter, strads.random(0))
    wrong = strads.weights(np.ones(21))
    pairs = strads.dvector(np.zeros((10, 2), int))
    refuse(strads.ArgumentError, range(10), weighted, pairs, C, shorter, strads.random(0), wrong)


def test_other_strategies():
    given = arguments()
    for strategy in ("buckets", "components", "sequential"):
        assert run_or_refuse(range(TASKS), one_more, *given, strategy=strategy) is None
    for strategy in ("locked", "wavefront"):
        refuse(strads.PlanError, range(TASKS), one_more, *given, strategy=strategy)
    refuse(strads.PlanError, range(TASKS), without_another_row, *given, strategy="rotation")
    assert run_or_refuse(range(TASKS), one_more, *given, order="sequential") is None


def test_a_plan_of_buckets_is_made_anew_every_few_calls():
    given, pools = arguments(), []
    for _ in range(6):
        assert run_or_refuse(range(TASKS), both_ends, *given, strategy="buckets") is None
        stats = async_for(range(TASKS), both_ends, *given, strategy="buckets")
        pools.append(stats.plan.details.near["C"].rows.tolist())
        assert stats.reconnaissance_seconds == 0
    assert "a new plan every 4 calls" in stats.plan.explain()
    assert pools[0] == pools[1] != pools[2] == pools[3] != pools[4]


@pytest.mark.nodes
def test_buckets_on_nodes(runtime):
    given = arguments()
    for _ in range(6):
        assert run_or_refuse(range(TASKS), both_ends, *given, strategy="buckets") is None


def test_rows_are_dealt_anew_every_few_calls():
    given, plans = arguments(), []
    for _ in range(9):
        stats = async_for(range(TASKS), one_more, *given)
        plans.append(stats.plan)
        assert stats.reconnaissance_seconds == 0 or len(plans) == 1
    pools = [plan.details.near["C"].rows.tolist() for plan in plans]
    assert pools[0] == pools[3] != pools[4] == pools[7] != pools[8]
    assert all(sorted(rows) == list(range(ITEMS)) for rows in pools)
    assert "rows are dealt to other blocks every 4 calls" in plans[0].explain()


def count_draws(k, pairs, C, even, by_weight, rng, share):
    C[pairs[k, 1]] += 0
    even[pairs[k, 1]] += 0
    by_weight[pairs[k, 1]] += 0
    for _ in range(20):
        even[rng.near(C)] += 1
        by_weight[rng.near(C, share)] += 1


def test_each_row_of_a_block_has_its_share():
    pairs, _, C, rng, _ = arguments(20 * TASKS)
    even, by_weight = (strads.dvector.zeros(ITEMS, dtype=np.int64) for _ in range(2))
    weights = np.arange(ITEMS) % 5
    stats = async_for(range(len(pairs)), count_draws, pairs, C, even, by_weight, rng, strads.weights(weights))
    assert stats.strategy == "rotation"
    pools, expected = stats.plan.details.near["C"], np.zeros((2, ITEMS))
    for job, tasks in enumerate(np.diff(stats.plan.offsets)):
        rows = pools.rows[pools.low[job] : pools.high[job]]
        expected[0, rows] += 20 * tasks / len(rows)
        expected[1, rows] += 20 * tasks * weights[rows] / weights[rows].sum()
    for found, of_row in zip((even, by_weight), expected, strict=True):
        assert np.abs(found.to_numpy() - of_row).max() < 6 * np.sqrt(of_row.max())
        assert found.to_numpy()[of_row == 0].sum() == 0


def in_proportion(k, pairs, C, rng, share):
    C[pairs[k, 1]] += 1
    C[rng.near(C, share)] += 1


def between_items(k, pairs, C, rng, share):
    C[pairs[k, 1]] += C[pairs[k, 1] // 2]
    C[rng.near(C, share)] += 1


@pytest.mark.parametrize(("strategy", "body"), [("rotation", in_proportion), ("buckets", between_items)])
def test_rows_of_weight_0_that_are_drawn_are_told(strategy, body):
    pairs, _, C, rng, _ = arguments()
    share = strads.weights(np.arange(ITEMS) == 0)
    with pytest.warns(UserWarning, match="draws rows of weight 0 where a job has no others"):
        plan = async_for(range(TASKS), body, pairs, C, rng, share, strategy=strategy).plan
    assert "with weights (equally where all are 0: " in plan.explain()
