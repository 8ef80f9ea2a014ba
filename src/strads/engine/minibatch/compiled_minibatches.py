"""Compiled minibatches: a body's view of its rows, and a thread's loop over many minibatches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

from strads.engine.atomics import load
from strads.engine.compiling import INLINED, UNCOUNTED, compiled, local_counters
from strads.engine.views.kinds import make_ragged
from strads.engine.views.random_numbers import DRAW_STATE
from strads.engine.views.types import bind_with

Runner = Callable[..., int]


@compiled
def _batch_of(batches, number):  # type: ignore[no-untyped-def]
    """Return a view of a minibatch's rows; `batches` holds the rows, and the bounds of each minibatch."""
    rows = batches[0]
    if isinstance(rows, types.Array):
        return lambda batches, number: batches[0][batches[1][number] : batches[2][number]]
    if len(rows) == 2:

        def ragged(batches, number):  # type: ignore[no-untyped-def]
            values, offsets = batches[0]
            return make_ragged((values, offsets[batches[1][number] : batches[2][number] + 1]))

        return ragged

    def numbers(batches, number):  # type: ignore[no-untyped-def]
        start, step = batches[0][0]
        return start + step * np.arange(batches[1][number], batches[2][number])

    return numbers


def make_task(body: Any) -> Any:
    """Make the function `task(number, *arguments)` that runs a minibatch; the last argument is the minibatches."""

    @njit(**INLINED, error_model="numpy")
    def task(number, *arguments):  # type: ignore[no-untyped-def]
        body(_batch_of(arguments[-1], number), *arguments[:-1])

    return task


def make_step(task: Any, constructors: tuple[Any | None, ...], fastmath: bool | set[str]) -> Any:
    """Make the function that runs one minibatch: `step(number, worker, storages)`.

    Accumulators add to slot `worker`. All loops over minibatches call the same function, so that rounding is identical.
    """
    bind = bind_with(constructors)

    @njit(fastmath=fastmath, error_model="numpy", **UNCOUNTED)
    def step(number, worker, storages):  # type: ignore[no-untyped-def]
        task(number, *bind(storages, (number, worker, 0, number, number, local_counters(DRAW_STATE))))

    return step


def make_runner(step: Any) -> Runner:
    """Make the lazily compiled loop of a thread: `run(order, first, last, worker, stop, storages)`.

    It runs the minibatches `order[first:last]` until `stop[0]` is set, and returns how many it has run. Accumulators
    add to slot `worker`. `storages` are those of the body's arguments, the minibatches last.
    """

    @njit(nogil=True, no_cfunc_wrapper=True, _nrt=False)
    def run(order, first, last, worker, stop, storages):  # type: ignore[no-untyped-def]
        """Run `order[first:last]`; `worker`, `stop` and `storages` are described above."""
        for position in range(first, last):
            if load(stop, 0) != 0:
                return position - first
            step(order[position], worker, storages)
        return last - first

    return run
