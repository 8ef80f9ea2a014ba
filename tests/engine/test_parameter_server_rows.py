"""Rows of a parameter server's table, as they are kept."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from strads.engine.ps.sparse_rows import SparseRows
from strads.engine.ps.table_format import TableFormat
from strads.ps._values import checked_values

ROWS, COLUMNS = 30, 60


@given(seed=st.integers(0, 2**32))
def test_sparse_rows_grow_shrink_and_move_without_touching_each_other(seed):
    generator = np.random.default_rng(seed)
    format = TableFormat(ROWS, COLUMNS, np.float64, sparse=True)
    kept, expected = SparseRows(ROWS, np.float64), np.zeros((ROWS, COLUMNS))
    for _ in range(40):
        places = generator.permutation(ROWS)[: generator.integers(1, ROWS)]
        density = generator.choice((0.02, 0.2))
        values = sparse.random_array((len(places), COLUMNS), density=density, rng=generator, format="csr").toarray()
        content = checked_values(values, len(places), format)
        match generator.integers(4):
            case 0:
                kept.write(places, content)
                expected[places] = values
            case 1:
                kept.clear(places[:5])
                expected[places[:5]] = 0
            case _:
                kept.add(places, content)
                expected[places] += values
        found = kept.read(np.arange(ROWS))
        dense = sparse.csr_array((found.values, found.columns, found.starts), shape=expected.shape).toarray()
        np.testing.assert_array_equal(dense, expected)
        assert kept.nbytes >= 12 * len(found.columns)
    kept.clear(np.arange(ROWS))
    assert kept.nbytes == 0
