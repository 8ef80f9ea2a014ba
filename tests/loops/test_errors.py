"""What a user reads when a loop cannot run: the line first, the table, the index; and no table changed."""

import importlib
import math
import types

import numpy as np
import pytest

import strads
from strads import async_for

ITEM = np.dtype([("row", "i4"), ("weight", "f4")], align=True)


def table(rows: int = 4, dtype: str = "f4") -> strads.dvector:
    return strads.dvector.zeros(rows, dtype)


# -- indices out of range ----------------------------------------------------------------------------------


def add_at(k, index, x):
    x[index[k]] += 1.0  # the offending line


def add_deep(k, index, x):
    _first_helper(x, index[k])


def _first_helper(x, i):
    _second_helper(x, i)


def _second_helper(x, i):
    x[i] += 1.0  # deep


def add_within(k, column, W):
    w = W[k]
    w[0] = 7.0
    w[column[k]] += 1.0  # within


@pytest.mark.parametrize("bad", [100, -101, 2**31 - 1])
def test_last_of_many_tasks_is_out_of_range(bad):
    index = np.arange(100_000) % 100
    index[-1] = bad
    x = table(100)
    with pytest.raises(strads.BodyIndexError) as caught:
        async_for(100_000, add_at, strads.dvector(index), x)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(__file__)
    assert lines[0].endswith(": x[index[k]] += 1.0  # the offending line")
    assert "task 99999" in lines[1]
    assert f"index {bad}" in lines[1]
    assert "'x' with 100 rows" in lines[1]
    assert "no table was changed" in lines[1]
    assert isinstance(caught.value, IndexError)
    assert not x.to_numpy().any()
    assert x.version == 0


def test_index_error_deep_in_a_helper():
    x = table(5)
    with pytest.raises(strads.BodyIndexError, match=r"# deep\n.*index 5 .*'x' with 5 rows"):
        async_for(6, add_deep, strads.dvector(np.arange(6)), x)
    assert not x.to_numpy().any()


def test_index_error_within_a_row():
    W = strads.dvector.zeros((4, 3))
    with pytest.raises(strads.BodyIndexError, match=r"# within\n  task 2: within a row, index 3 .*size 3"):
        async_for(4, add_within, strads.dvector([0, 2, 3, 0]), W)
    assert not W.to_numpy().any()


def test_loop_indices_out_of_range_of_a_table_that_is_only_read():
    x = table(10)
    with pytest.raises(strads.BodyIndexError, match=r"index 3 .*'index' with 3 rows"):
        async_for(4, add_at, strads.dvector([0, 1, 2]), x)
    assert not x.to_numpy().any()


def last_column(k, A, x):
    x[k] = A[0, 3]


def test_an_array_with_fewer_columns_than_before_is_checked_again():
    x = table()
    async_for(4, last_column, np.ones((4, 4), "f4"), x)
    with pytest.raises(strads.BodyIndexError, match="index 3"):
        async_for(4, last_column, np.ones((4, 3), "f4"), x)


def fill_local(k, x, size, count):
    local = np.zeros(size)
    for j in range(count):
        local[j] = 1.0
    x[k] = local.sum()


def test_a_scalar_that_indexes_a_local_array_is_checked_again():
    x = table()
    async_for(4, fill_local, x, 4, 4)
    assert x.to_list() == [4] * 4
    for size, count in [(4, 5), (3, 4)]:
        with pytest.raises(strads.BodyIndexError):
            async_for(4, fill_local, x, size, count)
    assert x.to_list() == [4] * 4


def write_beyond_later(k, W):
    w = W[k]
    w[0] += 1.0
    if w[0] > 1.5:  # not in the first call
        w[5] = 1.0


def test_index_within_a_branch_that_reconnaissance_did_not_take():
    W = strads.dvector.zeros((4, 3))
    async_for(4, write_beyond_later, W)
    before = W.to_numpy(copy=True)
    with pytest.raises(strads.BodyIndexError, match="as before the call"):
        async_for(4, write_beyond_later, W)
    assert np.array_equal(W.to_numpy(), before)


def read_where_it_exists(k, A, docs, x):
    if k < 3:
        x[k] = A[k] + len(docs[k])


def test_rows_that_no_task_reads_need_not_exist():
    x = table(5)
    docs = strads.dvector([[1], [2, 3], []])
    async_for(range(100_000), read_where_it_exists, strads.dvector([10.0, 20.0, 30.0]), docs, x)
    assert x.to_list() == [11, 22, 30, 0, 0]
    empty = strads.dvector(np.zeros((0,)))
    ragged = docs[:0]
    async_for(range(3, 8), read_where_it_exists, empty, strads.dvector(ragged), x)
    assert x.to_list() == [11, 22, 30, 0, 0]


# -- bodies that do not compile ----------------------------------------------------------------------------


def try_finally(k, x):
    try:
        x[k] = 1.0
    finally:
        x[k] = 2.0


def unknown_global(k, x):
    x[k] = does_not_exist  # noqa: F821


def bad_helper(v):
    return v.foo


def untyped_helper(k, x):
    x[k] = bad_helper(x[k])


def dict_of_lists(k, x):
    d = {}
    d[k] = [1.0]
    x[k] = d[k][0]


def formatting(k, x):
    x[k] = len(f"{x[k]:.3f}")


def importing(k, x):
    import random

    x[k] = random.random()


def slice_of_written(k, x):
    x[k : k + 1] = 1.0


def two_types(k, x):
    v = x[k]
    if k > 1:
        v = "a"
    x[k] = v


class Settings:
    rate = 1.0


settings = Settings()


def object_attribute(k, x):
    x[k] = settings.rate


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        (try_finally, "x[k] = 1.0", "try and with are not supported"),
        (unknown_global, "x[k] = does_not_exist", "'does_not_exist' is not defined"),
        (untyped_helper, "return v.foo", "Unknown attribute 'foo'"),
        (dict_of_lists, "d", "list"),
        (formatting, 'x[k] = len(f"{x[k]:.3f}")', "format spec in f-strings"),
        (importing, "import random", "IMPORT_NAME"),
        (slice_of_written, "x[k : k + 1] = 1.0", "indexed by row number"),
        (two_types, "v", "unify"),
        (object_attribute, "x[k] = settings.rate", "'settings'"),
    ],
)
def test_offending_line_comes_first(body, line, reason):
    x = table()
    with pytest.raises(strads.CompileError) as caught:
        async_for(4, body, x)
    message = str(caught.value)
    first = message.splitlines()[0]
    assert first.startswith(__file__)
    assert line in first
    assert reason in message
    assert len(message) < 800
    assert "engine/" not in message
    assert not x.to_numpy().any()


def wrong_field(k, items, x):
    x[k] = items[k].nothing


def test_wrong_record_field_names_the_line():
    items = strads.dvector(np.zeros(4, ITEM))
    with pytest.raises(strads.CompileError, match=r"(?s)items\[k\]\.nothing.*no field 'nothing'"):
        async_for(4, wrong_field, items, table())


def count(k, x, total):
    total.add(x[k])


def test_an_integer_accumulator_takes_no_fractions():
    with pytest.raises(strads.CompileError, match=r"total\.add\(x\[k\]\)\n.*accumulator\(0\.0\)"):
        async_for(4, count, table(), strads.accumulator(0))


# -- writes that are not allowed ---------------------------------------------------------------------------


def copy_from(k, x, y):
    y[k] = x[k]


def test_numpy_arrays_and_readonly_tables_are_not_written():
    array = np.zeros(4)
    with pytest.raises(strads.ArgumentError, match=r"'y' .* NumPy array, which is only read: .*strads\.dvector"):
        async_for(4, copy_from, table(), array)
    with pytest.raises(strads.ArgumentError, match=r"test_errors\.py:\d+: .*'y'.*readonly"):
        async_for(4, copy_from, table(), strads.readonly(table()))
    assert not array.any()


def fail_at(k, x, bad):
    if k == bad:
        raise ValueError("broken task")
    x[k] += 1.0


def test_exception_of_a_task_names_line_and_task():
    x = table(4)
    with pytest.raises(strads.BodyError, match=r'raise ValueError\("broken task"\)\n  task 3 .*no table') as caught:
        async_for(4, fail_at, x, 3)
    assert isinstance(caught.value.__cause__, ValueError)
    assert not x.to_numpy().any()
    async_for(4, fail_at, x, -1)
    assert x.to_list() == [1] * 4


# -- access patterns that change while the loop runs -------------------------------------------------------


def follow_pointer(k, pointers, x):
    i = pointers[k]
    x[i] += 1.0
    pointers[(k + 1) % 4] = (i + 1) % 4


def test_rows_chosen_by_values_that_the_loop_writes():
    pointers, x = strads.dvector([0, 0, 0, 0]), table(4)
    with pytest.raises(strads.AccessPatternError) as caught:
        async_for(4, follow_pointer, pointers, x, threads=1, strategy="components")
    message = str(caught.value)
    assert "x[i] += 1.0" in message.splitlines()[0]
    assert "as before the call" in message
    assert "Choose rows by indices, read-only tables" in message
    assert pointers.to_list() == [0] * 4
    assert not x.to_numpy().any()


def random_row(k, x):
    x[np.random.randint(0, 1_000_000)] += 1.0  # noqa: NPY002


def test_random_numbers_of_numpy_are_refused():
    x = table(1_000_000)
    with pytest.raises(strads.CompileError, match=r"pass rng = strads\.random\(seed\)") as caught:
        async_for(100, random_row, x)
    assert "x[np.random.randint(0, 1_000_000)] += 1.0" in str(caught.value).splitlines()[0]
    assert not x.to_numpy().any()


def touch_if_positive(k, x, y):
    x[0] += 1.0
    if x[0] > 2.5:
        y[k] += 1.0


def touch_a_chosen_row(k, x, y):
    x[0] += 1.0
    y[k if x[0] > 2.5 else 0] += 1.0


def test_conditional_first_touch():
    x, y = table(1), table(4)
    async_for(4, touch_if_positive, x, y, strategy="components")
    assert (x.to_list(), y.to_list()) == ([4], [0, 0, 1, 1])
    x, y = table(1), table(4)
    with pytest.raises(strads.AccessPatternError):
        async_for(4, touch_a_chosen_row, x, y, strategy="components")
    assert x.to_list() == [0]
    x[0] = 5.0  # now every task touches its own row, in reconnaissance too
    async_for(4, touch_a_chosen_row, x, y)
    assert y.to_list() == [1] * 4


def raise_to_limit(k, x, limit):
    value = x[k // 8]
    if value < limit:
        x[k // 8] = value + 1.0


def test_a_conditional_write_is_a_write_though_the_row_is_read_in_any_case():
    """Reconnaissance may see reads only: the plan must not let tasks with a common row run together."""
    x = table(50)
    stats = async_for(400, raise_to_limit, x, 5.0)
    assert stats.strategy == "rotation"
    assert x.to_list() == [5] * 50


def swap_topics(k, topics, totals):
    old = topics[k]
    totals[old] -= 1
    new = (old + 1) % 3
    totals[new] += 1
    topics[k] = new


def test_relaxed_rows_may_be_chosen_by_values_that_the_loop_changes():
    topics, totals = strads.dvector.zeros(100, "i4"), strads.dvector([100, 0, 0])
    for expected in ([0, 100, 0], [0, 0, 100]):
        async_for(100, swap_topics, topics, strads.relaxed(totals))
        assert totals.to_list() == expected


# -- what decides a plan may change between calls ----------------------------------------------------------

weights = np.array([1.0, 2.0])
parameters = types.ModuleType("parameters")
parameters.scale = 2.0
shift = 0


def use_globals(k, x):
    x[k + shift] = weights[1] * parameters.scale + math.floor(0.5)


def test_changed_globals_compile_again(monkeypatch):
    x = table(5)
    async_for(4, use_globals, x)
    assert x.to_list() == [4, 4, 4, 4, 0]
    assert async_for(4, use_globals, x).compile_seconds == 0
    monkeypatch.setitem(globals(), "weights", weights.copy())
    assert async_for(4, use_globals, x).compile_seconds == 0  # an equal array
    weights[1] = 3.0
    monkeypatch.setattr(parameters, "scale", 5.0)
    monkeypatch.setitem(globals(), "shift", 1)
    async_for(4, use_globals, x)
    assert x.to_list() == [4, 15, 15, 15, 15]


def add_shifts(k, records, x):
    x[k] += records[k].shift  # an attribute, which the module's variable of that name has nothing to do with


def test_attributes_are_no_globals(monkeypatch):
    records, x = strads.dvector(np.ones(4, [("shift", "f8")])), strads.dvector(np.zeros(4))
    async_for(4, add_shifts, records, x)
    for value in (7.0, object()):
        monkeypatch.setitem(globals(), "shift", value)
        assert async_for(4, add_shifts, records, x).compile_seconds == 0
    np.testing.assert_array_equal(x.to_numpy(), np.full(4, 3.0))


package = types.ModuleType("package")
package.module = types.ModuleType("package.module")
package.module.package = package  # modules may refer to each other


def use_module_of_a_package(k, x):
    x[k] = package.module.outer(k)


def test_helpers_in_a_module_of_a_package(monkeypatch):
    def twice(k):
        return 2 * k

    def outer(k):
        return package.module.twice(k) + 1

    for helper in (twice, outer):
        monkeypatch.setattr(package.module, helper.__name__, helper, raising=False)
    x = table(4)
    async_for(4, use_module_of_a_package, x)
    assert x.to_list() == [1, 3, 5, 7]
    monkeypatch.setattr(package.module, "twice", lambda k: 3 * k)
    async_for(4, use_module_of_a_package, x)
    assert x.to_list() == [1, 4, 7, 10]


def add_strided(k, rows, values, x):
    x[rows[k]] += values[k]


def test_index_arrays_of_any_layout_and_their_changes():
    x = table(6, "f8")
    rows = np.arange(12, dtype="u8")[::2] // 2  # 0, 1, 2, 3, 4, 5
    values = np.arange(12.0)[::2]
    async_for(6, add_strided, rows, values, x)
    assert x.to_list() == [0, 2, 4, 6, 8, 10]
    rows[:] = 0
    values = values * 10
    async_for(6, add_strided, rows, values, x)
    assert x.to_list() == [300, 2, 4, 6, 8, 10]


def mark_word(k, words, docs):
    docs[words[k]][0] = k + 1


def test_unsigned_indices_of_ragged_rows():
    docs = strads.dvector([[0, 0], [0], [0]])
    async_for(3, mark_word, strads.dvector(np.arange(3, dtype="u8")), docs)
    assert docs.to_list() == [[1, 0], [2], [3]]


def test_tables_from_outside_are_refused():
    outside = table(4)

    def body(k, x):
        x[k] = outside[k]

    with pytest.raises(strads.CompileError, match=r"x\[k\] = outside\[k\]\n.*'outside' .*pass it as an argument"):
        async_for(4, body, table(4))


def test_helpers_of_a_module_are_compiled_too(tmp_path, monkeypatch):
    (tmp_path / "strads_test_helpers.py").write_text("def twice(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    helpers = importlib.import_module("strads_test_helpers")

    def body(k, x):
        x[k] = helpers.twice(k)

    x = table(4)
    async_for(4, body, x)
    assert x.to_list() == [0, 2, 4, 6]


# -- exceptions of the body --------------------------------------------------------------------------------


def fill_up(k, x):
    x[k % 2] += 1.0
    if x[k % 2] > 5.0:
        raise ValueError("too full")  # depends on what the loop has written


@pytest.mark.parametrize("order", ["any", "sequential"])
def test_the_line_that_raises_is_named(order):
    x = table()
    with pytest.raises(
        strads.BodyError, match=r"test_errors.py:\d+: raise ValueError\(\"too full\"\)[^\n]*\n[^\n]*as before"
    ):
        async_for(40, fill_up, x, order=order)
    assert not x.to_numpy().any()
