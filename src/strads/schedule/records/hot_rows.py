"""A quick test whether most tasks touch one row: then two threads would hardly ever run concurrently."""

import numpy as np

from strads.schedule.records.access import AccessRecords, SparseRecords
from strads.schedule.records.parts import as_sparse, chosen

CROWDED = 0.6  # of the tasks
STRETCHES, STRETCH = 8, 64  # sampled ranges of consecutive tasks, spread over the loop
FEWEST, ACCESSES = 2, 1 << 15  # fewest tasks of a range; about the most accesses of a range


def some_tasks(tasks: int) -> list[range]:
    """Return a sample of the tasks."""
    starts = np.unique(np.linspace(0, max(tasks - STRETCH, 0), STRETCHES).astype(int)).tolist()
    return [range(start, min(start + STRETCH, tasks)) for start in starts]


def shortened(stretch: range, accesses: int) -> range:
    """Return the first tasks of a stretch: fewer if the first one makes many accesses."""
    return stretch[: max(FEWEST, ACCESSES // max(accesses, 1))]


def sample(records: AccessRecords) -> SparseRecords:
    """Return the records of a sample of the tasks."""
    if records.tasks == 0:
        return as_sparse(records)
    stretches = some_tasks(records.tasks)
    first = as_sparse(chosen(records, np.array([stretch.start for stretch in stretches])))
    tasks = [np.asarray(shortened(*pair)) for pair in zip(stretches, np.diff(first.offsets).tolist(), strict=True)]
    return as_sparse(chosen(records, np.concatenate(tasks)))


def hot_row(records: AccessRecords, ignoring: frozenset[int] = frozenset()) -> str | None:
    """Name the row that most tasks touch and some of them write; None if there is none.

    Rows of the tables `ignoring`, by their numbers in the records, do not count.
    """
    if records.tasks == 0:
        return None
    sparse = as_sparse(records)
    task = np.repeat(np.arange(sparse.tasks), np.diff(sparse.offsets))
    row = sparse.rows.astype(np.int64) * 128 + (sparse.tags >> 1)
    touched = np.unique(row * sparse.tasks + task) // sparse.tasks  # a row once for each task
    rows, counts = np.unique(touched, return_counts=True)
    counts = np.where(np.isin(rows, row[(sparse.tags & 1) == 1]), counts, 0)
    counts = np.where(np.isin(rows % 128, list(ignoring)), 0, counts)
    if counts.max(initial=0) <= CROWDED * sparse.tasks:
        return None
    number, which = divmod(int(rows[np.argmax(counts)]), 128)
    share = counts.max() / sparse.tasks
    table = sparse.tables[which]
    return (
        f"{share:.0%} of the sampled tasks touch {table.row_name(number)} (if slightly stale values of it do "
        f"no harm, strads.relaxed({table.name}) lets tasks run together)"
    )
