"""Random numbers and snapshots as arguments of loops: the same bits however a loop runs, other ones in each call."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from serial import refuse, run_or_refuse

import strads
from strads import async_for
from strads.rng.numbers import NumbersOfTask

TASKS = 5000
ROWS = 300


def draw_each(k, x, table, rng):
    x[k, 0] = rng.random()
    x[k, 1] = rng.normal()
    x[k, 2] = rng.integers(10)
    x[k, 3] = rng.integers(-5, k + 1)
    x[k, 4] = rng.choice(table)


def gather(k, A, U, V, old, table, rng):
    u = U[A[k]]
    u += old[rng.integers(len(old))]
    if rng.random() < 0.5:
        u += old[rng.choice(table)]
        V[k] += rng.normal()


def gathered(calls=3, **options):
    U, V = strads.dvector.uniform((ROWS, 4), seed=1), strads.dvector.zeros(TASKS)
    A = strads.dvector(np.random.default_rng(0).integers(0, ROWS, TASKS))
    rng, table = strads.random(3), strads.weights(np.arange(ROWS) % 7)
    for _ in range(calls):
        async_for(range(TASKS), gather, A, U, V, strads.snapshot(U), table, rng, **options)
    return U.to_numpy().copy(), V.to_numpy().copy()


def test_the_same_bits_for_any_number_of_threads():
    expected = gathered(threads=1)
    for threads in (2, 3, 8):
        for found, values in zip(gathered(threads=threads), expected, strict=True):
            np.testing.assert_array_equal(found, values)


def test_the_interpreter_draws_the_same_numbers():
    for found, values in zip(gathered(mode="python", calls=1), gathered(calls=1), strict=True):
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)


def test_numbers_have_the_distributions_that_they_should():
    shares = np.array([3.0, 0.0, 1.0, 0.0, 4.0])
    x, rng = strads.dvector.zeros((40_000, 5), dtype=np.float64), strads.random(11)
    async_for(range(len(x)), draw_each, x, strads.weights(shares), rng)
    unit, normal, ten, between, chosen = x.to_numpy().T
    assert unit.min() >= 0
    assert unit.max() < 1
    assert abs(unit.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.02
    assert abs(np.mean(normal**4) - 3) < 0.15
    np.testing.assert_allclose(np.bincount(ten.astype(int)) / len(x), 0.1, atol=0.01)
    assert (between >= -5).all()
    assert (between <= np.arange(len(x))).all()
    np.testing.assert_allclose(np.bincount(chosen.astype(int)) / len(x), shares / shares.sum(), atol=0.01)
    assert set(chosen.astype(int)) == {0, 2, 4}
    assert abs(np.corrcoef(unit[1:], unit[:-1])[0, 1]) < 0.02  # of neighbouring tasks


def draw_wide(k, x, rng):
    x[k, 0] = rng.integers(-(2**63), 2**63 - 1)
    x[k, 1] = rng.integers(-(2**63), 2**63)
    x[k, 2] = rng.integers(2**63)
    x[k, 3] = rng.integers(-3, 2**63)


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_integers_of_any_range(mode):
    x = strads.dvector.zeros((2000, 4), dtype=np.int64)
    async_for(range(len(x)), draw_wide, x, strads.random(1), mode=mode)
    shares = x.to_numpy() / 2.0**63
    assert (shares[:, 2:] >= -4 / 2.0**63).all()
    np.testing.assert_allclose(shares.mean(axis=0), [0, 0, 0.5, 0.5], atol=0.05)
    np.testing.assert_allclose((shares < 0).mean(axis=0), [0.5, 0.5, 0, 0], atol=0.05)
    np.testing.assert_allclose((shares > 0.5).mean(axis=0), [0.25, 0.25, 0.5, 0.5], atol=0.05)


def draw_beyond(k, x, rng):
    x[k] = rng.integers(2**63, 2**63 + 5)


@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_integers_beyond_64_bits_are_refused(mode):
    with pytest.raises(strads.BodyError, match="to 2\\*\\*63 - 1"):
        async_for(range(9), draw_beyond, strads.dvector.zeros(9, dtype=np.int64), strads.random(1), mode=mode)


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=40).filter(any))
def test_weights_are_those_that_were_given(values):
    table = strads.weights(values)
    found = np.zeros(len(values))
    np.add.at(found, np.arange(len(values)), table["share"])
    np.add.at(found, table["other"], 1 - table["share"])
    expected = np.array(values) / max(values)
    np.testing.assert_allclose(found / len(values), expected / expected.sum(), atol=1e-12)
    assert not found[np.array(values) == 0].any()


@pytest.mark.parametrize("values", [[], [[1.0]], [0.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf]])
def test_weights_that_cannot_be(values):
    with pytest.raises(strads.InputError, match="weight"):
        strads.weights(values)


@pytest.mark.parametrize("seed", [-1, 1.5, True, 2**64, None])
def test_seeds_that_cannot_be(seed):
    with pytest.raises(strads.ArgumentError, match="seed="):
        strads.random(seed)


def fill(k, x, rng):
    x[k] = rng.random()


def filled(rng):
    x = strads.dvector.zeros(50)
    async_for(range(50), fill, x, rng)
    return x.to_list()


def test_each_call_draws_other_numbers_and_can_be_repeated():
    rng = strads.random(5)
    first, second = filled(rng), filled(rng)
    assert first != second
    assert rng.calls == 2
    rng.calls = 1
    assert filled(rng) == second
    assert filled(strads.random(5)) == first
    assert filled(strads.random(6)) != first


def fill_or_fail(k, x, rng, last):
    x[k] = rng.random()
    if k > last:
        raise ValueError


def test_a_call_that_fails_does_not_count():
    rng, x = strads.random(5), strads.dvector.zeros(50)
    with pytest.raises(strads.BodyError):
        async_for(range(50), fill_or_fail, x, rng, 30)
    assert rng.calls == 0
    assert not x.to_numpy().any()


def from_two(k, x, one, other):
    x[k] = one.random() - other.random()


def test_arguments_have_numbers_of_their_own():
    rng, x = strads.random(1), strads.dvector.zeros(50)
    async_for(range(50), from_two, x, rng, rng)
    assert (x.to_numpy() != 0).all()
    assert rng.calls == 1


def test_numbers_have_the_precision_of_the_tables():
    x, y = strads.dvector.zeros(1000), strads.dvector.zeros(1000, dtype=np.float64)
    for table in (x, y):
        async_for(range(1000), fill, table, strads.random(2))
    assert x.dtype == np.float32
    assert x.to_numpy().max() < 1
    assert (x.to_numpy() != y.to_numpy()).any()  # not merely rounded: a float32 below 1 stays below 1
    np.testing.assert_allclose(x.to_numpy(), y.to_numpy(), atol=1e-7)


# -- rows that draws choose: the result is always that of the serial loop with the same numbers --------------------


def into_any_row(k, A, W, rng):
    W[rng.integers(len(W))] += A[k]


def after_a_draw_under_a_condition(k, A, W, rng):
    if W[A[k]] > 2:
        W[A[k]] += rng.integers(3)
    W[rng.integers(len(W))] += 1


def after_a_draw_under_a_drawn_condition(k, A, W, rng):
    if rng.random() < 0.5:
        W[A[k]] += rng.integers(3)
    W[rng.integers(len(W))] += 1


def under_a_drawn_condition(k, A, W, rng):
    if rng.random() < 0.25:
        W[A[k]] += 1
    elif rng.random() < 0.5 and W[A[k]] % 2 == 0:
        W[A[k] // 2] += 1


def until_accepted(k, A, W, rng):
    j = rng.integers(len(A))
    while A[j] % 3 != 0:
        j = rng.integers(len(A))
    W[A[k]] += j % 5


def until_values_accept(k, A, W, rng):
    for _ in range(4):
        j = rng.integers(len(W))
        if W[j] % 2 == 0:
            break
    W[A[k]] += j


def pick(numbers, n):
    if numbers.random() < 0.5:
        return 0
    return numbers.integers(n)


def in_a_helper(k, A, W, rng):
    W[pick(rng, len(W))] += A[k]


def from_a_list(k, A, W, rng):
    sources = [rng, rng]
    n = 0
    for source in sources:
        n += source.integers(len(W))
    W[n % len(W)] += 1
    W[A[k]] += 1


BODIES = [
    into_any_row,
    after_a_draw_under_a_condition,
    after_a_draw_under_a_drawn_condition,
    under_a_drawn_condition,
    until_accepted,
    until_values_accept,
    in_a_helper,
    from_a_list,
]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", BODIES)
def test_draws_that_choose_rows(body):
    A = strads.dvector(np.random.default_rng(4).integers(0, ROWS, TASKS))
    W, rng = strads.dvector.zeros(ROWS, dtype=np.int64), strads.random(9)
    for _ in range(3):
        assert run_or_refuse(range(TASKS), body, A, W, rng) is None
    assert W.to_numpy().any()


@pytest.mark.few(2)
@pytest.mark.nodes
@pytest.mark.parametrize("body", [into_any_row, after_a_draw_under_a_drawn_condition, until_accepted])
def test_draws_on_nodes(runtime, body):
    A = strads.dvector(np.random.default_rng(4).integers(0, ROWS, TASKS))
    W, rng = strads.dvector.zeros(ROWS, dtype=np.int64), strads.random(9)
    for _ in range(2):
        assert run_or_refuse(range(TASKS), body, A, W, rng) is None


def from_either(k, A, W, one, other):
    if one.random() < 0.5:
        W[other.integers(len(W))] += A[k]
    elif W[A[k]] % 2 == 0:
        other.random()
    W[one.integers(len(W))] += other.integers(9)


def test_draws_from_two_arguments():
    A = strads.dvector(np.random.default_rng(4).integers(0, ROWS, TASKS))
    W, one, other = strads.dvector.zeros(ROWS, dtype=np.int64), strads.random(9), strads.random(10)
    for numbers in ((one, other), (other, one), (one, one)):
        assert run_or_refuse(range(TASKS), from_either, A, W, *numbers) is None


def test_a_plan_lasts_if_draws_choose_only_what_is_read():
    A, W = strads.dvector(np.arange(TASKS) % ROWS), strads.dvector.zeros(ROWS, dtype=np.int64)
    for body in (until_accepted, under_a_drawn_condition):
        rng = strads.random(1)
        async_for(range(TASKS), body, A, W, rng)
        assert async_for(range(TASKS), body, A, W, rng).reconnaissance_seconds == 0


def too_far(k, A, W, rng, n):
    W[A[k]] += A[rng.integers(n)]


def test_indices_that_are_drawn_are_checked():
    A, W = strads.dvector(np.arange(TASKS) % ROWS), strads.dvector.zeros(ROWS, dtype=np.int64)
    async_for(range(TASKS), too_far, A, W, strads.random(1), TASKS)
    refuse(strads.BodyIndexError, range(TASKS), too_far, A, W, strads.random(1), 3 * TASKS)
    refuse(strads.BodyError, range(TASKS), too_far, A, W, strads.random(1), 0)


def from_python(k, x):
    x[k] = random.random()


def from_numpy(k, x):
    x[k] = np.random.normal()  # noqa: NPY002


def halves(n):
    return n if n < 2 else halves(n // 2) + np.random.random()  # noqa: NPY002


def from_recursion(k, x):
    x[k] = halves(k)


outside = strads.random(3)


def from_a_global(k, x):
    x[k] = outside.random()


def down(n):
    return outside.random() if n == 0 else down(n - 1)


def from_a_global_in_recursion(k, x):
    x[k] = down(3)


def from_a_new_generator(k, x):
    x[k] = np.random.default_rng(1).random()


def from_an_imported_generator(k, x):
    x[k] = default_rng(1).random()


def from_a_random_state(k, x):
    x[k] = np.random.RandomState(1).rand()


def from_a_generator_class(k, x):
    x[k] = np.random.Generator(np.random.PCG64(1)).random()


def after_seeding(k, x):
    np.random.seed(1)  # noqa: NPY002
    x[k] = 1.0


@pytest.mark.parametrize(
    "body",
    [
        from_python,
        from_numpy,
        from_recursion,
        from_a_new_generator,
        from_an_imported_generator,
        from_a_random_state,
        from_a_generator_class,
        after_seeding,
    ],
)
def test_other_random_numbers_are_refused(body):
    error = run_or_refuse(range(10), body, strads.dvector.zeros(10))
    assert isinstance(error, strads.CompileError)
    assert "pass rng = strads.random(seed)" in str(error)


@pytest.mark.parametrize("body", [from_a_global, from_a_global_in_recursion])
def test_random_numbers_are_an_argument(body):
    error = run_or_refuse(range(10), body, strads.dvector.zeros(10))
    assert isinstance(error, strads.CompileError)
    assert "pass rng to the loop" in str(error)


def test_the_plan_of_drawn_rows_says_what_would_last():
    A = strads.dvector(np.arange(TASKS) % ROWS)
    W, rng = strads.dvector.zeros(ROWS), strads.random(9)
    assert "with rng.near(W) the plan would last" in async_for(range(TASKS), into_any_row, A, W, rng).plan.explain()
    locked = async_for(range(TASKS), into_any_row, A, W, rng, strategy="locked").plan.explain()
    assert "draw them with rng.near(table)" in locked


def choose_from_rows(k, x, rng):
    x[k] = rng.choice(x)


def draw_a_fraction(k, x, rng):
    x[k] = rng.integers(2.5)


def choose_from_numbers(k, x, rng):
    x[k] = rng.choice(3)


def draw_near_with_itself(k, x, rng):
    x[rng.near(x, x)] += 1


def draw_near_with_numbers(k, x, rng, numbers):
    x[rng.near(x, numbers)] += x[k]


def draw_another_normal(k, x, rng):
    x[k] = rng.normal(0, 1)


def draw_several(k, x, rng):
    x[k] = rng.random(3)[0]


def draw_uniformly(k, x, rng):
    x[k] = helped(rng)


def helped(numbers):
    return numbers.uniform(0, 1)


def seed_again(k, x, rng):
    rng.seed(3)
    x[k] = rng.random()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (choose_from_rows, r"rng\.choice takes weights made by strads\.weights"),
        (choose_from_numbers, r"rng\.choice takes weights made by strads\.weights"),
        (draw_near_with_itself, r"weights made by strads\.weights, which are another argument"),
        (draw_near_with_numbers, r"rng\.near takes weights made by strads\.weights"),
        (draw_a_fraction, "whole numbers"),
        (draw_another_normal, r"mean \+ deviation \* rng\.normal\(\)"),
        (draw_several, r"rng\.random cannot be called like this.* draw several in a loop"),
        (draw_uniformly, r"low \+ \(high - low\) \* rng\.random\(\)"),
        (seed_again, r"rng\.seed cannot be called like this"),
    ],
)
@pytest.mark.parametrize("mode", ["compiled", "python"])
def test_what_random_numbers_cannot_do(body, message, mode):
    x = strads.dvector.zeros(10)
    with pytest.raises(strads.CompileError, match=message):
        async_for(range(10), body, x, strads.random(0), *[np.ones(10)] * (body is draw_near_with_numbers), mode=mode)
    assert not x.to_numpy().any()


def test_the_interpreter_draws_like_the_compiler():
    numbers = NumbersOfTask(strads.random(3).key(2), np.float64(1))
    x, table = strads.dvector.zeros((20, 5), dtype=np.float64), strads.weights([1, 2, 3])
    async_for(range(20), draw_each, x, table, strads.random(3))
    for k in range(20):
        numbers.begin(k)
        expected = [numbers.random(), numbers.normal(), numbers.integers(10), numbers.integers(-5, k + 1)]
        np.testing.assert_allclose(x[k], [*expected, numbers.choice(table)], rtol=1e-12)


# -- snapshots -----------------------------------------------------------------------------------------------------


def smooth(k, x, old):
    x[k] = 0.5 * (old[k - 1] + old[(k + 1) % len(old)])


@pytest.mark.nodes
def test_a_snapshot_is_the_table_at_the_start(runtime):
    x = strads.dvector.uniform(TASKS, seed=0, dtype=np.float64)
    for _ in range(3):
        before = x.to_numpy().copy()
        statistics = async_for(range(TASKS), smooth, x, strads.snapshot(x))
        np.testing.assert_array_equal(x.to_numpy(), 0.5 * (np.roll(before, 1) + np.roll(before, -1)))
        assert statistics.strategy == "independent"


def write_snapshot(k, x, old):
    old[k] = x[k]


def test_snapshots_that_cannot_be():
    x = strads.dvector.zeros(10)
    with pytest.raises(strads.ArgumentError, match=r"'old' .* a snapshot"):
        async_for(range(10), write_snapshot, x, strads.snapshot(x))
    for what in (strads.dvector([[1], [1, 2]]), np.zeros(3), strads.dmap([1], [1.0])):
        with pytest.raises(strads.ArgumentError, match="snapshot takes a dvector"):
            strads.snapshot(what)


def drop_out(batch, w, old, rng):
    for i in range(len(batch)):
        if rng.random() < 0.5:
            w[0] += batch[i] + 0 * old[0]


def test_minibatches_draw_too():
    def dropped_out(threads):
        w, rng = strads.dvector.zeros(1, dtype=np.float64), strads.random(8)
        strads.register_aggregation(w, "sum")
        data = strads.dvector(np.ones(1000))
        for _ in range(2):
            strads.sync_for(data, drop_out, w, strads.snapshot(w), rng, batch_size=10, threads=threads)
        return w[0], rng.calls

    found = dropped_out(1)
    assert 900 < found[0] < 1100
    assert dropped_out(2) == found
