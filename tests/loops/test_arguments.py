"""What `async_for` accepts, and what it says of everything else."""

from decimal import Decimal

import numpy as np
import pytest

import strads
from strads import async_for
from strads.loops.indices import LoopIndices


def body(k, x, y):
    y[k] += x[k]


def add_scalar(k, x, amount):
    x[k] += amount


def with_varargs(k, *tables):
    tables[0][k] = 1.0


def with_keywords(k, x, *, y=None):
    x[k] = 1.0


def generator(k, x, y):
    yield x[k] + y[k]


async def coroutine(k, x, y):
    y[k] = x[k]


def no_index():
    pass


class Callable:
    def __call__(self, k, x, y):
        y[k] = x[k]


def table(rows: int = 4) -> strads.dvector:
    return strads.dvector.zeros(rows)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([1.0, 2.0], "a list"),
        ({"a": 1}, "a dict"),
        ("text", "a str"),
        ({1, 2}, "a set"),
        (object(), "a object"),
        ((1.0, [2.0]), "a tuple"),
        (range(4), "a range"),
        (np.array(["a", "b"]), "an array of <U1"),
        (np.array([1, "b"], object), "an array of object"),
        (np.array([1, 2], ">i4"), "an array of >i4"),
        (np.array(["2020-01-01"], "M8[D]"), "an array of datetime64"),
        (np.zeros(3, np.longdouble), "an array of "),
        (Decimal(1), "Decimal"),
        (2**70, "up to 64 bits"),
        (lambda: 1, "a function"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_unsupported_arguments_are_named(value, named):
    with pytest.raises(strads.ArgumentError, match=r"argument 'x' is ") as caught:
        async_for(4, body, value, table())
    assert named in str(caught.value)


def test_data_frames_are_named():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(strads.ArgumentError, match="argument 'x' is a DataFrame"):
        async_for(4, body, pandas.DataFrame({"a": [1.0]}), table())
    with pytest.raises(strads.ArgumentError, match="argument 'y' is a Series"):
        async_for(4, body, table(), pandas.Series([1.0]))


@pytest.mark.parametrize("given", [(), (1.0,), (1.0, 2.0, 3.0)])
def test_wrong_number_of_arguments(given):
    with pytest.raises(strads.ArgumentError, match=rf"takes 2 arguments .*\(x, y\), {len(given)} were given"):
        async_for(4, body, *given)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (print, "must be a Python function, not builtin"),
        (np.add, "must be a Python function, not ufunc"),
        (Callable(), "must be a Python function, not Callable"),
        ("body", "must be a Python function, not str"),
        (with_varargs, r"no \*args"),
        (with_keywords, "keyword-only"),
        (no_index, "loop index as its first parameter"),
        (generator, "must not yield"),
        (coroutine, "must not yield or await"),
    ],
)
def test_bodies_that_are_no_plain_functions(function, message):
    with pytest.raises(strads.ArgumentError, match=message):
        async_for(4, function, table(), table())


def test_a_lambda_is_a_function_too():
    total = strads.accumulator(0)
    async_for(4, lambda k, t: t.add(k), total)
    assert total.value == 6


@pytest.mark.parametrize(
    "indices", [4.0, "4", True, None, [0.5, 1.0], [[0, 1]], ["a"], {"a": 1}, {1, 2}, [True, False], np.array(3.0)]
)
def test_bad_indices(indices):
    with pytest.raises(strads.ArgumentError, match="give a range, a number of iterations, or integers"):
        async_for(indices, body, table(), table())


@pytest.mark.parametrize("values", [np.zeros((4, 1)).view(np.matrix), np.ma.zeros((4, 1)), np.zeros((4, 1), ">f8")])
def test_arrays_that_are_no_plain_ones(values):
    with pytest.raises(strads.ArgumentError, match=r"is a(n)? (matrix: pass|MaskedArray: pass|array of >f8)"):
        async_for(4, body, table(), values)


def test_complex_arrays_are_read():
    def add(k, values, sums):
        sums[k % 2] += values[k, 0] * values[k, 1]

    values, sums = np.array([[1, 2j], [3, 1 + 1j], [2j, 2]]), strads.dvector.zeros(2, "c16")
    async_for(3, add, values, sums)
    assert sums.to_list() == [6j, 3 + 3j]


@pytest.mark.parametrize(
    "indices", [np.array([2**64 - 1], np.uint64), range(2**63, 2**63 + 2), range(0, -(2**64), -(2**62))]
)
def test_indices_beyond_64_bits(indices):
    with pytest.raises(strads.ArgumentError, match="64-bit integers"):
        async_for(indices, body, table(), table())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fastest"}, "strategy='fastest' is unknown; choose one of auto, independent"),
        ({"strategy": None}, "strategy=None is unknown"),
        ({"mode": "debug"}, "mode='debug' is unknown; choose one of compiled, python"),
        ({"threads": 0}, "threads=0: give a whole number"),
        ({"threads": 1.5}, "threads=1.5"),
        ({"threads": "2"}, "threads='2'"),
        ({"seed": -1}, "seed=-1: give a whole number"),
        ({"seed": 1.0}, r"seed=1\.0"),
        ({"seed": True}, "seed=True"),
    ],
)
def test_bad_options(options, message):
    y = table()
    with pytest.raises(strads.ArgumentError, match=message):
        async_for(4, body, table(), y, **options)
    assert y.version == 0


def test_relaxed_needs_rows_of_numbers_and_is_so_everywhere():
    v = table()
    with pytest.raises(strads.ArgumentError, match="'x' and 'y' are the same table, one relaxed and one not"):
        async_for(4, body, v, strads.relaxed(v))
    with pytest.raises(strads.ArgumentError, match="records"):
        strads.relaxed(strads.dvector(np.zeros(3, [("a", "f4")])))
    with pytest.raises(strads.ArgumentError, match="'y' is a relaxed table of bools"):
        async_for(4, body, table(), strads.relaxed(strads.dvector.zeros(4, "bool")))


def test_empty_loops_and_empty_tables_do_nothing():
    x, y = table(), table()
    empty = table(0)
    for indices in (0, [], range(5, 5), -3):
        stats = async_for(indices, body, x, y, record_order=True)
        assert stats.tasks == 0
        assert len(stats.order) == 0
        assert async_for(indices, body, empty, empty, mode="python").tasks == 0
    assert not y.to_numpy().any()
    with pytest.raises(strads.BodyIndexError, match=r"index 0 .*with 0 rows"):
        async_for(1, body, empty, y)


def test_scalars_of_all_kinds():
    for amount, expected in [(2, 2), (True, 1), (np.float64(0.5), 0.5), (np.int8(3), 3)]:
        x = table()
        async_for(4, add_scalar, x, amount, threads=np.int64(2), seed=np.int32(1))
        assert x.to_list() == [expected] * 4


def add_nested(k, x, amounts):
    x[amounts[0][k % 2]] += amounts[1]


@pytest.mark.few(1)
@pytest.mark.parametrize("amount", [3, 0.5, True])
def test_tuples_in_tuples(amount):
    x = strads.dvector(np.zeros(4))
    async_for(6, add_nested, x, ((3, 1), amount))
    assert x.to_numpy().tolist() == [0.0, 3.0 * amount, 0.0, 3.0 * amount]


@pytest.mark.skipif(np.dtype("g").itemsize <= 8, reason="there is no wider type")
@pytest.mark.parametrize(("dtype", "advice"), [("g", "f8"), ("G", "c16"), ([("a", "g")], "f8")])
def test_numbers_of_more_than_double_precision_are_refused(dtype, advice):
    with pytest.raises(strads.ArgumentError, match=rf"convert it first, \.astype\('{advice}'\)"):
        strads.dvector(np.zeros(3, dtype))


def test_indices_are_equal_as_a_range_or_as_an_array():
    cases = [3, range(0, 6, 2), [0, 1, 2], np.array([0, 2, 1]), [], range(1, 4), [0, 1]]
    made = [[LoopIndices.of(case) for case in cases] for _ in range(2)]
    for i, one in enumerate(made[0]):
        assert [one == other for other in made[1]] == [i == j for j in range(len(cases))]
