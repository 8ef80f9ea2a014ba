"""Rounds of minibatches on replicas in one process: fully compiled BSP, bitwise equal to the parameter server.

A round takes a few microseconds, a hundred times less than with messages between Python threads.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from strads.engine.atomics import load
from strads.engine.barrier import meet_unless

Rounds = Callable[..., int]


class SharedTable(NamedTuple):
    """A written table, and the replicas of all threads.

    Attributes
    ----------
    values : (rows, columns)
        The table itself.
    replicas : (threads, rows, columns)
        The replica of each thread.
    weights : (rounds,)
        Weight of one thread's changes in each round; of the table's dtype.
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
def _pull(table, number, thread, clock):  # type: ignore[no-untyped-def]
    """Copy rows to a thread's replica."""
    chosen, rows, count = _rows_of(table, number)
    own = table.replicas[thread]
    for i in range(count):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            own[row, column] = table.values[row, column]


@njit(nogil=True, cache=True)
def _subtract(table, number, thread, clock):  # type: ignore[no-untyped-def]
    """Replace the values in a thread's replica by their weighted changes."""
    chosen, rows, count = _rows_of(table, number)
    own, weight = table.replicas[thread], table.weights[clock]
    for i in range(count):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            own[row, column] = weight * (own[row, column] - table.values[row, column])


@njit(nogil=True, cache=True)
def _add_part(table, number, thread, part, parts):  # type: ignore[no-untyped-def]
    """Add a thread's changes to a part of the table."""
    chosen, rows, _ = _rows_of(table, number)
    own, size = table.replicas[thread], len(table.values)
    first, last = part * size // parts, (part + 1) * size // parts
    begin = np.searchsorted(rows, first) if chosen else first
    end = np.searchsorted(rows, last) if chosen else last
    for i in range(begin, end):
        row = rows[i] if chosen else i
        for column in range(own.shape[1]):
            table.values[row, column] += own[row, column]


def _for_each(kernel: Any) -> Any:
    """Make a compiled function that calls a kernel for each table in a tuple."""

    def every(tables: Any, *arguments: Any) -> None:
        raise NotImplementedError("for compiled code only")

    @overload(every)
    def _compiled(tables, *arguments):  # type: ignore[no-untyped-def]
        if isinstance(tables, types.BaseTuple) and len(tables) == 0:
            return lambda tables, *arguments: None

        def first_and_rest(tables, *arguments):  # type: ignore[no-untyped-def]
            kernel(tables[0], *arguments)
            every(tables[1:], *arguments)

        return first_and_rest

    return every


_pull_all, _subtract_all, _add_all = _for_each(_pull), _for_each(_subtract), _for_each(_add_part)


def make_rounds(step: Any) -> Rounds:
    """Make the lazily compiled rounds of a thread: `run(orders, thread, tables, arrivals, stop, storages)`.

    `orders[t, c]` is the minibatch of thread t in round c, -1 for none; `arrivals` is the state of the barrier. All
    threads call it concurrently, and return soon after `stop[0]` is set. Returns the number of rounds run.
    """

    @njit(nogil=True)  # no fastmath: the exchange must round as in the parameter server
    def run(orders, thread, tables, arrivals, stop, storages):  # type: ignore[no-untyped-def]
        threads, rounds = orders.shape
        for clock in range(rounds):
            number = orders[thread, clock]
            if number >= 0 and load(stop, 0) == 0:
                _pull_all(tables, number, thread, clock)
                step(number, thread, storages)
                _subtract_all(tables, number, thread, clock)
            if not meet_unless(stop, arrivals, threads):
                return clock
            for other in range(threads):
                if orders[other, clock] >= 0:
                    _add_all(tables, orders[other, clock], other, thread, threads)
            if not meet_unless(stop, arrivals, threads):
                return clock
        return rounds

    return run
