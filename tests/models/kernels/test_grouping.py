"""Columns grouped by key, against a stable sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strads.models.kernels.grouping import group_by_key


@given(st.lists(st.integers(0, 5)))
def test_grouped_by_key_in_their_order(given):
    keys = np.array(given, np.int32)
    values, others = np.arange(len(keys), dtype=np.int32), np.arange(len(keys), dtype=np.float32) / 2
    offsets, grouped, grouped_others = np.zeros(8, np.int64), np.empty_like(values), np.empty_like(others)
    group_by_key(keys, values, others, offsets, grouped, grouped_others)
    order = np.argsort(keys, kind="stable")
    assert offsets.tolist() == [0, *np.cumsum(np.bincount(keys, minlength=7))]
    assert (grouped == values[order]).all()
    assert (grouped_others == others[order]).all()
    group_by_key(keys, values, None, again := np.zeros(8, np.int64), alone := np.empty_like(values), None)
    assert (again.tolist(), alone.tolist()) == (offsets.tolist(), grouped.tolist())
