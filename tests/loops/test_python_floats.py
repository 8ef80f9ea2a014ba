"""Python floats beside single-precision tables: all their digits count where they meet integers."""

import math
import re
from random import Random

import numpy as np
import pytest
from fuzz.runner import module_of
from numba import njit, types

import strads
from strads import async_for
from strads.engine.views.python_floats import weak_float

TASKS = 40
LARGE = 1e8
RATES = (0.7, 0.3, 0.1)


def test_what_is_computed_of_integers_has_all_digits():
    def body(k, ids, ratio, ratios, counts, single):
        counts[0] += int(k * 0.7)
        counts[1] += int(ids[k] * ratio)
        counts[2] = k * ratios[1]
        step = 0.7
        counts[3] = ids[k] * step
        counts[4] = k * (step if k > 3 else 0.3)
        counts[5] = 123456789.0
        counts[7] = np.float64(0.7) * 10.0 + np.int64(float(ratio) * 10.0) - 7
        if k * ratio >= 7:
            counts[6] = 1
        single[k] += ratio * single[k]

    counts, single = strads.dvector.zeros(8, "i8"), strads.dvector.full(11, 1, "f4")
    async_for([10], body, strads.dvector(np.arange(11)), 0.7, (1, 0.7), counts, single)
    assert counts.to_list() == [7, 7, 7, 7, 7, 123456789, 1, 7]
    assert single[10] == np.float32(1) + np.float32(0.7)


def test_what_meets_single_precision_stays_single():
    """A double sum of these would be 2e8 + 1e-1, which no float32 is."""

    def body(k, single, scale, out):
        total, large = 0.0, LARGE
        for _ in range(2):
            total += single[k] * large
        total = total + 0.1
        out[k] = total - 2e8 * scale

    out = strads.dvector.full(1, 9, "f4")
    async_for(1, body, strads.dvector.full(1, 1, "f4"), 1.0, out)
    assert out[0] == 0


def half(x, share=0.1):
    if x < 0.5:
        return 0.25
    return x * share * 5


def test_functions_of_python_floats():
    def body(k, ids, alpha, out, counts):
        local = np.full(3, alpha)
        several = [alpha, 0.5]
        pair = (alpha, 2.5) if k > 1 else (0.1, alpha)
        out[k] = half(alpha) + half(out[k]) + min(alpha, out[k]) + local[1] + several[0] + pair[0]
        out[k] += math.exp(alpha) - abs(-alpha) + alpha**2 + (alpha if alpha else 1.5)
        out[k] *= np.float32(alpha) / (1 + alpha) // 0.01
        counts[k] = half(k * alpha) + round(ids[k] * alpha) + (not alpha)

    def run(mode):
        out, counts = strads.dvector.full(12, 0.75, "f4"), strads.dvector.zeros(12, "i8")
        async_for(12, body, strads.dvector(np.arange(12)), 0.7, out, counts, mode=mode)
        return out.to_numpy(), counts.to_list()

    (got, counts), (expected, expected_counts) = run("compiled"), run("python")
    assert got == pytest.approx(expected, rel=0.02)  # of //, which steps
    assert counts == expected_counts


def test_literals_in_index_arithmetic_stay_exact():
    def body(k, ids, x, y):
        x[int(k * 0.7)] += 1.0
        j = k * 0.7
        x[int(j)] += 1.0
        y[int(ids[k] * 0.7)] += 1.0
        x[np.uint32(0.7 * k)] += 1.0

    x, y = strads.dvector.zeros(8, "f4"), strads.dvector.zeros(8, "f4")
    async_for([10], body, strads.dvector(np.arange(11)), x, y)
    assert x.to_numpy().nonzero()[0].tolist() == y.to_numpy().nonzero()[0].tolist() == [7]
    assert x[7] == 3


def test_functions_and_lists_on_the_way_to_integers_have_all_digits():
    def body(k, share, counts, single):
        rates = [0.1, 0.7]
        counts[k, 0] = int(k * 1e6 * 0.9**k)
        counts[k, 1] = int(math.log(k + 1) / math.log(2.0))
        counts[k, 2] = int(k * rates[1] * 10)
        counts[k, 3] = k * round(share * 1.12, 2) * 1000
        counts[k, 4] = k * math.sqrt(share) * 1e6 + k * share**2 * 1e6
        counts[k, 5] = np.floor(share / 0.05) + share.real + share.imag
        single[k] += share

    counts = strads.dvector.zeros((20, 6), "i8")
    async_for(20, body, 0.15, counts, strads.dvector.zeros(20, "f4"), fastmath=False)
    expected = np.zeros((20, 6), "i8")
    for k in range(20):
        body(k, 0.15, expected, np.zeros(20))
    assert counts.to_numpy().tolist() == expected.tolist()


def test_containers_hold_all_digits():
    def body(k, rate, pair, counts, single):
        several, kept = [rate, 0.1], {1: 0.7}
        several.append(k * 0.7)
        several.insert(0, k * 0.7)
        kept[2] = k * rate
        counts[k, 0] = int(k * several[1]) + int(several[3]) + int(several[0])
        counts[k, 1] = k * kept[1] + int(kept[2])
        counts[k, 2] = int(k * np.full(2, rate)[1]) + int(k * np.array([0.7, 0.1])[0])
        counts[k, 3] = int(k * pair[k % 2]) + int(k * (0.7, 0.3)[k % 2]) + int(k * RATES[k % 3])
        for position, (one, two) in enumerate(zip(pair, RATES)):  # noqa: B905
            counts[k, 4] += int(k * one * 10) * position + k * two * 10
        for one, two in [(rate, 0.1), (0.3, rate)]:
            counts[k, 5] += int(k * one) + int(k * two)
        counts[k, 6] = int(k * sum(pair) * 10) + int(k * max(RATES)) + int(math.hypot(k * 0.7, 0.0))
        if isinstance(rate, float) and not isinstance(single[k], int):
            counts[k, 7] = k * rate.conjugate()
        single[k] += rate

    counts = strads.dvector.zeros((20, 8), "i8")
    async_for(20, body, 0.7, (0.7, 0.3), counts, strads.dvector.zeros(20, "f4"), fastmath=False)
    expected = np.zeros((20, 8), "i8")
    for k in range(20):
        body(k, 0.7, (0.7, 0.3), expected, np.zeros(20))
    assert counts.to_numpy().tolist() == expected.tolist()


def test_array_expressions_of_weak_floats_are_fused():
    """Numba makes one loop and one array of `w * s + s * h`, not one for each operator."""
    row = types.float32[::1]
    allocations = {}
    for scalar in (weak_float, types.float32):
        combined = njit(lambda w, h, s: w * s + s * h)
        combined.compile((row, row, scalar))
        (code,) = combined.inspect_llvm().values()
        allocations[scalar] = len(re.findall(r"call [^\n]*NRT_(?:MemInfo_alloc|Allocate)", code))
    assert allocations[weak_float] == allocations[types.float32] > 0


# -- random expressions --------------------------------------------------------------------------------------


def _number(rng: Random, depth: int) -> str:
    """An expression of integers, float literals and scalars."""
    if depth == 0:
        leaves = ["k", "ids[k]", "alpha", "pair[0]", "step", str(rng.randint(1, 9)), f"{rng.randint(1, 99) / 100}"]
        return rng.choice(leaves)
    left, right = _number(rng, rng.randrange(depth)), _number(rng, rng.randrange(depth))
    forms = ["({} + {})", "({} - {})", "({} * {})", "({} * {})", "min({}, {})", "({0} if {0} < {1} else {1})"]
    return rng.choice(forms).format(left, right)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_expressions_of_integers_and_floats_equal_python(seed: int):
    """Bit by bit, as what they are stored into is cut off to integers."""
    rng = Random(seed)
    lines = [f"    step = {rng.randint(1, 99) / 100}"]
    for n in range(12):
        value = f"(k + ids[k]) * {_number(rng, rng.choice([0, 1]))} + ids[k] * {_number(rng, 0)}"
        lines.append(f"    counts[k, {n}] = {rng.choice(['int({})', '{}', 'round({})', '{} * 10']).format(value)}")
    source = "\n".join(["def body(k, ids, alpha, pair, counts, single):", *lines, "    single[k] += alpha"]) + "\n"
    body = module_of(source).body
    ids = np.array([rng.randint(0, 50) for _ in range(TASKS)])
    alpha, pair = rng.randint(1, 99) / 100, (rng.randint(1, 99) / 100, 1)
    counts = strads.dvector.zeros((TASKS, 12), "i8")
    async_for(TASKS, body, strads.dvector(ids), alpha, pair, counts, strads.dvector.zeros(TASKS, "f4"), fastmath=False)
    expected = np.zeros((TASKS, 12), "i8")
    for k in range(TASKS):
        body(k, ids.tolist(), alpha, pair, expected, np.zeros(TASKS))
    assert counts.to_numpy().tolist() == expected.tolist()
