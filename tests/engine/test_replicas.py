"""Replicas of relaxed tables."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.engine.plans.replicas import Replicas


@given(
    lanes=st.integers(1, 4),
    shape=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    dtype=st.sampled_from(["f4", "f8", "i1"]),
)
def test_lanes_share_no_cache_line(lanes: int, shape: list[int], dtype: str) -> None:
    table = np.ones(shape, dtype)
    data, rows = Replicas(table, lanes).storage
    assert data.flags.c_contiguous  # what compiled code takes a lane of
    assert rows == len(table)
    assert data[:, :rows].shape == (lanes, *table.shape)
    ends = [(lane.ctypes.data, lane.ctypes.data + lane.nbytes) for lane in (data[i][:rows] for i in range(lanes))]
    assert table.size == 0 or all(low - high >= 128 for (_, high), (low, _) in pairwise(ends))


@pytest.mark.parametrize("rows", [1, 5, 300])
def test_changes_of_all_lanes_are_summed(rows: int) -> None:
    table = np.arange(rows * 2.0).reshape(rows, 2)
    replicas, before = Replicas(table, 3), table.copy()
    for lane, change in enumerate((1.0, 10.0, 100.0)):
        replicas.storage.data[lane][: replicas.storage.rows] += change
    replicas.synchronize()
    assert np.array_equal(table, before + 111)
    assert all(np.array_equal(replicas.storage.data[lane][:rows], table) for lane in range(3))
