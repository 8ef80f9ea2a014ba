"""Access records of parts of a loop: concatenated from several nodes, or selected by task."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape, UniformRecords


def concatenated(parts: Sequence[AccessRecords]) -> AccessRecords:
    """Concatenate the records of consecutive parts of one loop."""
    filled = [part for part in parts if part.tasks > 0] or list(parts[:1])
    first = filled[0]
    if len(filled) == 1:
        return first
    uniform = [part for part in filled if isinstance(part, UniformRecords)]
    if len(uniform) == len(filled) and len({(part.access_tables, part.access_writes) for part in uniform}) == 1:
        rows = np.concatenate([part.rows for part in uniform])
        return UniformRecords(first.tables, uniform[0].access_tables, uniform[0].access_writes, rows)
    sparse = [as_sparse(part) for part in filled]
    lengths = np.concatenate([np.diff(part.offsets) for part in sparse])
    return SparseRecords(
        first.tables,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([part.rows for part in sparse]),
        np.concatenate([part.tags for part in sparse]),
    )


def as_sparse(records: AccessRecords) -> SparseRecords:
    """Return records in compressed form."""
    if isinstance(records, SparseRecords):
        return records
    tasks, accesses = records.rows.shape
    accessed = zip(records.access_tables, records.access_writes, strict=True)
    tags = np.array([2 * table + write for table, write in accessed], np.uint8)
    offsets = np.arange(tasks + 1, dtype=np.int64) * accesses
    return SparseRecords(records.tables, offsets, np.ascontiguousarray(records.rows).reshape(-1), np.tile(tags, tasks))


def chosen(records: AccessRecords, tasks: NDArray[np.integer]) -> SparseRecords:
    """Return the records of the given tasks, in the given order."""
    if isinstance(records, UniformRecords):
        rows = records.rows[tasks]
        return as_sparse(UniformRecords(records.tables, records.access_tables, records.access_writes, rows))
    whole = records
    lengths = np.diff(whole.offsets)[tasks]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    entries = np.arange(offsets[-1]) + np.repeat(whole.offsets[:-1][tasks] - offsets[:-1], lengths)
    return SparseRecords(whole.tables, offsets, whole.rows[entries], whole.tags[entries])


def nothing_recorded(tables: tuple[TableShape, ...], tasks: int) -> SparseRecords:
    """Return the records of tasks that touch nothing."""
    return SparseRecords(tables, np.zeros(tasks + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint8))
