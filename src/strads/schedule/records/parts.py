"""Access records of parts of a loop: concatenated from several nodes, or selected by task."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strads.partition import offsets_of, places_of
from strads.schedule.records.access import MAX_UNIFORM, AccessRecords, SparseRecords, TableShape, UniformRecords
from strads.schedule.records.merging import merge_repeated


def concatenated(parts: Sequence[AccessRecords]) -> AccessRecords:
    """Concatenate the records of consecutive parts of one loop."""
    filled = [part for part in parts if part.tasks > 0] or list(parts[:1])
    first = filled[0]
    if len(filled) == 1:
        return first
    uniform = [part for part in filled if isinstance(part, UniformRecords)]
    if len(uniform) == len(filled) and len({(part.access_tables, part.access_writes) for part in uniform}) == 1:
        rows = np.concatenate([part.rows for part in uniform])
        return replace(uniform[0], rows=rows)
    sparse = [as_sparse(part) for part in filled]
    lengths = np.concatenate([np.diff(part.offsets) for part in sparse])
    return SparseRecords(
        first.tables,
        offsets_of(lengths),
        np.concatenate([part.rows for part in sparse]),
        np.concatenate([part.tags for part in sparse]),
    )


def as_sparse(records: AccessRecords) -> SparseRecords:
    """Return records in compressed form, each row of a task once."""
    if isinstance(records, SparseRecords):
        return records
    tasks, accesses = records.rows.shape
    tags = np.tile(records.tags, tasks)
    rows = np.ascontiguousarray(records.rows).reshape(-1)
    offsets = np.arange(tasks + 1, dtype=np.int64) * accesses
    found = SparseRecords(records.tables, offsets, rows, tags)
    return found if len(set(records.access_tables)) == accesses else merged(found)


def merged(records: SparseRecords) -> SparseRecords:
    """Return records that have each row of a task once."""
    rows, tags, counts = records.rows.copy(), records.tags.copy(), np.diff(records.offsets)
    kept = merge_repeated(counts, rows, tags)
    return replace(records, offsets=offsets_of(counts), rows=rows[:kept], tags=tags[:kept])


def as_uniform(records: AccessRecords) -> AccessRecords:
    """Return records that have each row of a task once: uniform if every task makes the same few accesses."""
    if isinstance(records, UniformRecords):
        if len(set(records.access_tables)) == len(records.access_tables):
            return records
        records = as_sparse(records)
    tasks = records.tasks
    arity = int(records.offsets[1]) if tasks else 0
    tags = records.tags[:arity]
    if (
        arity > MAX_UNIFORM
        or not np.array_equal(records.offsets, np.arange(tasks + 1) * arity)
        or np.any(records.tags.reshape(tasks, arity) != tags)
    ):
        return records
    tables, writes = tuple((tags >> 1).tolist()), tuple((tags & 1).astype(bool).tolist())
    return UniformRecords(records.tables, tables, writes, records.rows.reshape(tasks, arity))


def chosen(records: AccessRecords, tasks: NDArray[np.integer]) -> AccessRecords:
    """Return the records of the given tasks, in the given order."""
    if isinstance(records, UniformRecords):
        return replace(records, rows=records.rows[tasks])
    offsets = offsets_of(records.offsets[tasks + 1] - records.offsets[tasks])
    entries = places_of(records.offsets, tasks)
    return replace(records, offsets=offsets, rows=records.rows[entries], tags=records.tags[entries])


def nothing_recorded(tables: tuple[TableShape, ...], tasks: int) -> UniformRecords:
    """Return the records of tasks that touch nothing."""
    return UniformRecords(tables, (), (), np.empty((tasks, 0), np.int32))
