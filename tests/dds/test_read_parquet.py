import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strads.dds import _parquet, read_parquet
from strads.errors import InputError


@pytest.fixture
def save(tmp_path):
    def write(**columns):
        path = tmp_path / "ratings.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


def test_all_numeric_columns_in_their_dtypes(save):
    v = read_parquet(save(user=pa.array([1, 2], "int16"), name=["a", "b"], good=[True, False], score=[0.5, 1.5]))
    assert v.dtype == np.dtype([("user", "i2"), ("good", "?"), ("score", "f8")], align=True)
    assert v.to_list() == [(1, True, 0.5), (2, False, 1.5)]


def test_a_schema_chooses_orders_and_casts(save, monkeypatch):
    monkeypatch.setattr(_parquet, "_ROWS_AT_A_TIME", 2)
    path = save(a=[1.0, 2.0, 3.0], b=[4, 5, 6], c=[True, False, True])
    v = read_parquet(path, {"b": "f4", "a": "u1", "c": "i4"})
    assert v.dtype == np.dtype([("b", "f4"), ("a", "u1"), ("c", "i4")], align=True)
    assert v.to_list() == [(4, 1, 1), (5, 2, 0), (6, 3, 1)]


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        ([1, 2, None], "i8", r"null\) in row 2"),
        ([1.0, float("nan"), 2.0], "f8", "nan in row 1"),
        ([1.0, 2.0, float("inf")], None, "inf in row 2"),
        ([1.0, 2.0, 1e39], "f4", "row 2 .* float32"),
        ([1.0, 2.0, 2.5], "i4", "2.5 in row 2"),
        ([1, 2, -1], "u4", "-1 in row 2"),
        ([1, 2, 2**31], "i4", "row 2"),
        ([0.0, 1.0, 2.0**63], "i8", "row 2"),
        ([0, 1, 2], "?", "row 2"),
    ],
)
def test_values_that_cannot_be_used_are_named(save, monkeypatch, values, dtype, message):
    monkeypatch.setattr(_parquet, "_ROWS_AT_A_TIME", 1)
    with pytest.raises(InputError, match=rf"ratings\.parquet: column 'x' has .*{message}"):
        read_parquet(save(x=values), None if dtype is None else {"x": dtype})


def test_files_that_cannot_be_used(save, tmp_path):
    path = save(name=["a"], x=[1])
    with pytest.raises(InputError, match="no column 'y'; its columns are 'name', 'x'"):
        read_parquet(path, {"y": "i4"})
    with pytest.raises(InputError, match="column 'name' is of type string"):
        read_parquet(path, {"name": "i4"})
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], ["x", "x"]), path)
    for schema in (None, {"x": "i4"}):
        with pytest.raises(InputError, match="two columns 'x'; its columns are 'x', 'x'"):
            read_parquet(path, schema)
    with pytest.raises(InputError, match="no numeric column"):
        read_parquet(save(name=["a"]))
    with pytest.raises(InputError, match="no rows"):
        read_parquet(save(x=pa.array([], "int32")))
    (tmp_path / "text").write_text("1,2,3\n" * 10)
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_parquet(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "nowhere")
