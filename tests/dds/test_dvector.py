import numpy as np
import pyarrow as pa
import pytest

from strads.dds import RaggedArray, dvector, from_arrow, from_numpy
from strads.dds.arguments import integer_range
from strads.errors import ArgumentError, InputError, StradsError

RATING = np.dtype([("user", "i4"), ("good", "?"), ("score", "f8")], align=True)


def ratings() -> dvector:
    return dvector(np.array([(1, True, 2.5), (3, False, 4.5), (5, True, 6.5)], RATING))


class TestConstruction:
    @pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f4", "f8", "c16"])
    def test_keeps_numeric_dtypes(self, dtype):
        v = dvector(np.ones((3, 2), dtype))
        assert (v.dtype, v.shape, v.ndim, len(v), v.nbytes) == (
            np.dtype(dtype),
            (3, 2),
            2,
            3,
            6 * np.dtype(dtype).itemsize,
        )

    def test_keeps_padding_of_aligned_records(self):
        v = ratings()
        assert v.dtype == RATING
        assert v.dtype.isalignedstruct
        assert v.dtype.itemsize == 16

    def test_record_arrays_become_plain(self):
        v = dvector(np.rec.array(np.zeros(2, RATING)))
        assert type(v.storage) is np.ndarray
        assert v.dtype.type is np.void

    def test_foreign_byte_order_becomes_native(self):
        v = dvector(np.array([1, 2], ">i4"))
        assert v.dtype == np.dtype("i4")
        assert v.dtype.isnative
        assert v.to_list() == [1, 2]

    def test_lists_make_rows_and_unequal_lists_make_ragged_rows(self):
        assert dvector([1, 2, 3], dtype="f4").dtype == np.float32
        assert dvector([[1, 2], [3, 4]]).shape == (2, 2)
        ragged = dvector([[1, 2], [], [3]], dtype="i4")
        assert ragged.is_ragged
        assert ragged.shape == (3,)
        assert ragged.to_list() == [[1, 2], [], [3]]
        assert ragged.dtype == np.int32

    def test_a_copy_is_independent_of_the_array_and_of_another_dvector(self):
        array = np.arange(3)
        v = dvector(array)
        w = dvector(v, copy=False)
        array[0] = 7
        v[1] = 8
        assert w.to_list() == [0, 1, 2]
        assert v.copy().to_list() == [0, 8, 2]

    @pytest.mark.parametrize(
        ("data", "advice"),
        [
            (np.array(["a"]), "np.unique"),
            (["a", "b"], "np.unique"),
            (np.array([None]), "array of numbers"),
            ([{"a": 1}], "array of numbers"),
            (np.array(["2020"], "M8[D]"), "astype"),
            (np.array(3.0), "single value"),
            (iter([1]), r"list\(…\)"),
            ([[1, 2], ["a"]], "ragged|np.unique"),
            ([[1, 2], 3], "row 1"),
            (np.zeros(2, [("name", "U3")]), "field 'name'"),
            (np.zeros(2, [("point", [("x", "f4")])]), "field 'point'"),
            (np.ma.masked_array([1, 2], [True, False]), "filled"),
            (pa.array([1]), "from_arrow"),
        ],
    )
    def test_refuses_what_is_not_numbers(self, data, advice):
        with pytest.raises(ArgumentError, match=advice):
            dvector(data)

    def test_from_numpy_refuses_lists(self):
        with pytest.raises(ArgumentError, match="list"):
            from_numpy([1, 2])
        assert from_numpy(np.arange(2)).to_list() == [0, 1]


class TestAdoption:
    def test_shares_memory_and_freezes_the_callers_array(self):
        array = np.zeros((4, 2))
        v = dvector(array, copy=False)
        assert np.shares_memory(v.storage, array)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        v[0] = 2.0
        assert array[0, 1] == 2

    def test_freezes_ragged_values(self):
        ragged = RaggedArray.from_rows([[1, 2], [3]])
        v = dvector(ragged, copy=False)
        assert v.storage.values.flags.writeable
        assert np.shares_memory(v.storage.values, ragged.values)
        assert not ragged.values.flags.writeable

    @pytest.mark.parametrize("kind", ["read-only", "transposed", "strided", "other dtype", "swapped"])
    def test_copies_what_cannot_be_adopted(self, kind):
        base = np.arange(6.0).reshape(2, 3)
        array = {
            "transposed": base.T,
            "strided": base[:, ::2],
            "swapped": base.astype(">f8"),
        }.get(kind, base)
        if kind == "read-only":
            array.flags.writeable = False
        v = dvector(array, dtype="f4" if kind == "other dtype" else None, copy=False)
        assert not np.shares_memory(v.storage, array)
        assert v.storage.flags.c_contiguous
        assert v.storage.flags.writeable
        assert array.flags.writeable == (kind != "read-only")
        np.testing.assert_array_equal(v, array)


class TestCreation:
    def test_zeros_and_full(self):
        assert dvector.zeros(3).dtype == np.float32
        assert dvector.zeros((2, 3), "i8").to_list() == [[0] * 3] * 2
        assert dvector.full(2, 7).to_list() == [7, 7]
        assert dvector.full((2, 1), 0.5, "f4").dtype == np.float32
        assert dvector.zeros(2, RATING)[1].score == 0

    @pytest.mark.parametrize("create", [dvector.uniform, dvector.normal])
    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_the_seed_decides_the_bits(self, create, dtype):
        same = [create((50, 3), seed=7, dtype=dtype).storage.tobytes() for _ in range(2)]
        assert same[0] == same[1]
        assert create((50, 3), seed=8, dtype=dtype).storage.tobytes() != same[0]
        assert create((50, 3), dtype=dtype).storage.tobytes() != create((50, 3), dtype=dtype).storage.tobytes()

    def test_uniform_covers_its_interval_and_never_its_end(self):
        values = dvector.uniform(20_000, low=1.0, high=1.0 + 2**-20, seed=0).storage
        assert values.min() == 1.0
        assert values.max() < np.float32(1.0 + 2**-20)
        wide = dvector.uniform(20_000, low=-2, high=6, seed=0).storage
        assert abs(wide.mean() - 2) < 0.1
        assert np.unique(dvector.uniform(20_000, high=np.finfo("f4").max, seed=0).storage).size > 1

    def test_normal_has_its_moments(self):
        values = dvector.normal(50_000, mean=3.0, std=0.5, seed=1).storage
        assert abs(values.mean() - 3) < 0.01
        assert abs(values.std() - 0.5) < 0.01

    @pytest.mark.parametrize(
        "create",
        [
            lambda: dvector.uniform(3, low=1, high=0),
            lambda: dvector.uniform(3, high=np.nan),
            lambda: dvector.uniform(3, -3e38, 3e38),
            lambda: dvector.uniform(3, high=1e39),
            lambda: dvector.uniform(3, -1e308, 1e308, dtype="f8"),
            lambda: dvector.uniform(3, dtype="i4"),
            lambda: dvector.normal(3, mean=1e39),
            lambda: dvector.normal(3, std=np.inf, dtype="f8"),
            lambda: dvector.normal(3, std=-1),
            lambda: dvector.normal(3, seed=-1),
            lambda: dvector.zeros(-1),
            lambda: dvector.zeros(()),
            lambda: dvector.zeros(2.5),
            lambda: dvector.zeros(2, "U3"),
            lambda: dvector.full(2, "a"),
        ],
    )
    def test_refuses_nonsense(self, create):
        with pytest.raises(ArgumentError):
            create()


class TestReading:
    def test_rows_count_from_either_end(self):
        v = dvector([[1, 2], [3, 4], [5, 6]])
        assert v[-1].tolist() == [5, 6]
        assert v[np.int64(0)].tolist() == [1, 2]
        assert v[0:3:2].tolist() == [[1, 2], [5, 6]]
        assert v[[2, 0]].tolist() == [[5, 6], [1, 2]]
        assert v[np.array([False, True, False])].tolist() == [[3, 4]]
        assert v[1, 0] == 3
        assert v[[]].shape == (0, 2)

    def test_records_have_fields(self):
        v = ratings()
        assert v[1].user == 3
        assert v[-1].good
        assert v[0:2][1].score == 4.5
        assert v["user"].tolist() == [1, 3, 5]
        assert [r.score for r in v] == [2.5, 4.5, 6.5]
        with pytest.raises(ArgumentError, match="the fields are user, good, score"):
            v["item"]

    @pytest.mark.parametrize("index", [0, slice(0, 2)])
    def test_nothing_writes_through(self, index):
        for v in (dvector([[1, 2], [3, 4]]), dvector([[1, 2], [3]]), ratings()):
            got = v[index]
            before = v.to_list()
            with pytest.raises(ValueError, match="read-only"):
                (got.values if isinstance(got, RaggedArray) else got)[0] = 0
            assert v.to_list() == before

    def test_a_record_does_not_write_through_its_attributes(self):
        v = ratings()
        with pytest.raises(ValueError, match="read-only"):
            v[0].user = 9

    @pytest.mark.parametrize("v", [dvector([1, 2, 3]), dvector([[1], [2, 3], []]), ratings()])
    @pytest.mark.parametrize("index", [3, -4, [0, 3], [True, False]])
    def test_rows_that_do_not_exist_are_named(self, v, index):
        with pytest.raises(IndexError, match=r"3 rows") as caught:
            v[index]
        assert isinstance(caught.value, StradsError)
        if isinstance(index, int):
            assert str(index) in str(caught.value)

    def test_other_indices_are_refused(self):
        with pytest.raises(ArgumentError, match="integers"):
            dvector([1, 2])[1.0]
        with pytest.raises(ArgumentError, match="row number"):
            dvector([1, 2])[True]
        with pytest.raises(IndexError, match="too many indices"):
            dvector([1, 2])[0, 0]

    def test_ragged_rows_by_number_slice_and_mask(self):
        v = dvector([[1], [2, 3], [], [4]])
        assert v[1].tolist() == [2, 3]
        assert v[1:3].to_list() == [[2, 3], []]
        assert v[::-1].to_list() == [[4], [], [2, 3], [1]]
        assert v[[3, -3]].to_list() == [[4], [2, 3]]
        assert v[np.array([True, False, False, True])].to_list() == [[1], [4]]
        assert [row.tolist() for row in v] == [[1], [2, 3], [], [4]]

    def test_conversions(self):
        v = dvector([[1.0, 2.0]])
        view = v.to_numpy()
        assert np.shares_memory(view, v.storage)
        assert not view.flags.writeable
        assert v.to_numpy(copy=True).flags.writeable
        assert not np.shares_memory(np.array(v), v.storage)
        assert np.asarray(v, dtype="f4").dtype == np.float32
        with pytest.raises(ValueError, match="copy"):
            v.__array__(np.dtype("f4"), copy=False)
        ragged = dvector([[1], [2, 3]])
        assert [row.tolist() for row in ragged.to_numpy(copy=True)] == [[1], [2, 3]]
        with pytest.raises(ArgumentError, match="to_numpy"):
            np.asarray(ragged)
        assert ratings().to_list()[0] == (1, True, 2.5)

    @pytest.mark.parametrize(
        ("v", "parts"),
        [
            (dvector.zeros((5, 2)), ["5 rows", "2 float32", "40 B", "[0] [0. 0.]", "…"]),
            (ratings(), ["3 rows of records (user: int32, good: bool, score: float64)", "(1, True, 2.5)"]),
            (dvector([[1], [2, 3]]), ["2 rows of different lengths (3 × int64)", "[1] [2 3]"]),
            (dvector.zeros(1 << 20), ["1,048,576 rows of float32, 4.0 MiB"]),
        ],
    )
    def test_repr_says_kind_size_and_first_rows(self, v, parts):
        for part in parts:
            assert part in repr(v)


class TestWriting:
    def test_each_write_raises_the_version(self):
        v = dvector([1, 2, 3])
        versions = [v.version]
        for index, value in ((0, 5), (slice(1, 3), 6), ([0, 2], [7, 8]), (np.array([False, True, False]), 9)):
            v[index] = value
            versions.append(v.version)
        v.mark_written()
        versions.append(v.version)
        assert v.to_list() == [7, 9, 8]
        assert versions == sorted(set(versions))

    def test_reading_keeps_the_version(self):
        v = ratings()
        _ = v[0], v[:2], v.to_numpy(), v.storage, repr(v), list(v)
        assert v.version == 0

    def test_records_are_written_by_row_and_by_field(self):
        v = ratings()
        v[-1] = (9, False, 0.5)
        v["score"] = 1.0
        assert v.to_list() == [(1, True, 1.0), (3, False, 1.0), (9, False, 1.0)]

    def test_ragged_rows_keep_their_lengths(self):
        v = dvector([[1], [2, 3], []])
        v[1] = [7, 8]
        v[0:2] = [[4], [5, 6]]
        assert v.to_list() == [[4], [5, 6], []]
        version = v.version
        with pytest.raises(InputError, match="length 2"):
            v[0:2] = [[0], [1, 2, 3]]
        with pytest.raises(InputError, match="1 rows"):
            v[0:2] = [[0]]
        assert v.to_list() == [[4], [5, 6], []]
        assert v.version == version

    def test_what_does_not_fit_is_refused(self):
        v = dvector([[1.0, 2.0]])
        for value in ([1, 2, 3], "a", None):
            with pytest.raises((InputError, ArgumentError)):
                v[0] = value if value is not None else object()
        with pytest.raises(IndexError, match=r"index 1 .* 1 rows"):
            v[1] = 0
        assert (v.to_list(), v.version) == ([[1.0, 2.0]], 0)


class TestArrow:
    def test_tables_become_aligned_records(self):
        table = pa.table({"user": pa.array([1, 2], "int32"), "good": [True, False], "score": [0.5, 1.5]})
        for data in (table, table.to_batches()[0], pa.concat_tables([table.slice(0, 1), table.slice(1)])):
            v = from_arrow(data)
            assert v.dtype == RATING
            assert v.dtype.isalignedstruct
            assert v.to_list() == [(1, True, 0.5), (2, False, 1.5)]

    def test_arrays_become_scalars_rows_and_ragged_rows(self):
        assert from_arrow(pa.array([1, 2], "int8")).dtype == np.int8
        assert from_arrow(pa.chunked_array([[1.0], [2.0, 3.0]])).to_list() == [1.0, 2.0, 3.0]
        rows = pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))
        assert from_arrow(rows[1:]).to_list() == [[3, 4], [5, 6]]
        assert from_arrow(rows).shape == (3, 2)
        for kind in (pa.list_(pa.int32()), pa.large_list(pa.int32())):
            ragged = from_arrow(pa.chunked_array([pa.array([[9], [1, 2], []], kind)[1:], pa.array([[3]], kind)]))
            assert ragged.to_list() == [[1, 2], [], [3]]
            assert ragged.dtype == np.int32

    def test_the_result_is_a_writeable_copy(self):
        array = pa.array([1, 2])
        v = from_arrow(array)
        v[0] = 5
        assert array.to_pylist() == [1, 2]

    @pytest.mark.parametrize(
        ("data", "where"),
        [
            (pa.table({"a": [1, 2], "b": [1.0, None]}), "column 'b' .* row 1"),
            (pa.chunked_array([[1], [2, None]]), "row 2"),
            (pa.array([[1], None]), "row 1"),
            (pa.array([[1], [], [2, None]]), "row 2"),
        ],
    )
    def test_nulls_are_named(self, data, where):
        with pytest.raises(InputError, match=where):
            from_arrow(data)

    @pytest.mark.parametrize(
        "data", [pa.table({"a": ["x"]}), pa.array(["x"]), pa.array([[["x"]]]), [1, 2], pa.table({})]
    )
    def test_other_types_are_refused(self, data):
        with pytest.raises(ArgumentError):
            from_arrow(data)


def test_range_of_integers_is_that_of_what_a_table_holds_now():
    table = dvector([3, 9, 2])
    assert integer_range(table) == (2, 9)
    table[1] = 4
    assert integer_range(table) == (2, 4)
    table.storage[0] = 7
    table.mark_written()
    assert integer_range(table) == (2, 7)
    records = dvector(np.array([(1, 2.5, [4, -1])], [("n", "u1"), ("x", "f4"), ("v", "i2", (2,))]))
    assert [integer_range(records, name) for name in ("n", "x", "v")] == [(1, 1), None, (-1, 4)]
    assert integer_range(dvector([[5, 6], [1]])) == (1, 6)
    assert integer_range(dvector(np.empty((0, 3), np.int64))) == (0, -1)
    assert integer_range(dvector([0.5])) is None
