"""What clients and servers of a table tell each other. Rows go by their numbers in the whole table."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RETIRED = 1 << 40  # clock of a worker that has ended: nobody waits for it

RowNumbers = NDArray[np.int64]


class Read(NamedTuple):
    """A client asks for rows of at least an age; on tables that push, it will hear of them from now on.

    Attributes
    ----------
    table
        Number of the table.
    ticket
        By which the client knows the answer.
    rows
        Without repetitions.
    required
        Age.
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
        Numbers.
    clock
        At which they were made.
    after
        The worker's clock from now on.
    rows, deltas
        What to add.
    number
        Of this message among those of the worker to this shard, if it wants to hear when all can see it; else -1.
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
        Of the read that this answers; -1 if nobody has asked.
    rows, values
        The rows.
    clocks
        By worker: all its updates made before this clock are in them.
    number
        Of this push, if the client has to say when it has taken it in; else -1.
    """

    table: int
    ticket: int
    rows: RowNumbers
    values: Any
    clocks: NDArray[np.int64]
    number: int


class Seen(NamedTuple):
    """A client has taken in a push."""

    table: int
    number: int


class Forget(NamedTuple):
    """A client does not want to hear of rows any more."""

    table: int
    rows: RowNumbers


class Visible(NamedTuple):
    """Every client that has read the rows of an update can see it."""

    table: int
    worker: int
    number: int


ToServer = Read | Update | Seen | Forget
ToClient = Rows | Visible
