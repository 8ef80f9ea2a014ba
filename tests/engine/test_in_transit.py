"""What a worker may send under VAP: parts of updates within the bound, which together are the update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.engine.ps.in_transit import InTransit


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@given(deltas=st.lists(st.integers(-50, 50), min_size=1, max_size=6), bound=st.floats(1.0, 20.0))
def test_the_parts_of_an_update_are_within_the_bound_and_add_up_to_it(dtype, deltas, bound):
    wanted = np.array(deltas, dtype)[:, None]
    rows, taken = np.arange(len(wanted)), np.zeros_like(wanted)
    rest = wanted
    while rest is not None:
        transit = InTransit(len(wanted), 1, dtype)  # all that was sent before can be seen
        part, rest = transit.within(rows, rest, bound)
        assert part.dtype == dtype
        assert np.abs(part).max() <= bound
        taken += part
    np.testing.assert_allclose(taken, wanted, atol=1e-9)
