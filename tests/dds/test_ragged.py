import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.dds import RaggedArray, dvector
from strads.dds import ragged as ragged_rows
from strads.errors import ArgumentError

ROWS = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=20)


@given(ROWS)
def test_rows_go_in_and_come_out(rows):
    ragged = RaggedArray.from_rows(iter(rows), dtype="i8")
    assert len(ragged) == len(rows)
    assert ragged.to_list() == rows
    assert [row.tolist() for row in ragged] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert dvector(ragged).to_list() == rows


@given(ROWS, st.slices(20))
def test_slices_are_those_of_a_list(rows, part):
    sliced = RaggedArray.from_rows(rows, dtype="i8")[part]
    assert isinstance(sliced, RaggedArray)
    assert sliced.to_list() == rows[part]


@given(ROWS.filter(bool), st.data())
def test_take_gives_rows_in_the_order_asked(rows, data):
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    taken = RaggedArray.from_rows(rows, dtype="i8").take(np.array(wanted, np.int64))
    assert taken.to_list() == [rows[i] for i in wanted]


def test_a_row_is_a_view():
    ragged = RaggedArray.from_rows([[1, 2], [3]])
    ragged[-1][0] = 7
    assert ragged.to_list() == [[1, 2], [7]]
    assert np.shares_memory(ragged[0:1].values, ragged.values)


def test_dtypes_are_promoted_over_all_batches(monkeypatch):
    monkeypatch.setattr(ragged_rows, "_ROWS_AT_A_TIME", 2)
    ragged = RaggedArray.from_rows([[1], [2], [], [0.5], []])
    assert ragged.dtype == np.float64
    assert ragged.to_list() == [[1], [2], [], [0.5], []]
    assert RaggedArray.from_rows([np.ones(2, "f4"), np.ones(1, "f4")]).dtype == np.float32


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([[1], "ab"], "row 1"),
        ([[1], [2], 3], "row 2"),
        ([[1], ["x"]], "row 1"),
        ([[1], [[2]]], "row 1"),
        ([[1], [None]], "row 1"),
    ],
)
def test_rows_that_are_no_numbers_are_named(rows, where):
    with pytest.raises(ArgumentError, match=where):
        RaggedArray.from_rows(rows)


@pytest.mark.parametrize(
    ("values", "offsets"),
    [
        (np.arange(3), np.array([0, 2])),
        (np.arange(3), np.array([1, 3])),
        (np.arange(3), np.array([0, 2, 1, 3])),
        (np.arange(3), np.array([0, 3], "i4")),
        (np.arange(3), np.array([], "i8")),
        (np.zeros((3, 1)), np.array([0, 3])),
        (np.array(["a"]), np.array([0, 1])),
        ([1, 2], np.array([0, 2])),
    ],
)
def test_arrays_that_do_not_fit_are_refused(values, offsets):
    with pytest.raises(ArgumentError):
        RaggedArray(values, offsets)
