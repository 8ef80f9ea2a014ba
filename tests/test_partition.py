"""Parts of a range, and what lies in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.partition import distinct, joined_ranges, offsets_of, places_of

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@pytest.mark.parametrize("lengths", [[2, 0, 3], (2, 0, 3), np.array([2, 0, 3], np.int32), np.array([2.0, 0.0, 3.0])])
def test_offsets_are_of_64_bits(lengths):
    offsets = offsets_of(lengths)
    assert (offsets.tolist(), offsets.dtype) == ([0, 2, 2, 5], np.int64)


def test_of_nothing():
    assert offsets_of([]).tolist() == [0]
    none = np.empty(0, np.int64)
    assert joined_ranges(none, none).tolist() == places_of(offsets_of([]), none).tolist() == []


@given(LENGTHS, st.data())
def test_places_of_some_parts(lengths, data):
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=8))
    offsets = offsets_of(lengths)
    expected = [place for part in chosen for place in range(offsets[part], offsets[part + 1])]
    assert places_of(offsets, np.array(chosen, np.int64)).tolist() == expected


@given(st.lists(st.integers(-3, 3)), st.sampled_from([np.int64, np.int32, np.uint8]))
def test_distinct_numbers(numbers, dtype):
    given = np.array(numbers).astype(dtype)
    np.testing.assert_array_equal(distinct(given), np.unique(given), strict=True)
