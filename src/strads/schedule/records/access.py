"""Access records: which rows of which tables each task of a loop touches (thesis §7.2.2).

Kernels rely on their consistency: the recorder has checked that every row is inside its table.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TableShape:
    """What the planner needs to know about one written table."""

    name: str  # for messages, and the key of what `Details` says by table
    rows: int  # their number
    row_bytes: int  # size of a row
    shape: tuple[int, ...] = ()  # if not empty, each "row" is one element of a table of this shape
    most_used: int | None = None  # bytes of a row that an access is likely to touch at most; None: the whole row

    @property
    def used_bytes(self) -> int:
        """Bytes of a row that an access is likely to touch."""
        return self.row_bytes if self.most_used is None else min(self.row_bytes, self.most_used)

    def row_name(self, row: int) -> str:
        """Return a readable name of a row."""
        if self.shape:
            return f"element {tuple(int(i) for i in np.unravel_index(row, self.shape))} of {self.name}"
        return f"row {row} of {self.name}"


# Accesses of a task of uniform records: planners compare each with each other. Tasks with more are rarely alike.
MAX_UNIFORM = 512


@dataclass(frozen=True)
class UniformRecords:
    """Records of a loop in which every task makes the same sequence of accesses (MF: one row of W, one of H).

    Only tables that the body writes are recorded; reads of other tables cannot conflict.
    """

    tables: tuple[TableShape, ...]
    access_tables: tuple[int, ...]  # table of access c, as an index into `tables`
    access_writes: tuple[bool, ...]  # whether access c writes
    rows: NDArray[np.integer]  # (tasks, accesses): the row that access c of a task touches

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.rows.shape[0])

    @property
    def tags(self) -> NDArray[np.uint8]:
        """(accesses,): tags of the accesses of a task, as in `SparseRecords`."""
        accesses = zip(self.access_tables, self.access_writes, strict=True)
        return np.array([2 * table + write for table, write in accesses], np.uint8)

    def of_task(self, task: int) -> set[tuple[int, int]]:
        """(table, row) of every access of one task."""
        return set(zip(self.access_tables, self.rows[task].tolist(), strict=True))


@dataclass(frozen=True)
class SparseRecords:
    """Records of a loop whose tasks touch varying numbers of rows, in compressed form.

    The accesses of task t are `offsets[t]:offsets[t + 1]`; a row may occur several times.
    """

    tables: tuple[TableShape, ...]  # in the order of their numbers in `tags`
    offsets: NDArray[np.int64]  # (tasks + 1,)
    rows: NDArray[np.integer]  # (accesses,)
    tags: NDArray[np.uint8] = field(repr=False)  # (accesses,): 2 * table + (1 if it writes)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.offsets) - 1

    def of_task(self, task: int) -> set[tuple[int, int]]:
        """(table, row) of every access of one task."""
        accesses = slice(self.offsets[task], self.offsets[task + 1])
        return set(zip((self.tags[accesses] >> 1).tolist(), self.rows[accesses].tolist(), strict=True))


AccessRecords = UniformRecords | SparseRecords


def same_rows(one: AccessRecords, other: AccessRecords) -> bool:
    """Whether tasks touch the same rows, as far as both records have them."""
    return all(one.of_task(task) == other.of_task(task) for task in range(min(one.tasks, other.tasks)))
