"""Maps in loop bodies: values found by key, on one machine and on nodes, with the same bits as rows by number."""

import copy
import functools
import pickle
from collections import Counter

import numpy as np
import pytest

import strads
from strads import async_for
from strads.loops import driver

WORD = [("id", "i8"), ("weight", "f4")]
EXTREME = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63), 12345]


def count(k, words, counts):
    w = words[k]
    counts[w.id] += 1


def count_known(k, keys, counts, unknown):
    if keys[k] in counts:
        counts[keys[k]] += 1
    if keys[k] not in counts:
        unknown.add(1)


def words_of(tasks: int, keys: list[int] | np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    words = np.zeros(tasks, WORD)
    words["id"] = np.asarray(keys)[(rng.random(tasks) ** 2 * len(keys)).astype(int)]
    words["weight"] = rng.random(tasks)
    return words


def zeros(keys, dtype: str = "i8", row: tuple[int, ...] = ()) -> strads.dmap:
    distinct = np.unique(keys)
    return strads.dmap(distinct, np.zeros((len(distinct), *row), dtype))


# -- what a body can do with a map -------------------------------------------------------------------------


@pytest.mark.nodes
@pytest.mark.parametrize("keys", [EXTREME, list(range(-700, 900, 3))], ids=["extreme", "many"])
def test_words_are_counted(runtime, keys):
    data = words_of(5000, keys)
    words, counts = strads.dvector(data), zeros(keys)
    for calls in (1, 2, 3):
        async_for(len(words), count, words, counts)
        expected = Counter(data["id"].tolist())
        assert {key: value for key, value in counts.to_dict().items() if value} == {
            key: calls * value for key, value in expected.items()
        }
    key = int(data["id"][0])
    assert counts[key] == 3 * expected[key]


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u4", "u8"])
def test_keys_of_any_integer_type(dtype):
    info = np.iinfo(dtype)
    keys = sorted({info.min, 0, 1, min(info.max, 2**63 - 1)})
    counts = zeros(keys)
    unknown = strads.accumulator(0)
    data = np.array([*keys, 3], dtype)
    async_for(len(data), count_known, strads.dvector(data), counts, unknown)
    assert counts.to_dict() == dict.fromkeys(keys, 1)
    assert unknown.value == 1


def test_an_unsigned_key_is_no_negative_one():
    counts, unknown = zeros([-1, -5]), strads.accumulator(0)
    keys = strads.dvector(np.array([2**64 - 1, 2**64 - 5], "u8"))
    async_for(2, count_known, keys, counts, unknown)
    assert counts.to_dict() == {-1: 0, -5: 0}
    assert unknown.value == 2
    with pytest.raises(strads.BodyKeyError, match="key 18446744073709551615"):
        async_for(2, lambda k, keys, m: bump(m, keys[k]), keys, counts)


def bump(m, key):
    m[key] += 1


def in_helper(k, keys, m):
    bump(m, keys[k])


def rows(k, keys, m, x):
    w = m[keys[k]]
    for f in range(len(w)):
        w[f] += x
    m[keys[k], 0] += m[keys[k]][1]
    m[keys[k], 1] = 2.0


def whole_rows(k, keys, m, x):
    m[keys[k]] = m[keys[k]] * 0.5 + x


def boxes(k, keys, m, x):
    m[keys[k], 1, 0] += x
    m[keys[k]][0, 1] -= x


@pytest.mark.slow
def test_rows_and_boxes():
    keys = np.array([10, -20, 30, 10, 10])
    m = zeros(keys, "f8", (2,))
    async_for(len(keys), rows, strads.dvector(keys), m, 1.0)
    expected = {key: np.zeros(2) for key in keys.tolist()}
    for key in keys.tolist():
        expected[key] += 1.0
        expected[key][0] += expected[key][1]
        expected[key][1] = 2.0
    for key, row in expected.items():
        np.testing.assert_array_equal(m[key], row)
    async_for(len(keys), whole_rows, strads.dvector(keys), m, 1.0)
    for key in keys.tolist():
        expected[key] = expected[key] * 0.5 + 1.0
    for key, row in expected.items():
        np.testing.assert_array_equal(m[key], row)
    b = zeros(keys, "f8", (2, 2))
    async_for(len(keys), boxes, strads.dvector(keys), b, 1.0)
    assert b[10].tolist() == [[0.0, -3.0], [3.0, 0.0]]


def records(k, keys, m):
    r = m[keys[k]]
    r.n += 1
    m[keys[k]].total += r.n * 0.5


@pytest.mark.nodes
def test_records(runtime):
    keys = np.array([5, 6, 5, 5, -7])
    record = np.dtype([("n", "i4"), ("total", "f8")])
    m = strads.dmap(np.unique(keys), np.zeros(3, record))
    async_for(len(keys), records, strads.dvector(keys), m)
    assert m.to_dict() == {5: (3, 3.0), 6: (1, 0.5), -7: (1, 0.5)}


def sum_of_values(k, keys, groups, sums):
    values = groups[keys[k]]
    for i in range(len(values)):
        sums[keys[k]] += values[i]


def scale_values(k, keys, groups):
    values = groups[keys[k]]
    for i in range(len(values)):
        values[i] *= 2.0


@pytest.mark.nodes
def test_multimaps_give_the_values_of_a_key(runtime):
    groups = strads.dmultimap([3, -5, 3, 8, 3], [0.5, 1.5, 2.5, 4.0, 8.0])
    sums = zeros([3, -5, 8], "f8")
    keys = strads.dvector([3, -5, 8])
    for _ in range(2):
        async_for(3, sum_of_values, keys, groups, sums)
    assert sums.to_dict() == {3: 22.0, -5: 3.0, 8: 8.0}
    async_for(3, scale_values, keys, groups)
    assert groups[3].tolist() == [1.0, 5.0, 16.0]
    async_for(3, sum_of_values, keys, groups, sums)
    assert sums.to_dict() == {3: 44.0, -5: 6.0, 8: 16.0}


def length(k, m, empty, x):
    x[k] = len(m) + len(empty)


@pytest.mark.slow
def test_length_and_empty_maps():
    x = strads.dvector.zeros(3, "i8")
    m, empty = zeros([4, 5, 6]), strads.dmap()
    async_for(3, length, m, empty, x)
    assert x.to_list() == [3, 3, 3]
    unknown = strads.accumulator(0)
    async_for(2, count_known, strads.dvector([0, 1]), zeros([]), unknown)
    assert unknown.value == 2


@pytest.mark.nodes
def test_known_keys_are_asked_for(runtime):
    data = words_of(3000, range(-20, 80))["id"]
    counts, unknown = zeros(range(0, 100, 2)), strads.accumulator(0)
    async_for(len(data), count_known, strads.dvector(data), counts, unknown)
    expected = Counter(key for key in data.tolist() if key >= 0 and key % 2 == 0)
    assert {key: value for key, value in counts.to_dict().items() if value} == expected
    assert unknown.value == len(data) - expected.total()


def follow(k, start, following, visits):
    key = start[k]
    while key in following:
        visits[key] += 1
        key = following[key]


def test_a_map_decides_rows_of_another():
    following = strads.dmap({1: 5, 5: 9, 9: -1, 7: 5})
    visits = zeros([1, 5, 7, 9])
    start = strads.dvector([1, 7, 9, 2])
    async_for(4, follow, start, following, visits)
    assert visits.to_dict() == {1: 1, 5: 2, 7: 1, 9: 3}
    following[5] = -1  # what decides the rows has changed: recorded again
    async_for(4, follow, start, following, visits)
    assert visits.to_dict() == {1: 2, 5: 4, 7: 2, 9: 4}


def same_key(k, m, other):
    m[k + 5] += other[k]


def test_the_loop_index_as_key_is_no_row_number():
    m = zeros(range(5, 105), "f8")
    other = strads.dmap(np.arange(100), np.arange(100.0))
    stats = async_for(100, same_key, m, other)
    assert stats.strategy == "independent"
    assert m.to_dict() == {key: key - 5.0 for key in range(5, 105)}


def both_ways(k, values, m, x):
    x[k] = values[k] + m[k]


@pytest.mark.parametrize("first", ["table", "map"])
def test_a_map_and_its_table_in_one_loop(first):
    m = strads.dmap(np.arange(50), np.arange(50.0) ** 2)
    x = strads.dvector.zeros(50, "f8")
    body = both_ways if first == "table" else lambda k, m, values, x: both_ways(k, values, m, x)
    async_for(50, body, *((m.table, m) if first == "table" else (m, m.table)), x)
    np.testing.assert_array_equal(x.to_numpy(), m.table.to_numpy() + m[np.arange(50)])


def through_both(k, keys, rows, m, values):
    m[keys[k]] = (m[keys[k]] * 31 + k) % 1_000_003
    values[rows[k]] = (values[rows[k]] * 37 + k) % 1_000_003


def test_writes_to_a_map_and_to_its_table_are_ordered():
    keys = np.arange(0, 400, 4)
    m = zeros(keys)
    rng = np.random.default_rng(0)
    chosen, rows = rng.choice(keys, 3000), rng.integers(0, 100, 3000)
    stats = async_for(3000, through_both, strads.dvector(chosen), strads.dvector(rows), m, m.table, record_order=True)
    expected = np.zeros(100, np.int64)
    row_of = dict(zip(m.keys().tolist(), range(100), strict=True))
    for k in stats.order.tolist():
        row = row_of[int(chosen[k])]
        expected[row] = (expected[row] * 31 + k) % 1_000_003
        expected[rows[k]] = (expected[rows[k]] * 37 + k) % 1_000_003
    np.testing.assert_array_equal(m.table.to_numpy(), expected)


# -- hints -------------------------------------------------------------------------------------------------


def total_up(k, words, totals, z):
    totals[words[k].id] += 1.0
    z[k] = totals[words[k].id]


@pytest.mark.nodes
def test_relaxed_maps_are_summed(runtime):
    data = words_of(2000, EXTREME)
    totals = strads.relaxed(zeros(EXTREME, "f8", ()))
    z = strads.dvector.zeros(2000, "f8")
    for _ in range(2):
        stats = async_for(2000, total_up, strads.dvector(data), totals, z)
    assert stats.strategy == "independent"
    expected = Counter(data["id"].tolist())
    assert {key: value for key, value in totals.table.to_dict().items() if value} == {
        key: 2 * value for key, value in expected.items()
    }


def by_value(k, keys, totals):
    totals[int(totals[keys[k]])] += 1.0


def test_keys_of_a_relaxed_map_may_depend_on_its_values():
    totals = strads.dmap({100: 100.0, 200: 300.0, 300: 300.0})
    with pytest.raises(strads.BodyKeyError, match="depends on values that the loop changes"):
        async_for(2, by_value, strads.dvector([100, 100]), strads.relaxed(totals), threads=1)
    assert totals.to_dict() == {100: 100.0, 200: 300.0, 300: 300.0}
    async_for(2, by_value, strads.dvector([100, 200]), strads.relaxed(totals), threads=1)
    assert totals.to_dict() == {100: 101.0, 200: 300.0, 300: 301.0}


def opaque(k, keys, m, x):
    x[keys[k]] += m[keys[k]].reshape(-1)[0]


def test_readonly_maps():
    m, x = strads.dmap({4: [1.0, 2.0], 9: [3.0, 4.0]}), zeros([4, 9], "f8")
    async_for(2, opaque, strads.dvector([4, 9]), strads.readonly(m), x)
    assert x.to_dict() == {4: 1.0, 9: 3.0}
    with pytest.raises(strads.ArgumentError, match="writes 'counts'"):
        async_for(2, count, strads.dvector(words_of(2, [1])), strads.readonly(zeros([1])))


def test_relaxed_refuses_what_it_cannot_sum():
    with pytest.raises(strads.ArgumentError, match="not ragged rows"):
        strads.relaxed(strads.dmultimap([1], [2.0]))
    with pytest.raises(strads.ArgumentError, match="not records"):
        strads.relaxed(strads.dmap([1], np.zeros(1, WORD)))
    with pytest.raises(strads.ArgumentError, match="bools"):
        async_for(1, total_up, strads.dvector(words_of(1, [1])), strads.relaxed(strads.dmap({1: True})), 1)


# -- keys that change between loops ------------------------------------------------------------------------


@pytest.mark.nodes
def test_the_driver_and_loops_see_each_others_writes(runtime):
    data = words_of(1000, range(0, 60, 3))
    words, counts = strads.dvector(data), zeros(data["id"])
    expected = Counter(data["id"].tolist())
    present = sorted(expected)
    async_for(1000, count, words, counts)
    counts[present[0]] = 100
    counts.update({present[1]: 200, 777: 5})  # a new key: rows get new numbers
    async_for(1000, count, words, counts)
    assert counts[present[0]] == 100 + expected[present[0]]
    assert counts[present[1]] == 200 + expected[present[1]]
    assert counts[present[2]] == 2 * expected[present[2]]
    assert counts[777] == 5
    counts[888] = 7
    del counts[777]
    words[0] = (888, 0.0)
    async_for(1000, count, words, counts)
    assert counts[888] == 8
    assert 777 not in counts
    del counts[888]
    with pytest.raises(strads.BodyKeyError, match="key 888 is not in map 'counts'"):
        async_for(1000, count, words, counts)
    counts[888] = 0
    async_for(1000, count, words, counts)
    assert counts[888] == 1


def test_plans_are_kept_while_keys_stay_the_same(monkeypatch):
    plans = []
    original = driver._prepare
    monkeypatch.setattr(driver, "_prepare", lambda *a, **o: plans.append(1) or original(*a, **o))
    words, counts = strads.dvector(words_of(500, [1, 2, 3])), zeros([1, 2, 3])
    for _ in range(3):
        async_for(500, count, words, counts)
    counts[2] = 0
    async_for(500, count, words, counts)
    assert len(plans) == 1
    counts[4] = 0
    async_for(500, count, words, counts)
    assert len(plans) == 2
    del counts[4]
    async_for(500, count, words, counts)
    assert len(plans) == 3


def test_nodes_get_the_index_once(monkeypatch):
    from strads.dds import _spread

    sent = []
    original = _spread.SpreadIndex
    monkeypatch.setattr("strads.dds._keyed.SpreadIndex", lambda *a: sent.append(1) or original(*a))
    with strads.init("threads", nodes=2, threads=1) as runtime:
        words, counts = strads.dvector(words_of(500, [1, 2, 3])), zeros([1, 2, 3])
        for _ in range(3):
            async_for(500, count, words, counts)
            counts[1] = 0
        assert len(sent) == 1
        stored = max(runtime.cluster.run(lambda node: len(node.store)))
        for key in range(4, 12):
            counts[key] = 0
            async_for(500, count, words, counts)
        assert len(sent) == 9
        assert max(runtime.cluster.run(lambda node: len(node.store))) == stored  # outdated ones are dropped
        assert pickle.loads(pickle.dumps(counts)).to_dict() == copy.deepcopy(counts).to_dict() == counts.to_dict()


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.nodes
def test_a_missing_key_is_found_before_anything_is_written(runtime):
    data = words_of(3000, range(50))
    data["id"][2999] = 1234
    words, counts = strads.dvector(data), zeros(range(50))
    with pytest.raises(strads.BodyKeyError) as caught:
        async_for(3000, count, words, counts)
    where, what = str(caught.value).split("\n")
    assert where.endswith("counts[w.id] += 1")
    assert what == (
        "  task 2999: key 1234 is not in map 'counts' with 50 keys; a loop body cannot add keys: add them before "
        "the loop; no table was changed"
    )
    assert isinstance(caught.value, KeyError)
    assert not counts.values().any()


def raises_key_error(k, keys, m):
    if keys[k] > 3:
        raise KeyError("own")
    m[keys[k]] += 1


def test_a_body_may_raise_key_errors_of_its_own():
    with pytest.raises(strads.BodyError, match="raised KeyError: 'own'"):
        async_for(2, raises_key_error, strads.dvector([1, 4]), zeros([1, 4]))


@pytest.mark.nodes
def test_texts_are_to_be_translated_first(runtime):
    texts = ["ham", "spam", "ham"]
    counts = strads.dmap({"ham": 0, "spam": 0})
    with pytest.raises(strads.ArgumentError, match=r"'m' is a dmap whose keys are texts.*m\.rows_of\(texts"):
        async_for(3, in_helper, strads.dvector([0, 1, 2]), counts)
    chosen = strads.dvector(counts.rows_of(texts, must_exist=True))
    async_for(3, in_helper, chosen, counts.table)
    assert counts.to_dict() == {"ham": 2, "spam": 1}
    with pytest.raises(KeyError, match="no key 'eggs'"):
        counts.rows_of(["ham", "eggs"], must_exist=True)


@pytest.mark.nodes
def test_multimaps_of_rows_are_refused(runtime):
    m = strads.dmultimap([1, 1], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(strads.ArgumentError, match="'m' is a dmultimap of rows or records"):
        async_for(1, in_helper, strads.dvector([1]), m)


def iterates(k, m):
    for key in m:
        m[key] += 1


def removes(k, m):
    del m[k]


def fraction(k, m):
    m[0.5 * k] = 1


def sliced(k, m):
    m[:] = 1


def asks(k, m):
    m[k] += m.get(k, 1)


def text(k, m):
    m["a"] += 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (iterates, "cannot iterate over a map"),
        (removes, "cannot remove keys"),
        (fraction, "keys of a map are whole numbers, this one is float64"),
        (sliced, "keys of a map are whole numbers, this one is a slice"),
        (asks, r"cannot use \.get of a map; it can use m\[key\]"),
        (text, "keys of a map are whole numbers"),
    ],
)
def test_what_bodies_cannot_do(body, reason):
    with pytest.raises(strads.CompileError, match=reason) as caught:
        async_for(3, body, zeros(range(3)))
    first = caught.value.args[0].splitlines()[0]
    assert first.startswith(__file__)


def from_outside(k, x):
    x[k] = OUTSIDE[k]


OUTSIDE = strads.dmap({0: 1.0})


def test_maps_are_passed_as_arguments():
    with pytest.raises(strads.CompileError, match="'OUTSIDE' comes from outside"):
        async_for(1, from_outside, strads.dvector.zeros(1))


# -- python mode -------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("body", "make"),
    [
        (rows, lambda keys: (zeros(keys, "f8", (2,)), 1.5)),
        (whole_rows, lambda keys: (zeros(keys, "f8", (2,)), 1.5)),
        (boxes, lambda keys: (zeros(keys, "f8", (2, 2)), 1.5)),
        (in_helper, lambda keys: (zeros(keys),)),
        (count_known, lambda keys: (zeros(keys[:4]), strads.accumulator(0))),
        (scale_values, lambda keys: (strads.dmultimap(np.repeat(keys, 2), np.arange(2.0 * len(keys))),)),
        (records, lambda keys: (strads.dmap(np.unique(keys), np.zeros(len(np.unique(keys)), "i4,f8").astype(R)),)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_python_mode_agrees(body, make):
    keys = np.array([5, -6, 5, 2**62, -(2**63), 5, 8, -6])
    results = []
    for mode in ("compiled", "python"):
        arguments = make(keys)
        async_for(len(keys), body, strads.dvector(keys), *arguments, mode=mode)
        results.append((arguments[0].values().tobytes(), [getattr(a, "value", None) for a in arguments]))
    assert results[0] == results[1]


R = np.dtype([("n", "i4"), ("total", "f8")])


def test_python_mode_names_the_missing_key():
    with pytest.raises(strads.BodyKeyError, match=r"m\[key\] \+= 1\n  task 1: key 8 is not in map 'm' with 1 keys"):
        async_for(2, in_helper, strads.dvector([5, 8]), zeros([5]), mode="python")


def changing(k, keys, m):
    m[7 if m[keys[k]] > 0 else keys[k]] += 1


def test_python_mode_names_keys_that_were_not_recorded():
    with pytest.raises(
        strads.AccessPatternError, match=r"touches key 7 of 'm'; recorded for this task were keys \[5\]"
    ):
        async_for(3, changing, strads.dvector([5, 5, 5]), zeros([5, 7]), mode="python", strategy="locked")
    m = zeros([5, 7])
    with pytest.raises(strads.AccessPatternError):
        async_for(3, changing, strads.dvector([5, 5, 5]), m, strategy="components")
    assert not m.values().any()


# -- strategies: the same bits as with row numbers ---------------------------------------------------------

RATING = [("user", "i8"), ("item", "i8"), ("score", "f4")]
USERS = np.random.default_rng(1).permutation(np.arange(-400, 500))
ITEMS = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, 400)


def sgd(k, ratings, W, H, lr, reg, loss):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += lr * (err * h[f] - reg * wf)
        h[f] += lr * (err * wf - reg * h[f])
    loss.add(err * err)


def smooth(k, edges, x):
    e = edges[k]
    a, b = x[e.user], x[e.item]
    for f in range(len(a)):
        before = a[f]
        a[f] += e.score * (b[f] - before)
        b[f] += e.score * (before - b[f])


def gather_scatter(k, members, x):
    chosen = members[k]
    total = 0.0
    for j in range(len(chosen)):
        total += x[chosen[j]]
    for j in range(len(chosen)):
        x[chosen[j]] = 0.5 * x[chosen[j]] + 0.1 * total


def ratings_of(tasks: int, users: np.ndarray, items: np.ndarray, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    data = np.zeros(tasks, RATING)
    data["user"] = users[(rng.random(tasks) ** 2 * len(users)).astype(int)]
    data["item"] = items[(rng.random(tasks) ** 2 * len(items)).astype(int)]
    data["score"] = rng.random(tasks)
    return data


def factorize(by_key: bool) -> list[bytes]:
    data = ratings_of(20_000, USERS, ITEMS)
    W = strads.dmap(USERS, np.random.default_rng(3).random((len(USERS), 8), "f4"))
    H = strads.dmap(ITEMS, np.random.default_rng(4).random((len(ITEMS), 8), "f4"))
    if not by_key:
        data["user"], data["item"] = W.rows_of(data["user"]), H.rows_of(data["item"])
    ratings = strads.dvector(data)
    for _ in range(2):
        loss = strads.accumulator(0.0)
        tables = (W, H) if by_key else (W.table, H.table)
        stats = async_for(len(ratings), sgd, ratings, *tables, 0.01, 0.02, loss)
    assert stats.strategy == "rotation"
    return [W.values().tobytes(), H.values().tobytes(), np.array(loss.value).tobytes()]


def smoothen(by_key: bool, strategy: str) -> list[bytes]:
    data = ratings_of(3000, USERS[:500], USERS[500:], seed=1)
    x = strads.dmap(USERS, np.random.default_rng(3).random((len(USERS), 3), "f4"))
    if not by_key:
        data["user"], data["item"] = x.rows_of(data["user"]), x.rows_of(data["item"])
    edges = strads.dvector(data)
    for _ in range(2):
        async_for(len(edges), smooth, edges, x if by_key else x.table, strategy=strategy)
    return [x.values().tobytes()]


def scatter(by_key: bool) -> list[bytes]:
    rng = np.random.default_rng(3)
    chosen = [rng.choice(USERS, rng.integers(1, 5), replace=False) for _ in range(800)]
    x = strads.dmap(USERS, rng.random(len(USERS), "f4"))
    members = strads.dvector([row.tolist() if by_key else x.rows_of(row).tolist() for row in chosen], "i8")
    for _ in range(2):
        table = x if by_key else x.table
        async_for(800, gather_scatter, members, table, strategy="components", fastmath=False)  # sums in order
    return [x.values().tobytes()]


LOOPS = {
    "rotation": factorize,
    "buckets": lambda by_key: smoothen(by_key, "buckets"),
    "components": lambda by_key: smoothen(by_key, "components"),
    "components, ragged": scatter,
}


@functools.cache
def by_row(name: str) -> list[bytes]:
    """The result of a loop by row number, on one thread of one process."""
    with strads.init("threads", threads=1):
        return LOOPS[name](False)


@pytest.fixture
def expected(name: str) -> list[bytes]:
    return by_row(name)


@pytest.mark.few(2)
@pytest.mark.nodes
@pytest.mark.parametrize("name", LOOPS)
def test_the_same_bits_by_key_as_by_row_on_any_number_of_nodes(expected, runtime, name):
    assert LOOPS[name](True) == expected


def mix(k, keys, m, x):
    x[keys[k]] = (x[keys[k]] * 31 + m[keys[k]] + k) % 1_000_003


def test_locked_loops_have_a_serial_order():
    keys = np.random.default_rng(0).choice(USERS[:20], 2000)
    m, x = strads.dmap(USERS, np.arange(900)), zeros(USERS)
    stats = async_for(2000, mix, strads.dvector(keys), m, x, strategy="locked", record_order=True)
    expected, values = dict.fromkeys(USERS.tolist(), 0), m.to_dict()
    for k in stats.order.tolist():
        key = int(keys[k])
        expected[key] = (expected[key] * 31 + values[key] + k) % 1_000_003
    assert x.to_dict() == expected
