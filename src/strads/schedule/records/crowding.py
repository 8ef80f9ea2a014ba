"""A quick test whether most tasks touch one row: then two threads would hardly ever run concurrently."""

import numpy as np

from strads.schedule.records.access import AccessRecords
from strads.schedule.records.parts import as_sparse

CROWDED = 0.6  # of the tasks
STRETCHES, STRETCH = 8, 64  # sampled ranges of consecutive tasks, spread over the loop


def some_tasks(tasks: int) -> list[range]:
    """Return a sample of the tasks."""
    starts = np.unique(np.linspace(0, max(tasks - STRETCH, 0), STRETCHES).astype(int)).tolist()
    return [range(start, min(start + STRETCH, tasks)) for start in starts]


def crowded_row(records: AccessRecords) -> str | None:
    """Name the row that most tasks touch and some of them write; None if there is none."""
    if records.tasks == 0:
        return None
    sparse = as_sparse(records)
    task = np.repeat(np.arange(sparse.tasks), np.diff(sparse.offsets))
    row = sparse.rows.astype(np.int64) * 128 + (sparse.tags >> 1)
    touched = np.unique(np.stack([row, task], axis=1), axis=0)[:, 0]
    rows, counts = np.unique(touched, return_counts=True)
    counts = np.where(np.isin(rows, row[(sparse.tags & 1) == 1]), counts, 0)
    if counts.max(initial=0) <= CROWDED * sparse.tasks:
        return None
    number, which = divmod(int(rows[np.argmax(counts)]), 128)
    share = counts.max() / sparse.tasks
    table = sparse.tables[which]
    return (
        f"{share:.0%} of the tasks that were looked at touch {table.row_name(number)} (if slightly old values of it do "
        f"no harm, strads.relaxed({table.name}) lets tasks run together)"
    )
