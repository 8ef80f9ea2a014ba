"""Samples of the rows of a design, from which scheduler instances compute correlations (thesis §5.1.2)."""

import uuid
import weakref
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from strads.models.kernels.columns import Columns, DenseColumns, matrix_of, sparse_columns
from strads.partition import even_bounds
from strads.schedule.dynamic.dependencies import Dependencies, dense_dependencies, sparse_dependencies

_DENSE_ROWS, _SPARSE_ROWS = 512, 8192  # rows of a sample; the error of a correlation is about 1 / √rows
_here: weakref.WeakValueDictionary[str, "ColumnSample"] = weakref.WeakValueDictionary()


@dataclass(frozen=True, eq=False)
class ColumnSample:
    """All p columns, restricted to a sample of the rows.

    Attributes
    ----------
    columns, rows
        Columns, of shape (rows, p) if dense, and the number of rows in the sample.
    of_rows
        Total number of rows.
    centre
        Whether correlations are those of the centred columns.
    name
        If it need not leave this process: the key by which it is found instead of being copied. Otherwise empty.
    """

    columns: Columns
    rows: int
    of_rows: int
    centre: bool
    name: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        if self.name:
            return _find, (self.name,)
        return ColumnSample, (self.columns, self.rows, self.of_rows, self.centre)

    def dependencies(self, parameters: range, capacity: int) -> Dependencies:
        """Return the dependencies of some of the columns; a parameter beyond the last column may be an intercept."""
        first, last = parameters.start, parameters.stop
        if isinstance(self.columns, DenseColumns):
            values = self.columns.values[:, first:last]
            return dense_dependencies(values, capacity, centre=self.centre, all_rows=self.of_rows)
        indptr = self.columns.indptr[first : last + 1]
        return sparse_dependencies(
            self.columns.values, self.columns.rows, indptr, self.rows, capacity, centre=self.centre
        )


def _find(name: str) -> ColumnSample:
    return _here[name]


def sample_columns(columns: Columns, rows: int, *, centre: bool, local: bool) -> ColumnSample:
    """Take a sample of the rows, evenly spaced.

    Parameters
    ----------
    columns
        Columns of a design.
    rows
        Its number of rows.
    centre
        Whether there is an intercept.
    local
        Whether it stays in this process: then it is not a copy, and sparse columns keep all their rows.
    """
    if isinstance(columns, DenseColumns):
        values: NDArray[Any] = columns.values[:: -(-rows // _DENSE_ROWS)]
        taken: Columns = DenseColumns(values if local else np.asfortranarray(values, np.float32))
        count = len(values)
    elif local or rows <= _SPARSE_ROWS:
        taken, count = columns, rows
    else:
        step = -(-rows // _SPARSE_ROWS)
        chosen = matrix_of(columns, rows).tocsr()[::step].tocsc()
        taken, count = sparse_columns(chosen), chosen.shape[0]
    sample = ColumnSample(taken, count, rows, centre, uuid.uuid4().hex if local else "")
    if local:
        _here[sample.name] = sample
    return sample


def cut_rows(columns: Columns, rows: int, parts: int) -> list[Columns]:
    """Cut columns into parts of consecutive rows; a single part is not copied."""
    if parts == 1:
        return [columns]
    bounds = even_bounds(rows, parts)
    pairs = list(pairwise(bounds))
    if isinstance(columns, DenseColumns):
        return [DenseColumns(np.asfortranarray(columns.values[first:last])) for first, last in pairs]
    by_rows = matrix_of(columns, rows).tocsr()
    cut = [by_rows[first:last].tocsc() for first, last in pairs]
    return [sparse_columns(part) for part in cut]


def largest_entries(columns: Columns, rows: int) -> NDArray[np.float64]:
    """Return max_i |x_ij| of each column, of shape (columns,)."""
    X = columns.values if isinstance(columns, DenseColumns) else matrix_of(columns, rows)
    ends = (each.toarray().ravel() if sp.issparse(each) else each for each in (X.max(axis=0), -X.min(axis=0)))
    return np.maximum(*ends).astype(np.float64)
