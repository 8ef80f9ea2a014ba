"""Operators give what plain Python gives, compiled or not, at the driver and on nodes."""

import functools
import logging
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strads
from strads.dds import RaggedArray, dvector
from strads.dds.operators import functions
from strads.errors import ArgumentError, BodyError, InputError

pytestmark = pytest.mark.nodes

RATING = np.dtype([("user", "i4"), ("score", "f8")], align=True)
Pair = namedtuple("Pair", "whole half")
ROWS = 700  # several chunks on a node


def ratings(rows: int = ROWS) -> dvector:
    table = np.zeros(rows, RATING)
    rng = np.random.default_rng(rows)
    table["user"], table["score"] = rng.integers(0, 30, rows), rng.random(rows)
    return dvector(table)


def sentences(rows: int = ROWS) -> dvector:
    rng = np.random.default_rng(rows)
    return dvector(RaggedArray.from_rows([rng.integers(0, 99, n) for n in rng.integers(0, 6, rows)], "i8"))


def in_python(function):
    """The same function, of a kind that is not compiled."""
    return functools.partial(function)


def twice(x):
    return 2 * x


def helped(x):
    return twice(x) + 1


def below(x, limit):
    if x >= limit:
        raise ValueError("too large")
    return x < 0


BOTH = pytest.mark.parametrize("form", [lambda f: f, in_python], ids=["compiled", "python"])


@BOTH
class TestMap:
    def test_numbers(self, runtime, form):
        for dtype in ("i4", "i8", "f8", "?"):
            v = dvector(np.arange(ROWS) % 5, dtype)
            for function in (lambda x: x + 1.5, lambda x: x > 2, helped):
                found = v.map(form(function))
                assert found.to_list() == [function(x) for x in v.to_list()]
                assert found.is_distributed == (not runtime.is_local)
        assert v.map(form(lambda x: x > 2)).dtype == bool

    def test_tuples_are_rows_and_named_tuples_records(self, runtime, form):
        v = dvector(np.arange(ROWS))
        rows = v.map(form(lambda x: (x, 0.5 * x)))
        assert rows.dtype == np.float64
        assert rows.to_list() == [[x, 0.5 * x] for x in range(ROWS)]
        records = v.map(form(lambda x: Pair(x, 0.5 * x)))
        assert records.dtype == np.dtype([("whole", "i8"), ("half", "f8")], align=True)
        assert records["half"].tolist() == [0.5 * x for x in range(ROWS)]

    def test_records(self, runtime, form):
        v = ratings()
        assert v.map(form(lambda r: r.user + r.score)).to_list() == [u + s for u, s in v.to_list()]
        assert v.map(form(lambda r: r)).to_list() == v.to_list()
        assert v.map(form(lambda r: r)).dtype == RATING

    def test_arrays_are_rows_if_they_have_one_length(self, runtime, form):
        v = dvector(np.arange(3.0 * ROWS).reshape(ROWS, 3))
        found = v.map(form(lambda row: row * 2.0))
        assert found.shape == (ROWS, 3)
        assert (found.to_numpy() == 2 * v.to_numpy()).all()
        ragged = v.map(form(lambda row: row[: 1 + int(row[0]) % 2]))
        assert ragged.is_ragged
        assert ragged.to_list() == [row[: 1 + int(row[0]) % 2] for row in v.to_list()]
        assert v.map(form(lambda row: row.sum())).to_list() == [sum(row) for row in v.to_list()]

    def test_ragged_rows(self, runtime, form):
        v = sentences()
        assert v.map(form(lambda row: len(row))).to_list() == [len(row) for row in v.to_list()]
        assert v.map(form(lambda row: row + 1)).to_list() == [[x + 1 for x in row] for row in v.to_list()]
        assert v.map(form(lambda row: row[:0])).is_ragged
        assert v.map(form(lambda row: np.zeros(2))).is_ragged  # whatever their lengths

    @pytest.mark.filterwarnings("ignore:divide by zero")
    def test_division_by_zero_is_that_of_numpy(self, runtime, form):
        with np.errstate(divide="ignore"):
            assert dvector([0.0, 2.0]).map(form(lambda x: 1 / x)).to_list() == [np.inf, 0.5]

    def test_further_arguments(self, runtime, form):
        table, v = np.arange(30) * 10.0, ratings()
        expected = [table[u] + 3 for u, _ in v.to_list()]
        assert v.map(form(lambda r, table, c: table[r.user] + c), table, 3).to_list() == expected
        assert v.map(form(lambda r, table, c: table[r.user] + c), dvector(table), 3).to_list() == expected

    def test_a_dtype(self, runtime, form):
        v = dvector(np.arange(ROWS, dtype="f4"))
        assert v.map(form(lambda x: x / 3), dtype="f4").dtype == np.float32
        assert v.map(form(lambda x: (x, 1.7)), dtype="i2")[3].tolist() == [3, 1]

    def test_errors_name_the_row_and_the_line(self, runtime, form):
        def check(x):
            if x >= 600:
                raise ValueError("too large")
            return x

        with pytest.raises(
            BodyError, match=r"test_operators\.py:\d+: raise ValueError.*\n  map: .*ValueError on row 600: too large"
        ):
            dvector(np.arange(ROWS)).map(form(check))
        with pytest.raises(BodyError, match=r"IndexError on row 0"):
            dvector(np.zeros((5, 2))).map(form(lambda row: row[len(row)]))

    def test_rows_cannot_be_written(self, runtime, form):
        def spoil(row):
            row[0] = 1
            return 1

        def spoil_record(r):
            r.user = 1
            return 1

        def spoil_by_helper(r):
            spoil_record(r)
            return 1

        def spoil_within(r):
            def inner():
                r.user = 1

            inner()
            return 1

        of_records = [(ratings(4), function) for function in (spoil_record, spoil_by_helper, spoil_within)]
        for v, function in ((dvector(np.zeros((4, 2))), spoil), *of_records):
            before = v.to_list()
            with pytest.raises(BodyError, match=r"read-only.*|writeable"):
                v.map(form(function))
            assert v.to_list() == before

    def test_tables_without_rows(self, runtime, form):
        assert len(dvector(np.zeros(0)).map(form(lambda x: x))) == 0
        assert len(dvector(np.zeros((0, 2))).map(form(lambda x: x))) == 0
        assert len(dvector(np.zeros(2)).map(form(lambda x: (x, x)))) == 2  # fewer than nodes


class TestMapInPython:
    def test_dicts_are_records(self, runtime):
        found = dvector([1, 2, 3]).map(lambda x: {"x": x, "y": x / 2})
        assert found["y"].tolist() == [0.5, 1, 1.5]

    def test_dtypes_agree_over_all_nodes(self, runtime):
        v = dvector(np.arange(9))
        found = v.map(in_python(lambda x: int(x) if x < 8 else 0.5))
        assert (found.dtype, found.to_list()) == (np.float64, [*range(8), 0.5])

    def test_results_that_are_not_alike_are_named(self, runtime):
        v = dvector(np.arange(9))
        with pytest.raises(InputError, match=r"tuple of 2|row of 2"):
            v.map(in_python(lambda x: 1 if x < 8 else (1, 2)))
        with pytest.raises(InputError, match=r"row 3: the function returned 'x', a str"):
            v.map(in_python(lambda x: "x" if x == 3 else 1))
        with pytest.raises(InputError, match=r"(?m)row 0: the function returned None.* named tuple$"):
            v.map(lambda x: None)

    def test_it_is_said_why(self, runtime, caplog):
        with caplog.at_level(logging.INFO, "strads.dds"):
            dvector([1, 2]).map(lambda x: x + 1)
            assert not caplog.records
            dvector([1, 2]).map(lambda x: {"a": x, "b": len(f"{x!r}")})
        assert "map runs in Python, not compiled, because" in caplog.text
        assert "test_operators.py" in caplog.text


def test_a_function_is_compiled_once_and_again_when_it_changes(runtime, monkeypatch):
    compiled = []
    original = functions._compile
    monkeypatch.setattr(functions, "_compile", lambda *a: compiled.append(1) or original(*a))
    v = dvector(np.arange(10))
    for _ in range(3):
        assert v.map(lambda x: x + 123).to_list() == list(range(123, 133))
    assert len(compiled) <= 1  # on other processes it is 0
    for offset in (1, 2, 1):
        assert v.map(lambda x: x + offset)[0] == offset  # noqa: B023
    assert len(compiled) <= 3


@BOTH
class TestFilter:
    def test_rows_are_kept_in_order(self, runtime, form):
        v, r, s = dvector(np.arange(2.0 * ROWS).reshape(ROWS, 2)), ratings(), sentences()
        assert v.filter(form(lambda row: row[0] % 3 == 0)).to_list() == [x for x in v.to_list() if x[0] % 3 == 0]
        assert r.filter(form(lambda r: r.user)).to_list() == [x for x in r.to_list() if x[0]]
        assert s.filter(form(lambda row: len(row) > 3)).to_list() == [x for x in s.to_list() if len(x) > 3]
        assert len(r.filter(form(lambda r, n: r.user > n), 99)) == 0
        assert r.filter(form(lambda r: r.user < 0)).dtype == RATING

    def test_errors_name_the_row_and_the_line(self, runtime, form):
        with pytest.raises(BodyError, match=r"test_operators.py.*\n  filter: .*ValueError on row 300: too large"):
            dvector(np.arange(ROWS)).filter(form(below), 300)


@BOTH
class TestTransform:
    def test_what_is_returned_replaces_the_row(self, runtime, form):
        v = dvector(np.arange(ROWS))
        version = v.version
        assert v.transform(form(lambda x: 2.5 * x)) is None
        assert v.version > version
        assert v.to_list() == [int(2.5 * x) for x in range(ROWS)]
        rows = dvector(np.ones((ROWS, 2), "f4"))
        rows.transform(form(lambda row: row * 2.0))
        rows.transform(form(lambda row: (row[1], 7)))
        assert rows.to_list() == [[2, 7]] * ROWS
        words = sentences()
        plain = words.to_list()
        words.transform(form(lambda row: row[::-1].copy()))
        assert words.to_list() == [row[::-1] for row in plain]
        r = ratings()
        users = r["user"].tolist()
        r.transform(form(lambda r: (r.user + 1, 0.5)))
        assert r.to_list() == [(u + 1, 0.5) for u in users]

    def test_rows_are_written_in_place(self, runtime, form):
        def raise_all(row, by):
            for k in range(len(row)):
                row[k] += by

        def double(r):
            r.score = 2 * r.score

        v, s, r = dvector(np.zeros((ROWS, 3))), sentences(), ratings()
        plain, scores = s.to_list(), r["score"].tolist()
        v.transform(form(raise_all), 2.0)
        s.transform(form(raise_all), 3)
        r.transform(form(double))
        assert v.to_list() == [[2.0] * 3] * ROWS
        assert s.to_list() == [[x + 3 for x in row] for row in plain]
        assert r["score"].tolist() == [2 * x for x in scores]

    def test_errors_name_the_row_and_the_line(self, runtime, form):
        v = dvector(np.arange(ROWS))
        with pytest.raises(BodyError, match=r"test_operators.py.*\n  transform: .*ValueError on row 5: .*keep"):
            v.transform(form(below), 5)
        assert v.version > 0

    def test_what_does_not_fit_is_refused(self, runtime, form):
        for v, function in (
            (dvector(np.zeros((4, 2))), lambda row: (1, 2, 3)),
            (dvector([[1, 2], [3]]), lambda row: np.zeros(5)),
            (dvector([1, 2]), lambda x: (x, x)),
        ):
            with pytest.raises((InputError, BodyError), match=r"test_operators.py.*\n  transform: .*row 0"):
                v.transform(form(function))


@BOTH
class TestReduce:
    @settings(
        max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
    )
    @given(values=st.lists(st.integers(-1000, 1000), min_size=1, max_size=50))
    def test_numbers(self, runtime, form, values):
        v = dvector(values)
        assert v.reduce(form(lambda a, b: a + b)) == sum(values)
        assert v.reduce(form(lambda a, b: max(a, b))) == max(values)
        assert v.reduce(form(lambda a, b: a + b), 5) == sum(values) + 5

    def test_it_keeps_the_order(self, runtime, form):
        # Affine maps x → a x + b under composition: associative, not commutative.
        rows = np.random.default_rng(0).integers(0, 7, (20_000, 2))
        rows[:, 0] |= 1

        def then(f, g):
            return np.array([f[0] * g[0] % 1009, (f[1] * g[0] + g[1]) % 1009])

        expected = functools.reduce(then, rows)
        assert dvector(rows).reduce(form(then)).tolist() == expected.tolist()

    def test_dtypes(self, runtime, form):
        total = dvector(np.full(10_000, 0.1, "f4")).reduce(form(lambda a, b: a + b))
        assert total.dtype == np.float32
        assert abs(total - 1000) < 0.5

    def test_records_and_ragged_rows(self, runtime, form):
        best = ratings().reduce(form(lambda a, b: a if a.score > b.score else b))
        assert best.score == ratings()["score"].max()
        longest = sentences().reduce(form(lambda a, b: a if len(a) >= len(b) else b))
        assert len(longest) == 5

    def test_tables_without_rows(self, runtime, form):
        assert dvector(np.zeros(0)).reduce(form(lambda a, b: a + b), 3) == 3
        with pytest.raises(InputError, match="initial"):
            dvector(np.zeros(0)).reduce(form(lambda a, b: a + b))

    def test_errors_name_the_line(self, runtime, form):
        with pytest.raises(BodyError, match=r"test_operators.py.*\n  reduce: .*ValueError"):
            dvector(np.zeros(ROWS, int)).reduce(form(lambda a, b: below(a, 0)))


class TestGroupByKey:
    def test_records_with_one_other_field(self, runtime):
        r = ratings()
        model: dict = {}
        for user, score in r.to_list():
            model.setdefault(user, []).append(score)
        grouped = r.group_by_key("user")
        assert grouped.to_dict() == model
        assert grouped.table.is_ragged
        assert grouped.is_distributed == (not runtime.is_local)
        assert grouped[7].tolist() == model[7]
        assert r.group_by_key().keys().tolist() == grouped.keys().tolist()
        grouped.add(7, 0.5)
        assert grouped[7].tolist() == [*model[7], 0.5]

    def test_the_order_does_not_depend_on_the_nodes(self, runtime):
        keys = ratings().group_by_key().keys().tolist()
        table = ratings()
        assert keys == strads.dmultimap(table["user"], table["score"]).keys().tolist()

    def test_records_and_rows_of_several_values(self, runtime):
        kind = np.dtype([("a", "i4"), ("key", "i8"), ("b", "f4", 2)], align=True)
        table = np.zeros(40, kind)
        table["a"], table["key"] = np.arange(40), np.arange(40) % 6 - 3
        grouped = dvector(table).group_by_key("key")
        assert grouped.dtype.names == ("a", "b")
        assert grouped[-3].a.tolist() == list(range(0, 40, 6))
        rows = dvector(np.stack([np.arange(40) % 6, np.arange(40), -np.arange(40)], axis=1))
        assert rows.group_by_key()[2][:, 0].tolist() == list(range(2, 40, 6))
        pairs = dvector(np.stack([np.arange(40) % 6, np.arange(40)], axis=1))
        assert pairs.group_by_key()[2].tolist() == list(range(2, 40, 6))
        assert dvector(np.zeros((0, 2), int)).group_by_key().to_dict() == {}

    def test_tables_that_have_no_keys(self, runtime):
        for v, key, problem in (
            (ratings(), "item", "no field 'item'"),
            (ratings(), "score", "whole numbers"),
            (dvector([1.0]), None, "records"),
            (dvector(np.zeros((2, 2))), None, "whole numbers"),
            (dvector(np.zeros((2, 2), int)), "x", "no field 'x'"),
            (dvector(np.zeros(2, [("x", "i4")])), None, "no other field"),
        ):
            with pytest.raises(ArgumentError, match=problem):
                v.group_by_key(key)


USER = np.dtype([("age", "i2"), ("user", "i8"), ("score", "f4")], align=True)


class TestJoin:
    def tables(self, left_rows=300, right_rows=50):
        rng = np.random.default_rng(1)
        left, right = ratings(left_rows), np.zeros(right_rows, USER)
        right["user"], right["age"] = rng.integers(0, 40, right_rows), np.arange(right_rows)
        right["score"] = 0.5
        return left, dvector(right)

    @pytest.mark.parametrize("rows", [(300, 50), (5, 50), (300, 0), (0, 0), (1, 1)])
    def test_each_pair_of_equal_keys_once_in_order(self, runtime, rows):
        left, right = self.tables(*rows)
        joined = left.join(right, "user")
        assert joined.dtype.names == ("user", "score", "age", "score_right")
        expected = [(u, s, a, t) for u, s in left.to_list() for a, v, t in right.to_list() if u == v]
        assert joined.to_list() == expected

    def test_several_fields(self, runtime):
        rng = np.random.default_rng(2)
        kind = np.dtype([("a", "i4"), ("b", "u1"), ("n", "i8")])
        tables = []
        for rows in (200, 60):
            table = np.zeros(rows, kind)
            table["a"], table["b"], table["n"] = rng.integers(-3, 3, rows), rng.integers(0, 4, rows), np.arange(rows)
            tables.append(dvector(table))
        joined = tables[0].join(tables[1], ["a", "b"], suffix="2")
        rows, others = tables[0].to_list(), tables[1].to_list()
        assert joined.to_list() == [(a, b, n, m) for a, b, n in rows for c, d, m in others if (a, b) == (c, d)]

    def test_a_table_with_itself(self, runtime):
        left, _ = self.tables(60)
        joined = left.join(left, "user")
        assert len(joined) == sum(n * n for n in np.unique(left["user"], return_counts=True)[1])

    def test_what_cannot_be_joined(self, runtime):
        left, right = self.tables()
        for other, on, suffix, problem in (
            (right, "item", "_right", "no field 'item'"),
            (right, "score", "_right", "whole numbers"),
            (right, [], "_right", "on is"),
            (right, "user", "", "another suffix"),
            (dvector([1, 2]), "user", "_right", "only tables of records"),
            ([1], "user", "_right", "another dvector"),
        ):
            with pytest.raises(ArgumentError, match=problem):
                left.join(other, on, suffix=suffix)


def test_operators_take_functions(runtime):
    v = dvector([1, 2])
    for operator in (v.map, v.filter, v.transform, v.reduce):
        with pytest.raises(ArgumentError, match="takes a function"):
            operator(3)
