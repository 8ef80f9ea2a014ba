"""mode="python": the same result as compiled code, and every access checked."""

import math

import numpy as np
import pytest

import strads
from strads import async_for

EDGE = np.dtype([("a", "i4"), ("b", "i4"), ("weight", "f4")], align=True)
STATE = np.dtype([("count", "i8"), ("total", "f8")])


def distance(w, h):
    total = 0.0
    for f in range(len(w)):
        total += (w[f] - h[f]) ** 2
    return math.sqrt(total)


def embed(k, edges, W, rate, loss):
    e = edges[k]
    w, h = W[e.a], W[e.b]
    d = distance(w, h) + 0.1
    for f in range(len(w)):
        step = rate * e.weight * (h[f] - w[f]) / d
        w[f] += step
        h[f] -= step
    loss.add(d)


def tally(k, edges, state):
    e = edges[k]
    state[e.a].count += 1
    state[e.b].total += e.weight


def words(k, docs, counts, seen):
    row = docs[k]
    for n in range(len(row)):
        counts[row[n]] += 1
        row[n] += 10
    seen.add(len(row))


def sums(k, W, totals, shape, scale):
    W[k] = W[k] * scale + shape[1]
    totals[k % shape[0]] += W[k, 0]


def whole(k, A, x):
    x[k] = A.sum() * 2.0 + A.T[0] + np.dot(A, A) + (A * 2.0)[k] + A[k]


def random_edges(n: int, nodes: int) -> strads.dvector:
    rng = np.random.default_rng(0)
    edges = np.empty(n, EDGE)
    edges["a"] = rng.integers(0, nodes, n)
    edges["b"] = (edges["a"] + rng.integers(1, nodes, n)) % nodes
    edges["weight"] = rng.random(n)
    return strads.dvector(edges)


def assert_modes_agree(n, body, make, tolerance=1e-5, **options):
    """Run a body in both modes on fresh tables; compare all tables and sums. Returns the statistics."""
    results = []
    for mode in ("compiled", "python"):
        arguments = make()
        stats = async_for(n, body, *arguments, mode=mode, **options)
        tables = [getattr(argument, "table", argument) for argument in arguments]
        results.append((tables, stats))
    (compiled, _), (python, stats) = results
    for ours, theirs in zip(compiled, python, strict=True):
        if isinstance(ours, strads.dvector):
            assert ours.version == theirs.version
            pairs = [(ours, theirs)] if ours.dtype.names is None else [(ours[f], theirs[f]) for f in ours.dtype.names]
            for left, right in pairs:
                left, right = (v.storage.values if getattr(v, "is_ragged", False) else v for v in (left, right))
                assert np.allclose(left, right, rtol=tolerance, atol=tolerance)
        elif hasattr(ours, "value"):
            assert ours.value == pytest.approx(theirs.value, rel=tolerance)
            assert ours.value != 0
    return stats


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_helpers_and_accumulators(dtype):
    def make():
        W = strads.dvector.normal((30, 3), seed=0, dtype=dtype)
        return random_edges(300, 30), W, 0.1, strads.accumulator(0.0)

    stats = assert_modes_agree(300, embed, make, 1e-3 if dtype == "f4" else 1e-10)
    assert stats.strategy in ("buckets", "components", "rotation", "sequential")
    assert stats.execution_seconds > 0


def named_like_attributes(k, x):
    x[k].dtype += x[k].item
    x[k].shape = x[k].size + 1


def test_fields_that_are_named_like_attributes_of_records():
    names = [(name, "i8") for name in ("dtype", "item", "shape", "size")]
    assert_modes_agree(20, named_like_attributes, lambda: (strads.dvector(np.ones(20, names)),))


def test_records_and_ragged_rows():
    assert_modes_agree(50, tally, lambda: (random_edges(50, 8), strads.dvector(np.zeros(8, STATE))))
    docs = [[0, 1, 1], [], [2], [3, 3, 0, 1]]
    assert_modes_agree(4, words, lambda: (strads.dvector(docs), strads.dvector.zeros(4, "i8"), strads.accumulator(0)))


def test_relaxed_tables_tuples_and_whole_rows():
    def make():
        return strads.dvector.normal((40, 2), seed=0), strads.relaxed(strads.dvector.zeros(3)), (3, 2), 1.5

    assert_modes_agree(40, sums, make, 1e-4)


def mark_missing(k, x, y):
    y[k] = 2.0 if math.isnan(x[k]) or math.isinf(x[k]) else x[k]


def add_size(k, table):
    table[k, 0] += table.size


def test_sizes_of_written_tables_can_be_asked_for():
    tables = strads.dvector.zeros((5, 3)), strads.dvector.zeros((5, 3))
    async_for(5, add_size, tables[0])
    async_for(5, add_size, tables[1], mode="python")
    assert tables[0].to_numpy().tolist() == tables[1].to_numpy().tolist() == [[15.0, 0.0, 0.0]] * 5


def test_nan_and_infinity_can_be_asked_for():
    y = strads.dvector.zeros(4)
    async_for(4, mark_missing, strads.dvector([np.nan, 1.0, np.inf, -np.inf]), y)
    assert y.to_list() == [2, 1, 2, 2]


def test_read_only_tables_can_be_used_as_arrays():
    A = np.arange(4.0)
    assert_modes_agree(4, whole, lambda: (strads.dvector(A), strads.dvector.zeros(4)))
    assert_modes_agree(4, whole, lambda: (A, strads.dvector.zeros(4)))


def shift_row(k, W, log):
    W[k % 3, 0] = W[k % 3, 0] * 2.0 + k  # depends on the order of tasks


def test_order_is_that_of_the_plan():
    W = strads.dvector.zeros((3, 1), "f8")
    log = strads.dvector.zeros(1)
    stats = async_for(30, shift_row, W, log, mode="python", record_order=True)
    assert sorted(stats.order) == list(range(30))
    expected = np.zeros((3, 1))
    for k in stats.order:
        expected[k % 3, 0] = expected[k % 3, 0] * 2.0 + k
    assert W.to_list() == expected.tolist()
    again = strads.dvector.zeros((3, 1), "f8")
    async_for(30, shift_row, again, log)
    assert again.to_list() == W.to_list()


# -- the first difference is named -------------------------------------------------------------------------


def single_precision_row(k, ratio, x):
    x[int(k * ratio)] += 1.0


def follow(k, pointers, x):
    i = pointers[k]
    x[i] += 1.0
    pointers[(k + 1) % 4] = (i + 1) % 4


def touch_until_full(k, x, y):
    x[0] += 1.0
    if x[0] < 2.5:
        y[k] += 1.0  # recorded for all tasks


def test_rows_chosen_by_values_that_the_loop_writes_are_named():
    pointers, x = strads.dvector([0, 0, 0, 0]), strads.dvector.zeros(4)
    with pytest.raises(strads.AccessPatternError) as caught:
        async_for(4, follow, pointers, x, mode="python", strategy="locked")
    where, what = str(caught.value).splitlines()
    assert where.startswith(__file__)
    assert where.endswith("x[i] += 1.0")
    assert what.startswith("  task 1: it touches row 1 of 'x'; recorded for this task were rows [0]")


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_a_loop_whose_rows_its_own_values_choose_runs_in_sequence(order):
    pointers, x = strads.dvector([0, 0, 0, 0]), strads.dvector.zeros(4)
    stats = async_for(4, follow, pointers, x, mode="python", order=order)
    assert stats.strategy == "sequential"
    assert pointers.to_numpy().tolist() == [0, 1, 2, 3]
    assert x.to_numpy().tolist() == [1, 1, 1, 1]


def test_out_of_range_is_found_before_anything_is_written():
    def make(nodes):
        return random_edges(50, 8), strads.dvector(np.zeros(nodes, STATE))

    edges, state = make(7)
    with pytest.raises(strads.BodyIndexError, match=r"index 7 is out of range for table 'state' with 7 rows"):
        async_for(50, tally, edges, state, mode="python")
    assert not state["count"].any()


def test_a_plan_made_for_compiled_code_serves_python_too():
    edges, state = random_edges(50, 8), strads.dvector(np.zeros(8, STATE))
    async_for(50, tally, edges, state)
    async_for(50, tally, edges, state, mode="python")  # records are wanted: reconnaissance again
    assert async_for(50, tally, edges, state, mode="python").reconnaissance_seconds == 0
    assert async_for(50, tally, edges, state).reconnaissance_seconds == 0
    assert state["count"].sum() == 4 * 50


# -- the checks themselves, where the analysis leaves no gap for them to find ------------------------------


def test_writes_to_read_only_tables_are_refused():
    from strads.loops.argument_kinds import bind_arguments
    from strads.loops.argument_roles import ArgumentRoles
    from strads.loops.indices import LoopIndices
    from strads.loops.python_mode import run_checked
    from strads.schedule.planner import build_plan
    from strads.schedule.records.access import UniformRecords

    def write_element(k, x, y):
        y[k] = x[k]

    def write_row(k, W, V):
        V[k][0] = W[k][0]

    for body, shape in [(write_element, (2,)), (write_row, (2, 3))]:
        source, target = strads.dvector.full(shape, 1.0), strads.dvector.zeros(shape)
        bound = bind_arguments(body, (source, target))
        nothing = ArgumentRoles((), {}, frozenset(), {}, (), {}, frozenset(), frozenset(), frozenset())
        records = UniformRecords((), (), (), np.zeros((2, 0), np.int32))  # as if nothing were written
        plan = build_plan(records, threads=1)
        with pytest.raises(strads.AccessPatternError, match=r"(?s)test_python_mode.*task 0.*read-only"):
            run_checked(body, bound, nothing, LoopIndices.of(2), plan, records, (), exact=True)
        assert not target.to_numpy().any()


def test_index_arithmetic_of_the_compiler_is_that_of_python():
    """Beside float32 tables too: 10 · 0.7 is 7.0, and 6.99… if 0.7 is rounded."""
    assert_modes_agree(20, single_precision_row, lambda: (0.7, strads.dvector.zeros(20)))


def one_index(k, T):
    T[k,] = T[k,] + k


def test_a_tuple_of_one_index_is_that_index():
    for mode in ("python", "compiled"):
        T = strads.dvector.zeros(5)
        async_for(5, one_index, T, mode=mode)
        assert T.to_numpy().tolist() == [0, 1, 2, 3, 4]
