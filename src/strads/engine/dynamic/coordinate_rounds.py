"""Rounds of a dynamic schedule on one node, compiled: propose, compute the changes, commit (decision 13).

The threads divide the columns of a round among them to compute changes, all from the same state (Jacobi), and the rows
to commit these. There are two barriers per round. Thread 0 schedules in addition to its share of the work. No two
threads add to the same element, so the bits are the same for any number of threads.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.cluster.thread_team import ThreadTeam
from strads.engine.atomics import load
from strads.engine.barrier import meet_unless
from strads.schedule.dynamic.state import CONCURRENCY, propose_into, take_feedback

_WORTH_A_THREAD = 32_768  # entries per round and thread; with fewer, threads spend more time in barriers than computing
_ARRIVED, _STOP, _COUNT, _UPDATED, _FAILED = (8 * n for n in range(5))  # a cache line each


class Board(NamedTuple):
    """Shared memory of the threads, double-buffered for even and odd rounds."""

    state: NDArray[np.int64]  # barrier, flags and counters, on separate cache lines
    parameters: NDArray[np.int64]  # (2, capacity): the plans
    priorities: NDArray[np.float64]  # (2, capacity)
    changes: NDArray[np.float64]  # (2, capacity): δ of each parameter of a plan


def coordinate_change(model: Any, parameter: int) -> float:
    """Return the change δ that an update would make to a parameter; reads only. Overloaded for each kind of model."""
    raise NotImplementedError


def commit_rows(model: Any, parameters: Any, changes: Any, count: int, thread: int, threads: int) -> None:
    """Apply the changes to one thread's rows of the shared state. Overloaded for each kind of model."""
    raise NotImplementedError


def commit_parameters(model: Any, parameters: Any, changes: Any, count: int) -> None:
    """Change the parameters, on one thread. Overloaded for each kind of model."""
    raise NotImplementedError


@njit(nogil=True, cache=True)
def _propose(schedule, board, side, left):  # type: ignore[no-untyped-def]
    """Write the plan of the next round to one `side` of the `board`, proposed by the `schedule`.

    A length of −1 ends the rounds: none is `left`, they were stopped, or nothing is left to propose.
    """
    count = -1
    if left > 0 and load(board.state, _STOP) == 0:
        count = propose_into(schedule, board.parameters[side], board.priorities[side])
    board.state[_COUNT] = count if count > 0 else -1


@njit(nogil=True, cache=True)
def run_rounds(schedule, model, board, thread, threads, rounds):  # type: ignore[no-untyped-def]
    """Run one thread's part of some rounds; returns early if another thread has failed.

    `schedule` and `model` are as in `CoordinateRounds`. All `threads` threads call this, each with its own number as
    `thread`, and share the `board`.
    """
    state = board.state
    failed = state[_FAILED:]
    side = 0
    if thread == 0:
        _propose(schedule, board, side, rounds)
    for done in range(rounds):
        if not meet_unless(failed, state, threads):
            return
        count = state[_COUNT]
        if count < 0:
            break
        parameters, changes = board.parameters[side], board.changes[side]
        for k in range(thread, count, threads):
            changes[k] = coordinate_change(model, parameters[k])
        if not meet_unless(failed, state, threads):
            return
        commit_rows(model, parameters, changes, count, thread, threads)
        side = 1 - side
        if thread == 0:
            commit_parameters(model, parameters, changes, count)
            take_feedback(schedule, parameters, changes, count)
            state[_UPDATED] += count
            _propose(schedule, board, side, rounds - done - 1)
    meet_unless(failed, state, threads)


class CoordinateRounds:
    """Runs a compiled schedule on a model on this node.

    Parameters
    ----------
    schedule
        State of a `CompiledSchedule`.
    model
        A NamedTuple of arrays for which the functions above are overloaded.
    team
        Threads to use.
    entries : float, optional
        Mean number of entries per column: if small, fewer threads are used, which is faster. By default all are used.
    """

    def __init__(self, schedule: Any, model: Any, team: ThreadTeam, *, entries: float = np.inf):
        self._schedule, self._model, self._team = schedule, model, team
        capacity = int(schedule.limits[CONCURRENCY])
        self._threads = max(1, round(min(team.size, capacity, entries * capacity / _WORTH_A_THREAD)))
        self._board = Board(
            np.zeros(8 * 5, np.int64),
            np.zeros((2, capacity), np.int64),
            np.zeros((2, capacity)),
            np.zeros((2, capacity)),
        )

    def run(self, rounds: int) -> int:
        """Run `rounds` rounds, fewer if nothing is left to propose; returns the number of parameters updated.

        An interrupt (Ctrl-C) takes effect at the end of the current round. If a thread fails, the others stop, too.
        """
        state = self._board.state
        state[[_ARRIVED, _STOP, _UPDATED, _FAILED]] = 0

        def work(thread: int) -> None:
            if thread >= self._threads:
                return
            try:
                run_rounds(self._schedule, self._model, self._board, thread, self._threads, rounds)
            except BaseException:
                state[_FAILED] = 1  # the others must not wait for this thread
                raise

        def stop() -> None:
            state[_STOP] = 1

        self._team.run(work, on_interrupt=stop)
        return int(state[_UPDATED])
