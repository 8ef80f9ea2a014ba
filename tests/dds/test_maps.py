"""Maps and multimaps at the driver do what dicts do, and find keys with compiled code."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strads
from strads.dds import _hashing, dmap, dmultimap, dvector
from strads.dds._hash_index import HashIndex, find_number, find_text, group_keys
from strads.dds._hashing import hash_bytes, hash_keys, node_of
from strads.dds._keys import decode_keys, encode_keys
from strads.errors import ArgumentError, InputError
from strads.rng.splitmix import mix

INTS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=6)
KEYS = st.one_of(st.lists(INTS, max_size=30), st.lists(TEXTS, max_size=30))
FEW = st.one_of(st.lists(st.integers(0, 8), max_size=30), st.lists(st.sampled_from("abcdefg"), max_size=30))
POINT = np.dtype([("x", "f4"), ("n", "i8")], align=True)


class TestIndex:
    @given(keys=KEYS)
    def test_every_key_is_found_in_its_row(self, keys):
        groups = group_keys(encode_keys(keys))
        index = HashIndex.of_ordered(groups.keys, groups.hashes)
        assert sorted(decode_keys(groups.keys).tolist()) == sorted(set(keys))
        assert (np.diff(groups.hashes.astype(object)) >= 0).all()
        for key in keys:
            assert decode_keys(index.keys)[index.find(key)] == key
            assert [keys[row] for row in groups.order].count(key) == keys.count(key)
        assert index.find(12345678) == -1 or 12345678 in keys
        assert index.find("not there") == -1
        for first, last in zip(groups.offsets[:-1], groups.offsets[1:], strict=True):
            assert len({keys[row] for row in groups.order[first:last]}) == 1
            assert (np.diff(groups.order[first:last]) > 0).all()

    def test_different_texts_with_one_hash_stay_apart(self, monkeypatch):
        keys = encode_keys(["a", "b", "a", "c", "b", "a"])
        monkeypatch.setattr("strads.dds._hash_index.hash_keys", lambda keys: np.zeros(len(keys), np.uint64))
        groups = group_keys(keys)
        assert decode_keys(groups.keys).tolist() == ["a", "b", "c"]
        assert groups.order.tolist() == [0, 2, 5, 1, 4, 3]
        assert groups.offsets.tolist() == [0, 3, 5, 6]

    def test_hashes_never_change(self):  # files and clusters rely on them
        assert [int(mix(n)) for n in (0, 1, -1)] == [0, 6238072747940578789, 13029008266876403067]
        assert int(hash_bytes(np.frombuffer(b"spam", np.uint8))) == int(hash_keys(encode_keys(["spam"]))[0])
        assert int(hash_keys(encode_keys(["spam"]))[0]) == 5561317698127063795
        assert _hashing.node_of(hash_keys(np.arange(5)), 3).tolist() == [0, 1, 2, 0, 2]

    @given(keys=st.lists(INTS, min_size=1, max_size=50), nodes=st.integers(1, 64))
    def test_nodes_have_rising_ranges_of_hashes(self, keys, nodes):
        hashes = np.sort(hash_keys(encode_keys(keys)))
        holders = node_of(hashes, nodes)
        assert (np.diff(holders) >= 0).all()
        assert (holders >= 0).all()
        assert (holders < nodes).all()

    def test_the_compiled_lookups_take_the_arrays_of_an_index(self):
        index = dmap({5: 0.5, -7: 1.5}).index
        assert index.keys[find_number(index.keys, index.starts, index.shift, -7)] == -7
        index = dmap({"é": 1, "f": 2}).index
        text = np.frombuffer("é".encode(), np.uint8)
        row = find_text(index.keys.values, index.keys.offsets, index.starts, index.shift, text)
        assert decode_keys(index.keys)[row] == "é"


class TestKeys:
    @pytest.mark.parametrize(
        "keys",
        [
            ["b", "a"],
            np.array(["b", "a"]),
            np.array(["b", "a"], object),
            pa.array(["x", "b", "a"])[1:],
            pa.chunked_array([["b"], ["a"]]),
            pa.chunked_array([[3], [1]]),
            pa.array(["b", "a"], pa.string_view() if hasattr(pa, "string_view") else None),
            [3, 1],
            np.array([3, 1], "u1"),
            np.array([3, 1], object),
            range(3, 0, -2),
            pa.array([3, 1], "int16"),
            {3: 0, 1: 0}.keys(),
        ],
    )
    def test_many_forms_of_keys(self, keys):
        expected = ["b", "a"] if "b" in list(map(str, keys)) else [3, 1]
        assert decode_keys(encode_keys(keys)).tolist() == expected
        assert dmap(keys, [1.0, 2.0]).to_dict() == dict(zip(expected, [1.0, 2.0], strict=True))

    @pytest.mark.slow  # 5 GiB
    def test_texts_of_more_than_2_gib_in_chunks(self):
        chunk = pa.array(["x" * (1 << 20)] * 1100)
        assert encode_keys(pa.chunked_array([chunk, chunk])).offsets[-1] == 2200 << 20

    @pytest.mark.parametrize(
        ("keys", "error", "what"),
        [
            ([1, "a"], ArgumentError, "key 1 .*'a'"),
            (["a", 1], ArgumentError, "key 1"),
            (["a", None], InputError, "key 1"),
            ([1.5], ArgumentError, "key 0"),
            ([True], ArgumentError, "key 0"),
            ([2**63], ArgumentError, "int64"),
            (np.array([2**63], "u8"), ArgumentError, "int64"),
            (np.zeros((2, 2), int), ArgumentError, "one-dimensional"),
            (np.array([0.5]), ArgumentError, "key 0"),
            (pa.array([1, None]), InputError, "key 1"),
            (pa.array([0.5]), ArgumentError, "double"),
        ],
    )
    def test_what_is_no_key_is_named(self, keys, error, what):
        with pytest.raises(error, match=what):
            dmap(keys, np.zeros(len(keys)))


KINDS = pytest.mark.parametrize("key", [lambda n: n, lambda n: f"k{n}"], ids=["int", "str"])


class TestMap:
    @KINDS
    @settings(max_examples=60)
    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["set", "set", "set", "del", "get", "settle", "many", "pop"]), st.integers(0, 9))
        )
    )
    def test_it_does_what_a_dict_does(self, key, steps):
        m, model, versions = dmap(), {}, [0]
        for number, (step, n) in enumerate(steps):
            k = key(n)
            if step == "set":
                m[k] = model[k] = float(number)
            elif step == "del" and k in model:
                del m[k], model[k]
            elif step == "pop":
                assert m.pop(k, None) == model.pop(k, None)
            elif step == "many":
                many = [key(i) for i in range(n)] * 2
                m[many] = np.arange(2.0 * n)
                model.update(zip(many, np.arange(2.0 * n).tolist(), strict=True))
            elif step == "settle":
                versions.append(m.version)
                assert set(m) == set(model)
            assert (k in m, m.get(k)) == (k in model, model.get(k))
            assert len(m) == len(model)
        assert m.to_dict() == model
        assert versions == sorted(versions)
        assert dict(m.items()) == model
        assert [model[k] for k in m] == m.values().tolist()

    @pytest.mark.parametrize(
        ("values", "dtype"),
        [([1.5, 2.5], "f8"), ([[1, 2], [3, 4]], "i8"), (np.array([(1, 2), (3, 4)], POINT), POINT)],
    )
    def test_values_are_numbers_rows_or_records(self, values, dtype):
        m = dmap(["a", "b"], values)
        assert m.dtype == np.dtype(dtype)
        assert m["b"].tolist() == np.asarray(values)[1].tolist()
        assert m[["b", "a", "b"]].tolist() == np.asarray(values)[[1, 0, 1]].tolist()
        m["c"] = m["a"]
        assert m["c"].tolist() == np.asarray(values)[0].tolist()
        assert len(m.table) == 3
        assert m.copy().to_dict() == pickle.loads(pickle.dumps(m)).to_dict() == m.to_dict()
        if dtype is POINT:
            assert m["b"].x == 3
            m["d"] = (7, 8)
            assert m["d"].n == 8

    def test_values_do_not_write_through(self):
        m = dmap({"a": [1.0, 2.0]})
        m["b"] = [3.0, 4.0]
        for k in "ab":
            with pytest.raises(ValueError, match="read-only"):
                m[k][0] = 9
        m["b"] = m["b"] + 1
        assert m.to_dict() == {"a": [1, 2], "b": [4, 5]}

    def test_rows_of_keys(self):
        m = dmap({"a": 1, "b": 2})
        rows = m.rows_of(["b", "x", "a"])
        assert rows[1] == -1
        assert m.table[rows[[0, 2]]].tolist() == [2, 1]
        assert m.rows_of([1, 2]).tolist() == [-1, -1]

    def test_writes_raise_the_version(self):
        m = dmap({1: 1.0})
        versions = [m.version]
        for change in (
            lambda: m.__setitem__(1, 2.0),
            lambda: m.__setitem__(2, 2.0),
            lambda: m.update({1: 3.0, 5: 1.0}),
            lambda: m.__delitem__(2),
            lambda: m.table.__setitem__(0, 1.0),
            m.clear,
        ):
            change()
            versions.append(m.version)
        assert versions == sorted(set(versions))
        assert (len(m), m.to_dict()) == (0, {})

    def test_what_is_missing_is_named(self):
        m = dmap({"a": 1})
        for read in (lambda: m["b"], lambda: m[["a", "b"]], lambda: m.__delitem__("b"), lambda: m.pop("b")):
            with pytest.raises(KeyError, match=r"no key 'b': its 1 keys are texts, for instance 'a'") as caught:
                read()
            assert isinstance(caught.value, strads.UnknownKeyError)
        with pytest.raises(KeyError, match="no key 3"):
            m[3]
        assert 3 not in m
        assert 1.5 not in m
        with pytest.raises(KeyError, match="empty"):
            dmap()[1]

    @pytest.mark.parametrize(
        ("do", "error", "what"),
        [
            (lambda: dmap({"a": 1}).__setitem__(1, 1), ArgumentError, "texts"),
            (lambda: dmap({1: 1}).__setitem__("a", 1), ArgumentError, "whole numbers"),
            (lambda: dmap({1: 1}).__setitem__(2, 0.5), InputError, "dtype='f8'"),
            (lambda: dmap({1: 1}).__setitem__(1, 0.5), InputError, "dtype='f8'"),
            (lambda: dmap([1], np.array([1 << 40]), dtype="i4"), InputError, "1099511627776 does not fit int32"),
            (lambda: dmap({1: 1}, dtype="i1").__setitem__(2, np.int16(256)), InputError, "256 does not fit int8"),
            (lambda: dmap({1: 1}).__setitem__(2, [1, 2]), InputError, "does not fit"),
            (lambda: dmap({1: "x"}), ArgumentError, "strings"),
            (lambda: dmap([1, 2], [1.0]), InputError, "2 keys cannot have 1 values"),
            (lambda: dmap([1, 2], [[1.0], [2.0, 3.0]]), ArgumentError, "one shape"),
            (lambda: dmap(3), ArgumentError, "made of a dict"),
            (lambda: dmap({1: 1})[1.5], ArgumentError, "keys"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, do, error, what):
        with pytest.raises(error, match=what):
            do()

    def test_copies_are_independent(self):
        m = dmap({1: 1.0})
        for other in (copy.copy(m), copy.deepcopy(m), m.copy()):
            other[2] = 2.0
            assert (m.to_dict(), other.to_dict()) == ({1: 1.0}, {1: 1.0, 2: 2.0})

    def test_an_empty_map_learns_from_the_first_value(self):
        m = strads.dmap(dtype="f4")
        m["x"] = [1, 2]
        assert (m.dtype, m.table.shape) == (np.float32, (1, 2))
        assert repr(strads.dmap()) == "a dmap of 0 keys (whole numbers) → float64, 0 B"

    def test_repr_shows_keys_and_values(self):
        text = repr(dmap({f"key {n}": [n, n] for n in range(5)}))
        assert text.startswith("a dmap of 5 keys (texts) → 2 int64, 80 B\n  'key ")
        assert text.endswith("…")


class TestMultimap:
    @settings(max_examples=60)
    @given(keys=FEW)
    def test_it_does_what_a_dict_of_lists_does(self, keys):
        model: dict = {}
        for number, key in enumerate(keys):
            model.setdefault(key, []).append(float(number))
        whole = dmultimap(keys, np.arange(float(len(keys))))
        grown, split = dmultimap(dtype="f8"), len(keys) // 2
        grown.extend(keys[:split], np.arange(float(split)))
        for number, key in enumerate(keys[split:], split):
            grown.add(key, number)
        for m in (whole, grown, dmultimap(model) if model else whole):
            assert m.to_dict() == model
            assert (len(m), m.size) == (len(model), len(keys))
            assert {key: values.tolist() for key, values in m.items()} == model
            assert all(m.count(key) == len(values) and key in m for key, values in model.items())
            values, offsets = m.lookup([*model, *model]) if model else m.lookup([1])
            assert values.tolist() == [x for row in [*model.values(), *model.values()] for x in row]
            assert len(offsets) == max(2 * len(model), 1) + 1
        assert decode_keys(whole.index.keys).tolist() == decode_keys(grown.index.keys).tolist()

    @KINDS
    @settings(max_examples=60)
    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["set", "add", "del", "get", "settle"]), st.integers(0, 4), st.integers(0, 3))
        )
    )
    def test_it_does_what_a_dict_of_lists_does_step_by_step(self, key, steps):
        m, model = dmultimap(dtype="f8"), {}
        for number, (step, n, count) in enumerate(steps):
            k, new = key(n), [number + i / 4 for i in range(count)]
            if step == "set":
                m[k] = new
                model.pop(k, None)
                model |= {k: new} if new else {}
            elif step == "add":
                m.add(k, number)
                model.setdefault(k, []).append(number)
            elif step == "del" and k in model:
                del m[k], model[k]
            elif step == "settle":
                assert len(m) == len(model)
            else:
                assert (k in m, m.count(k)) == (k in model, len(model.get(k, [])))
                assert list(m.get(k, [])) == model.get(k, [])
        assert m.to_dict() == model

    def test_keys_are_removed_together(self, monkeypatch):
        replace, replaced = dmultimap._replace, []
        m = dmultimap(np.arange(50) % 9, np.arange(50.0))
        monkeypatch.setattr(dmultimap, "_replace", lambda *new: (replaced.append(1), replace(*new)))
        for key in range(8):
            if m.count(key) and key in m and len(m[key]):
                del m[key]
        assert m.to_dict() == {8: [8, 17, 26, 35, 44]}
        assert len(replaced) == 1

    def test_values_are_rows_or_records_too(self):
        values = np.array([(1, 2), (3, 4), (5, 6)], POINT)
        m = dmultimap(["b", "a", "b"], values)
        assert m["b"].x.tolist() == [1, 5]
        assert m.offsets[-1] == 3
        assert m.lookup(["a", "z", "b"])[0]["n"].tolist() == [4, 2, 6]
        rows = dmultimap([1, 2, 1], [[1, 2], [3, 4], [5, 6]])
        assert rows[1].tolist() == [[1, 2], [5, 6]]
        rows.add(3, [7, 8])
        assert rows.lookup([3, 9])[0].tolist() == [[7, 8]]
        assert pickle.loads(pickle.dumps(rows)).to_dict() == rows.copy().to_dict() == rows.to_dict()

    def test_the_table_of_numbers_has_a_row_for_each_key(self):
        m = dmultimap([3, 5, 3], [0.5, 1.5, 2.5])
        assert m.table.is_ragged
        assert m.table[m.rows_of([3])[0]].tolist() == [0.5, 2.5]

    def test_keys_are_replaced_and_removed(self):
        m = dmultimap({"a": [1, 2], "b": [3]})
        m["a"] = [7, 8, 9]
        m["c"] = [4]
        assert m.to_dict() == {"a": [7, 8, 9], "b": [3], "c": [4]}
        del m["a"]
        assert m.to_dict() == {"b": [3], "c": [4]}
        assert (m.count("a"), m.get("a")) == (0, None)
        with pytest.raises(KeyError, match="no key 'a'"):
            m["a"]
        with pytest.raises(KeyError, match="no key 'a'"):
            del m["a"]
        m["b"] = []
        assert "b" not in m

    def test_copies_are_independent(self):
        m = dmultimap({1: [1.0]})
        for other in (copy.copy(m), copy.deepcopy(m), m.copy()):
            other.add(1, 2.0)
            assert (m.to_dict(), other.to_dict()) == ({1: [1.0]}, {1: [1.0, 2.0]})

    @pytest.mark.parametrize(
        ("do", "error", "what"),
        [
            (lambda: dmultimap({"a": 1}), ArgumentError, "key → values"),
            (lambda: dmultimap({"a": [1], "b": [[1, 2]]}), InputError, "one shape"),
            (lambda: dmultimap([1, 2], [1]), InputError, "2 keys"),
            (lambda: dmultimap([1], [1]).add("a", 1), ArgumentError, "whole numbers"),
            (lambda: dmultimap([1], [1]).add(1, 0.5), InputError, "dtype='f8'"),
            (lambda: dmultimap([1], np.array([1 << 40]), dtype="i4"), InputError, "does not fit int32"),
            (lambda: dmultimap([1], [1]).__setitem__(2, 1), ArgumentError, "a list or an array, not 1"),
            (lambda: dmultimap([1], [1]).__setitem__(2, np.array(1)), ArgumentError, "a list or an array"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, do, error, what):
        with pytest.raises(error, match=what):
            do()

    def test_repr_shows_keys_and_values(self):
        text = repr(dmultimap([1, 2, 1], [1, 2, 3]))
        assert text.startswith("a dmultimap of 2 keys (whole numbers) → 3 × int64")
        assert "1: [1 3]" in text


@pytest.mark.nodes
def test_the_values_of_a_map_lie_on_nodes(runtime, nodes):
    m, table = dmap(range(20), np.arange(40.0).reshape(20, 2)), dvector(np.zeros(3))
    many = dmultimap(np.arange(20) % 7, np.arange(20.0))
    for tables in (m.table, many.table, table):
        tables.distribute(runtime.cluster)
        tables.written_on_nodes()
    assert m.is_distributed
    assert m[7].tolist() == [14, 15]
    m[7] = 1.0
    assert m[[7, 3]].tolist() == [[1, 1], [6, 7]]
    assert many[3].tolist() == [3, 10, 17]
    assert many.lookup([6, 8, 3])[0].tolist() == [6, 13, 3, 10, 17]
    assert f"on {nodes} node" in repr(m)
    assert not m.table._content.is_home
    m[100] = [5, 5]
    assert m.to_dict() == {**{n: [2.0 * n, 2.0 * n + 1] for n in range(20)}, 7: [1, 1], 100: [5, 5]}
