"""Rounds of minibatches on replicas in one process: fully compiled BSP, bitwise equal to the parameter server.

A round takes a few microseconds, a hundred times less than with messages between Python threads.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from strads.engine.atomics import load
from strads.engine.barrier import meet_unless
from strads.engine.compiling import compiled

Rounds = Callable[..., int]


class SharedTable(NamedTuple):
    """A written table, and the replicas of all workers.

    Attributes
    ----------
    values : (rows, columns)
        The table itself.
    replicas : (workers, rows, columns)
        The replica of each worker.
    weights : (rounds,)
        Weight of one worker's changes in each round; of the table's dtype.
    offsets, rows
        Minibatch b accesses `rows[offsets[b]:offsets[b + 1]]`; all rows if `offsets` is empty.
    """

    values: NDArray[Any]
    replicas: NDArray[Any]
    weights: NDArray[Any]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _rows_of(table, number):  # type: ignore[no-untyped-def]
    """Return whether a minibatch accesses selected rows only, these rows, and their number."""
    if len(table.offsets) == 0:
        return False, table.rows, len(table.values)
    rows = table.rows[table.offsets[number] : table.offsets[number + 1]]
    return True, rows, len(rows)


@njit(nogil=True, cache=True)
def _pull(table, number, worker):  # type: ignore[no-untyped-def]
    """Copy the rows of `table` that the minibatch `number` accesses to a worker's replica."""
    chosen, rows, count = _rows_of(table, number)
    own = table.replicas[worker]
    for i in range(count):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            own[row, column] = table.values[row, column]


@njit(nogil=True, cache=True)
def _subtract(table, number, worker, clock):  # type: ignore[no-untyped-def]
    """Replace the values in a worker's replica by their changes, weighted by the `table` for the round `clock`.

    Only rows that the minibatch `number` accesses are replaced.
    """
    chosen, rows, count = _rows_of(table, number)
    own, weight = table.replicas[worker], table.weights[clock]
    for i in range(count):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            own[row, column] = weight * (own[row, column] - table.values[row, column])


@njit(nogil=True, cache=True)
def _add_part(table, number, worker, part, parts):  # type: ignore[no-untyped-def]
    """Add a worker's changes to one of `parts` equal parts of the rows of `table`."""
    chosen, rows, _ = _rows_of(table, number)
    own, size = table.replicas[worker], len(table.values)
    first, last = part * size // parts, (part + 1) * size // parts
    begin = np.searchsorted(rows, first) if chosen else first
    end = np.searchsorted(rows, last) if chosen else last
    for i in range(begin, end):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            table.values[row, column] += own[row, column]


def _for_each(kernel: Any) -> Any:
    """Make a compiled function that calls a kernel for each table in a tuple."""

    @compiled
    def every(tables, *arguments):  # type: ignore[no-untyped-def]
        if isinstance(tables, types.BaseTuple) and len(tables) == 0:
            return lambda tables, *arguments: None

        def first_and_rest(tables, *arguments):  # type: ignore[no-untyped-def]
            kernel(tables[0], *arguments)
            every(tables[1:], *arguments)

        return first_and_rest

    return every


_pull_all, _subtract_all, _add_all = _for_each(_pull), _for_each(_subtract), _for_each(_add_part)


def make_rounds(step: Any) -> Rounds:
    """Make the lazily compiled rounds of a thread: `run(orders, thread, threads, tables, arrivals, stop, storages)`.

    `orders[w, c]` is the minibatch of worker w in round c, -1 for none, and `storages[w]` what it works on; `arrivals`
    is the state of the barrier. Each thread works for every `threads`-th worker. All threads call it concurrently, and
    return soon after `stop[0]` is set. Returns the number of rounds run. `tables` are `SharedTable`s.
    """

    @njit(nogil=True)  # no fastmath: the exchange must round as in the parameter server
    def run(orders, thread, threads, tables, arrivals, stop, storages):  # type: ignore[no-untyped-def]
        """Run the rounds of `orders` as `thread` of `threads`; `tables`, `arrivals`, `stop`, `storages`: see above."""
        workers, rounds = orders.shape
        for clock in range(rounds):
            for worker in range(thread, workers, threads):
                number = orders[worker, clock]
                if number >= 0 and load(stop, 0) == 0:
                    _pull_all(tables, number, worker)
                    step(number, worker, storages[worker])
                    _subtract_all(tables, number, worker, clock)
            if not meet_unless(stop, arrivals, threads):
                return clock
            for worker in range(workers):
                if orders[worker, clock] >= 0:
                    _add_all(tables, orders[worker, clock], worker, thread, threads)
            if not meet_unless(stop, arrivals, threads):
                return clock
        return rounds

    return run
