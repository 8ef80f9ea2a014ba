"""Compiled code that records which rows the tasks of a body touch, and the buffers of the threads that run it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from strads.dds.ragged import read_only
from strads.engine.stopping import ENDLESS, MAX_ITERATIONS, StoppedError
from strads.engine.views import recording_views
from strads.engine.views.ghost_records import fill_of
from strads.engine.views.kinds import MAX_TABLES, SILENT, SLOTS, STAMP, TASK
from strads.engine.views.near import NearRecorded, group_token
from strads.engine.views.recorded_rows import SCRATCH_FULL
from strads.errors import ArgumentError, BodyError
from strads.loops.argument_roles import ArgumentRoles
from strads.loops.arguments import BoundArguments, TableArgument
from strads.loops.indices import LoopIndices
from strads.schedule.records.access import TableShape

CHUNK = 1 << 16  # tasks recorded by one thread at a time
_FIRST_SCRATCH_ROWS = 64


class TaskFailed(Exception):
    """A task raised an exception during reconnaissance; `__cause__` is the exception."""

    def __init__(self, task: int):
        super().__init__(task)
        self.task = task


@dataclass
class Log:
    """Buffers of one thread for one chunk."""

    # (SLOTS + tables,): position and stamp of the current task, scratch slots in use per table
    state: NDArray[np.int64]
    counts: NDArray[np.int32]  # (tasks,): accesses of each task
    rows: NDArray[np.integer]  # row of each access, counted from 0; as many as there is room for
    tags: NDArray[np.uint8]  # of the same accesses: twice the table's number, plus 1 for a write


class Copies:
    """One thread's memory for private copies of rows, reused for all its chunks."""

    def __init__(self) -> None:
        self.rows = _FIRST_SCRATCH_ROWS
        self.stamp = 0  # of the latest task
        self._found: dict[int, tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32]]] = {}

    def of(self, position: int, argument: TableArgument) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32]]:
        """Return the copies of a table's rows, the stamp of the task that has copied each row, and its slot."""
        if position not in self._found:
            rows = len(argument.storage)
            copies = np.empty((self.rows, *_row_shape(argument)), argument.storage.dtype)
            self._found[position] = copies, np.zeros(rows, np.int64), np.zeros(rows, np.int32)
        return self._found[position]

    def grow(self) -> None:
        """Make room for more rows per task."""
        self.rows *= 4
        self._found.clear()


class Recorder:
    """Records the accesses of one body; compiled once and used for every reconnaissance.

    A task runs all of `bodies`, Numba dispatchers; with `scratch`, with copies of real rows rather than ghosts.
    """

    def __init__(
        self,
        bodies: Sequence[Any],
        bound: BoundArguments,
        argument_roles: ArgumentRoles,
        *,
        scratch: bool,
        chunk: int = CHUNK,
    ):
        self.scratch = scratch
        self.chunk = chunk
        self.argument_roles = argument_roles
        self._tables = len(argument_roles.table_of) + len(bound.arguments)
        if self._tables > MAX_TABLES:
            raise ArgumentError(f"a loop takes at most {MAX_TABLES // 2} arguments")
        arguments = zip(argument_roles.roles, bound.arguments, strict=True)
        constructors = tuple(
            recording_views.recording_view(
                role,
                position,
                ragged=argument.ragged,
                scratch=scratch,
                keyed=argument.keyed,
                by_element=not scratch and position in argument_roles.by_element,
                near=position in argument_roles.near,
            )
            for position, (role, argument) in enumerate(arguments)
        )
        self.compiled: Any = recording_views.make_recorder(
            bodies, constructors, scratch=scratch, in_turn=argument_roles.in_turn
        )

    def table_shapes(self, bound: BoundArguments) -> tuple[TableShape, ...]:
        """Return the shapes of the tables as recorded."""
        return self.argument_roles.table_shapes(bound, by_row=self.scratch)

    def compile(self, bound: BoundArguments, indices: LoopIndices) -> None:
        """Compile for these arguments, so that errors are raised before any thread starts."""
        log = self.new_log(1, np.empty(1, row_dtype(self.table_shapes(bound))))
        storages = self._storages(bound, log, Copies())
        arguments = (0, 1, indices.values, 0, 0, log.state, log.counts, storages)
        self.compiled.compile(tuple(map(typeof, arguments)))

    def new_log(self, tasks: int, rows: NDArray[np.integer]) -> Log:
        """Return buffers for a number of tasks, given that of their rows."""
        state = np.zeros(SLOTS + self._tables, np.int64)
        return Log(state, np.zeros(tasks, np.int32), rows, np.empty(len(rows), np.uint8))

    def run(self, bound: BoundArguments, indices: LoopIndices, first: int, tasks: int, log: Log, copies: Copies) -> int:
        """Run tasks `first..first + tasks - 1`; returns the number of their accesses, even if the log was too small.

        Raises
        ------
        TaskFailed
            If a task raises.
        BodyError
            If a task does not end.
        StoppedError
            If the run was stopped.
        """
        while True:
            storages = self._storages(bound, log, copies)
            log.state[:] = 0
            log.state[STAMP] = copies.stamp
            try:
                return self.compiled(
                    indices.start, indices.step, indices.values, first, tasks, log.state, log.counts, storages
                )
            except StoppedError:
                raise
            except RuntimeError as error:
                if error.args == (ENDLESS,):
                    raise BodyError(
                        f"a while loop of the body did not end within {MAX_ITERATIONS:,} iterations in reconnaissance; "
                        "nothing was written: is it waiting for a value that another task writes?"
                    ) from error
                if error.args != (SCRATCH_FULL,):
                    raise TaskFailed(int(log.state[TASK])) from error
                copies.grow()
            except Exception as error:
                raise TaskFailed(int(log.state[TASK])) from error
            finally:
                copies.stamp = int(log.state[STAMP])

    def _storages(self, bound: BoundArguments, log: Log, copies: Copies) -> tuple[Any, ...]:
        argument_roles, recorded = self.argument_roles, dict[int, Any]()

        def storage(position: int, argument: TableArgument) -> Any:
            found, same = read_only(argument.raw), bound.same[position]
            if argument_roles.roles[position].is_recorded:
                if same not in recorded:
                    recorded[same] = self._recording_storage(same, argument, argument_roles.tag(position), log, copies)
                found = recorded[same]
            elif argument_roles.roles[position].is_relaxed:
                tag = SILENT | 2 * (len(argument_roles.table_of) + position)
                found = self._recording_storage(position, argument, tag, log, copies)
            return (
                NearRecorded(found, group_token(argument_roles.near[position]))
                if position in argument_roles.near
                else found
            )

        return bound.storages(storage, {position: argument.dtype.type(0) for position, argument in bound.sums.items()})

    def _recording_storage(
        self, position: int, argument: TableArgument, tag: int, log: Log, copies: Copies
    ) -> tuple[Any, ...]:
        seen = (argument.raw, np.uint8(tag), log.rows, log.tags)
        if not self.scratch:
            is_read = position in self.argument_roles.read_in_ghosts
            return recording_views.Ghost(*seen, fill=argument.raw if is_read else fill_of(argument.storage.dtype))
        rows, stamps, slots = copies.of(position, argument)
        return recording_views.Scratch(*seen, state=log.state, copies=rows, stamps=stamps, slots=slots)


def row_dtype(tables: Sequence[TableShape]) -> type[np.integer]:
    """Return the dtype of row numbers in records of these tables."""
    longest = max((table.rows for table in tables), default=0)
    return np.int32 if longest <= np.iinfo(np.int32).max else np.int64


def _row_shape(argument: TableArgument) -> tuple[int, ...]:
    if argument.ragged:
        offsets = argument.raw[1]
        return (int(np.diff(offsets).max(initial=0)),)
    return argument.dense.shape[1:]
