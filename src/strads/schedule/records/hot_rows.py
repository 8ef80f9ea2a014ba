"""A quick test whether most tasks touch one row: then two threads would hardly ever run concurrently."""

import numpy as np
from numpy.typing import ArrayLike

from strads.partition import distinct
from strads.schedule.records.access import AccessRecords, SparseRecords
from strads.schedule.records.parts import as_sparse, chosen, merged

CROWDED = 0.6  # of the tasks
STRETCHES, STRETCH = 8, 64  # sampled ranges of consecutive tasks, spread over the loop
FEWEST, ACCESSES = 2, 1 << 15  # fewest tasks of a range; about the most accesses of a range


def some_tasks(tasks: int) -> list[range]:
    """Return a sample of the tasks."""
    starts = np.unique(np.linspace(0, max(tasks - STRETCH, 0), STRETCHES).astype(int)).tolist()
    return [range(start, min(start + STRETCH, tasks)) for start in starts]


def shortened(stretch: range, accesses: ArrayLike) -> range:
    """Return the first tasks of a stretch: at least `FEWEST`, more if these make no more than `ACCESSES` together.

    `accesses`: of each task, or of the first one if the others are not known yet.
    """
    so_far = np.cumsum(np.broadcast_to(np.asarray(accesses, np.int64), len(stretch)))
    return stretch[: max(FEWEST, int(np.searchsorted(so_far, ACCESSES, "right")))]


def sample(records: AccessRecords) -> SparseRecords:
    """Return the records of a sample of the tasks."""
    if records.tasks == 0:
        return as_sparse(records)
    stretches = some_tasks(records.tasks)
    first = np.diff(as_sparse(chosen(records, np.array([stretch.start for stretch in stretches]))).offsets)
    stretches = [shortened(*pair) for pair in zip(stretches, first, strict=True)]
    found = as_sparse(chosen(records, np.concatenate(stretches)))
    counts = np.split(np.diff(found.offsets), np.cumsum([len(stretch) for stretch in stretches])[:-1])
    tasks = np.concatenate([shortened(*pair) for pair in zip(stretches, counts, strict=True)])
    return found if len(tasks) == found.tasks else as_sparse(chosen(records, tasks))


def hot_row(records: AccessRecords, ignoring: frozenset[int] = frozenset(), *, in_order: bool = False) -> str | None:
    """Name the row that most tasks touch and some of them write; None if there is none.

    Rows of the tables `ignoring`, by their numbers in the records, do not count. `in_order`: whether the order of the
    tasks matters, so that no table can be relaxed.
    """
    if records.tasks == 0:
        return None
    sparse = merged(as_sparse(records))
    task = np.repeat(np.arange(sparse.tasks), np.diff(sparse.offsets))
    row = sparse.rows.astype(np.int64) * 128 + (sparse.tags >> 1)
    touched = distinct(row * sparse.tasks + task) // sparse.tasks  # a row once for each task
    rows, counts = np.unique(touched, return_counts=True)
    counts = np.where(np.isin(rows, row[(sparse.tags & 1) == 1]), counts, 0)
    counts = np.where(np.isin(rows % 128, list(ignoring)), 0, counts)
    if counts.max(initial=0) <= CROWDED * sparse.tasks:
        return None
    number, which = divmod(int(rows[np.argmax(counts)]), 128)
    share = counts.max() / sparse.tasks
    table = sparse.tables[which]
    text = f"{share:.0%} of the sampled tasks touch {table.row_name(number)}"
    advice = (
        f" (if tasks only add to it, and slightly stale values do no harm, strads.relaxed({table.name}) lets them run "
        "together)"
    )
    return text if in_order else text + advice
