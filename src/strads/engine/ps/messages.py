"""Messages between clients and servers of a table. Row numbers are global."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RETIRED = 1 << 40  # clock of a worker that has ended, so that none waits for it

RowNumbers = NDArray[np.int64]
Places = NDArray[np.int64]  # of rows in a store
Values = Any  # contents of rows: an array (rows, columns), or SparseValues; values[which] selects rows
Result = Any  # target of reads, result[positions] = values: an array, or a SparseResult


class Read(NamedTuple):
    """A client requests rows with a minimum clock; on tables that push, it also subscribes to them.

    Attributes
    ----------
    table
        Number of the table.
    ticket
        Identifies the answer.
    rows
        Row numbers, without repetitions.
    required
        Minimum clock of the rows.
    """

    table: int
    ticket: int
    rows: RowNumbers
    required: int


class Update(NamedTuple):
    """A worker's coalesced updates of one clock, or a part of them.

    Attributes
    ----------
    table, worker
        Numbers of table and worker.
    clock
        Clock at which the updates were made.
    after
        The worker's clock from now on.
    rows, deltas
        Row numbers, and the values to add.
    number
        Number of this message among those of the worker to this shard, if it is to be notified once the updates are
        visible to all; otherwise -1.
    """

    table: int
    worker: int
    clock: int
    after: int
    rows: RowNumbers
    deltas: Any
    number: int


class Rows(NamedTuple):
    """A server sends rows.

    Attributes
    ----------
    table
        Number of the table.
    ticket
        Ticket of the read that this answers; -1 for a push.
    rows, values
        Row numbers and contents.
    clocks
        By worker: all updates that it made before this clock are included.
    number
        Number of this push, if the client has to acknowledge it; otherwise -1.
    """

    table: int
    ticket: int
    rows: RowNumbers
    values: Any
    clocks: NDArray[np.int64]
    number: int


class Seen(NamedTuple):
    """A client acknowledges a push."""

    table: int  # number of the table
    number: int  # `Rows.number` of the push


class Forget(NamedTuple):
    """A client unsubscribes from rows."""

    table: int  # number of the table
    rows: RowNumbers  # their numbers


class Visible(NamedTuple):
    """An update is visible to every client that has read its rows."""

    table: int  # number of the table
    worker: int  # number of the worker that made it
    number: int  # `Update.number`


ToServer = Read | Update | Seen | Forget
ToClient = Rows | Visible
