"""Reconnaissance: one read-only run of a loop that finds which rows each task touches (thesis §7.2.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from strads.bodies.code_cache import is_on_disk
from strads.cluster import ThreadTeam
from strads.engine.stopping import ENDLESS, INTERRUPTED, MOST_TURNS, stoppable
from strads.engine.views import recording
from strads.engine.views.ghost_records import fill_of
from strads.engine.views.kinds import MAX_TABLES, SILENT, SLOTS, TASK
from strads.engine.views.near import NearRecorded, group_token
from strads.engine.views.recorded_rows import SCRATCH_FULL
from strads.errors import ArgumentError, BodyError
from strads.loops.arguments import AccumulatorArgument, BoundArguments, ScalarArgument, TableArgument, read_only
from strads.loops.casting import Cast
from strads.loops.indices import LoopIndices
from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape, UniformRecords
from strads.schedule.records.crowding import shortened, some_tasks
from strads.schedule.records.merging import append_records, merge_repeated
from strads.schedule.records.row_ranges import BATCH, Marks, RowRanges, units

CHUNK = 1 << 16  # tasks recorded by one thread at a time
_PROBE = 64  # tasks whose accesses suggest a pattern for all
_FIRST_SCRATCH_ROWS = 64


class TaskFailed(Exception):
    """A task raised an exception during reconnaissance; `__cause__` is the exception."""

    def __init__(self, task: int):
        super().__init__(task)
        self.task = task


@dataclass
class _Log:
    """Buffers of one thread for one chunk."""

    state: NDArray[np.int64]
    counts: NDArray[np.int32]
    rows: NDArray[np.integer]
    tags: NDArray[np.uint8]


class _Copies:
    """One thread's memory for private copies of rows, reused for all its chunks."""

    def __init__(self) -> None:
        self.rows = _FIRST_SCRATCH_ROWS
        self._found: dict[int, tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32]]] = {}

    def of(self, position: int, argument: TableArgument) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int32]]:
        """Return the copies of a table's rows, the task that has copied each row, and its position."""
        if position not in self._found:
            rows = len(argument.storage)
            copies = np.empty((self.rows, *_row_shape(argument)), argument.storage.dtype)
            self._found[position] = copies, np.zeros(rows, np.int64), np.zeros(rows, np.int32)
        return self._found[position]

    def forget(self) -> None:
        """Discard the copies, as tasks are run again."""
        for _, stamps, _ in self._found.values():
            stamps[:] = 0

    def grow(self) -> None:
        """Make room for more rows per task."""
        self.rows *= 4
        self._found.clear()


def _is_uniform(counts: NDArray[np.int32], tags: NDArray[np.uint8], pattern: NDArray[np.uint8]) -> bool:
    """Whether every task of a chunk logged exactly the pattern of tags."""
    arity = len(pattern)
    if np.any(counts != arity):
        return False
    repeated = len(tags) - arity
    return np.array_equal(tags[:arity], pattern) and np.array_equal(tags[arity:], tags[:repeated])


class Recorder:
    """Records the accesses of one body; compiled once and used for every reconnaissance.

    Parameters
    ----------
    bodies
        Numba dispatchers of the body: a task runs all of them.
    bound, cast
        The arguments and their roles.
    scratch
        Whether tasks compute with copies of real rows rather than with ghosts.
    chunk
        Tasks recorded by one thread at a time.
    """

    def __init__(self, bodies: Sequence[Any], bound: BoundArguments, cast: Cast, *, scratch: bool, chunk: int = CHUNK):
        self.scratch = scratch
        self._chunk = chunk
        self.cast = cast
        self.tables = len(cast.table_of) + len(bound.arguments)
        if self.tables > MAX_TABLES:
            raise ArgumentError(f"a loop takes at most {MAX_TABLES // 2} arguments")
        arguments = zip(cast.roles, bound.arguments, strict=True)
        constructors = tuple(
            recording.recording_view(
                role,
                position,
                ragged=argument.ragged,
                scratch=scratch,
                keyed=argument.keyed,
                by_element=not scratch and position in cast.by_element,
                near=position in cast.near,
            )
            for position, (role, argument) in enumerate(arguments)
        )
        self.compiled: Any = recording.make_recorder(bodies, constructors, scratch=scratch)

    def table_shapes(self, bound: BoundArguments) -> tuple[TableShape, ...]:
        """Return the shapes of the tables as recorded."""
        return self.cast.table_shapes(bound, by_row=self.scratch)

    def compile(self, bound: BoundArguments, indices: LoopIndices) -> None:
        """Compile for these arguments, so that errors are raised before any thread starts."""
        self.compiled.compile(self._types(bound, indices))

    def is_on_disk(self, bound: BoundArguments, indices: LoopIndices) -> bool:
        """Whether an earlier process has compiled it for these arguments."""
        return is_on_disk(self.compiled, self._types(bound, indices))

    def _types(self, bound: BoundArguments, indices: LoopIndices) -> tuple[Any, ...]:
        log = self._new_log(1, 1, self._row_dtype(bound))
        storages = self._storages(bound, log, _Copies())
        return tuple(map(typeof, (0, 1, indices.values, 0, 0, log.state, log.counts, storages)))

    def run(
        self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, memory: NDArray[Any] | None = None
    ) -> AccessRecords:
        """Record all tasks; uniform records are stored in `memory` if they fit.

        Raises
        ------
        TaskFailed
            If a task raises, typically because of an index out of range. Nothing has been written.
        """
        shapes = self.table_shapes(bound)
        dtype = self._row_dtype(bound)
        tasks = len(indices)
        probe = self._probe(bound, indices, team, dtype, range(min(tasks, _PROBE)))
        arity = int(probe.counts[0]) if tasks else 0
        pattern = probe.tags[:arity].copy()
        if _is_uniform(probe.counts, probe.tags, pattern):
            rows = _room(memory, (tasks, arity), dtype)
            if self._run_uniform(bound, indices, team, pattern, rows):
                tables = tuple(int(tag) >> 1 for tag in pattern)
                writes = tuple(bool(tag & 1) for tag in pattern)
                return UniformRecords(shapes, tables, writes, rows, checked=True)
        each = 1 + int(1.25 * probe.counts.mean()) if tasks else 1
        return self._run_sparse(bound, indices, team, shapes, dtype, each)

    def ranges(
        self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, bounds: NDArray[np.int64]
    ) -> RowRanges | None:
        """Record only the ranges of rows that chunks of consecutive tasks touch; None if some chunk touches too many.

        Raises
        ------
        TaskFailed
            If a task raises. Nothing has been written.
        """
        dtype, shapes = self._row_dtype(bound), self.table_shapes(bound)
        found = RowRanges.empty(len(bounds) - 1)
        shared = iter(list(units(bounds)))  # of which each thread takes the next
        fits = [True]

        def record(thread: int) -> None:
            copies, log, marks = _Copies(), self._new_log(BATCH, 4 * BATCH, dtype), Marks.of(shapes)
            for chunk, batches in shared:
                for tasks in batches:
                    used = self._call(bound, indices, tasks.start, len(tasks), log, copies)
                    if used > len(log.rows):
                        log = self._new_log(BATCH, 2 * used, dtype)
                        copies.forget()
                        used = self._call(bound, indices, tasks.start, len(tasks), log, copies)
                    logged = log.counts[: len(tasks)], log.rows[:used], log.tags[:used]
                    chunk = found.add(chunk, tasks, bounds, logged, marks)
                    fits[0] &= chunk >= 0
                    if not fits[0]:
                        return

        with stoppable() as stop:
            team.run(record, on_interrupt=stop)
        return found if fits[0] else None

    def check(self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam) -> None:
        """Run all tasks without keeping the records, only to check that no index is out of range.

        Raises
        ------
        TaskFailed
            If a task raises. Nothing has been written.
        """
        dtype = self._row_dtype(bound)
        chunks = iter(range(self._chunks(len(indices))))  # shared by the threads

        def run(thread: int) -> None:
            copies = _Copies()
            buffer = self._new_log(self._chunk, 0, dtype)  # accesses are only counted
            for chunk in chunks:
                first, count = self._chunk_bounds(chunk, len(indices))
                self._call(bound, indices, first, count, buffer, copies)

        with stoppable() as stop:
            team.run(run, on_interrupt=stop)

    def effort(self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam) -> tuple[float, float]:
        """Return the accesses of a task and the bytes of rows that it copies, averaged over a sample of tasks.

        With ghosts, tasks copy nothing.
        """
        log = self._probe_stretch(bound, indices, team, self._row_dtype(bound), range(min(len(indices), _PROBE)))
        tasks = max(len(log.counts), 1)
        if not self.scratch:
            return len(log.rows) / tasks, 0.0
        row_bytes = np.array([table.row_bytes for table in self.table_shapes(bound)], np.int64)
        return len(log.rows) / tasks, row_bytes[log.tags >> 1].sum() / tasks

    def run_some(self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam) -> AccessRecords:
        """Record a sample of tasks from the whole loop.

        Raises
        ------
        TaskFailed
            If a task raises.
        """
        shapes, dtype = self.table_shapes(bound), self._row_dtype(bound)
        logs = [self._probe_stretch(bound, indices, team, dtype, tasks) for tasks in some_tasks(len(indices))]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([log.counts for log in logs]))]).astype(np.int64)
        rows, tags = np.concatenate([log.rows for log in logs]), np.concatenate([log.tags for log in logs])
        return SparseRecords(shapes, offsets, rows, tags)

    def _probe_stretch(
        self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, dtype: type[np.integer], stretch: range
    ) -> _Log:
        """Record the first tasks of a stretch, not many more accesses than a crowded row is looked for in."""
        first = self._probe(bound, indices, team, dtype, stretch[:1])
        return self._probe(bound, indices, team, dtype, shortened(stretch, len(first.rows)))

    def _probe(
        self, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, dtype: type[np.integer], tasks: range
    ) -> _Log:
        """Record a sample of tasks on a thread of the team, so that the waiting thread can be interrupted."""
        logs: list[_Log] = []

        def record(_: int) -> None:
            capacity = 4 * len(tasks)
            logs.append(self._record_chunk(bound, indices, tasks.start, len(tasks), capacity, dtype, _Copies()))

        with stoppable() as stop:
            team.for_each(record, 1, on_interrupt=stop)
        return logs[0]

    def _run_uniform(
        self,
        bound: BoundArguments,
        indices: LoopIndices,
        team: ThreadTeam,
        pattern: NDArray[np.uint8],
        rows: NDArray[np.integer],
    ) -> bool:
        """Record directly into the array of rows; False as soon as a chunk does not match the pattern."""
        arity, dtype = len(pattern), rows.dtype.type
        flat = rows.reshape(-1)
        chunks = iter(range(self._chunks(len(indices))))  # shared by the threads
        follows = [True]

        def record(thread: int) -> None:
            # One buffer per thread: fresh memory for each chunk would cost more than recording it.
            buffer, copies = self._new_log(self._chunk, self._chunk * arity, dtype, rows=flat), _Copies()
            for chunk in chunks:
                first, count = self._chunk_bounds(chunk, len(indices))
                place = flat[first * arity : (first + count) * arity]
                log = _Log(buffer.state, buffer.counts[:count], place, buffer.tags[: count * arity])
                used = self._call(bound, indices, first, count, log, copies)
                if used != count * arity or not _is_uniform(log.counts, log.tags, pattern):
                    follows[0] = False
                if not follows[0]:
                    return

        with stoppable() as stop:
            team.run(record, on_interrupt=stop)
        return follows[0]

    def _run_sparse(
        self,
        bound: BoundArguments,
        indices: LoopIndices,
        team: ThreadTeam,
        shapes: tuple[TableShape, ...],
        dtype: type[np.integer],
        each: int,
    ) -> SparseRecords:
        """Record tasks that make about `each` accesses; a log's capacity follows the longest chunk so far."""
        logs: list[_Log | None] = [None] * self._chunks(len(indices))
        spare: list[_Copies] = []
        longest = [each]

        def record(chunk: int) -> None:
            first, count = self._chunk_bounds(chunk, len(indices))
            try:
                copies = spare.pop()
            except IndexError:
                copies = _Copies()
            log = self._record_chunk(bound, indices, first, count, longest[0] * count, dtype, copies)
            longest[0] = max(longest[0], -(-len(log.rows) // count))
            kept = merge_repeated(log.counts, log.rows, log.tags)
            logs[chunk] = _Log(log.state, log.counts, log.rows[:kept].copy(), log.tags[:kept].copy())
            spare.append(copies)

        with stoppable() as stop:
            team.for_each(record, len(logs), on_interrupt=stop)
        recorded = [log for log in logs if log is not None]
        ends = np.concatenate([[0], np.cumsum([len(log.rows) for log in recorded])]).astype(np.int64)
        offsets = np.zeros(len(indices) + 1, np.int64)
        rows, tags = np.empty(int(ends[-1]), dtype), np.empty(int(ends[-1]), np.uint8)

        def append(chunk: int) -> None:
            log = recorded[chunk]
            append_records(log.counts, log.rows, log.tags, chunk * self._chunk, ends[chunk], offsets, rows, tags)

        team.for_each(append, len(recorded))
        return SparseRecords(shapes, offsets, rows, tags)

    def _record_chunk(
        self,
        bound: BoundArguments,
        indices: LoopIndices,
        first: int,
        count: int,
        capacity: int,
        dtype: type[np.integer],
        copies: _Copies,
    ) -> _Log:
        log = self._new_log(count, capacity, dtype)
        used = self._call(bound, indices, first, count, log, copies)
        if used > capacity:  # now the required size is known
            log = self._new_log(count, used, dtype)
            copies.forget()
            used = self._call(bound, indices, first, count, log, copies)
        return _Log(log.state, log.counts, log.rows[:used], log.tags[:used])

    def _call(
        self, bound: BoundArguments, indices: LoopIndices, first: int, count: int, log: _Log, copies: _Copies
    ) -> int:
        while True:
            storages = self._storages(bound, log, copies)
            log.state[:] = 0
            try:
                return self.compiled(
                    indices.start,
                    indices.step,
                    indices.values,
                    first,
                    count,
                    log.state,
                    log.counts,
                    storages,
                )
            except RuntimeError as error:
                if error.args == (INTERRUPTED,):
                    raise BodyError("the loop was interrupted; no table was changed") from error
                if error.args == (ENDLESS,):
                    raise BodyError(
                        f"a while loop of the body had not ended after {MOST_TURNS:,} turns, and was given up before "
                        "anything was written: does it wait for what another iteration writes?"
                    ) from error
                if error.args != (SCRATCH_FULL,):
                    raise TaskFailed(int(log.state[TASK])) from error
                copies.grow()
            except Exception as error:
                raise TaskFailed(int(log.state[TASK])) from error

    def _new_log(
        self, count: int, capacity: int, dtype: type[np.integer], rows: NDArray[np.integer] | None = None
    ) -> _Log:
        state = np.zeros(SLOTS + self.tables, np.int64)
        buffer = np.empty(capacity, dtype) if rows is None else rows
        return _Log(state, np.zeros(count, np.int32), buffer, np.empty(capacity, np.uint8))

    def _storages(self, bound: BoundArguments, log: _Log, copies: _Copies) -> tuple[Any, ...]:
        storages: dict[int, Any] = {}
        for position, argument in enumerate(bound.arguments):
            if isinstance(argument, ScalarArgument):
                storages[position] = argument.value
            elif isinstance(argument, AccumulatorArgument):
                storages[position] = argument.dtype.type(0)
            elif self.cast.roles[position].is_recorded:
                same = bound.same[position]
                storages[position] = storages.get(same) or self._recording_storage(
                    same, argument, self.cast.tag(position), log, copies
                )
            elif self.cast.roles[position].is_relaxed:
                tag = SILENT | 2 * (len(self.cast.table_of) + position)
                storages[position] = self._recording_storage(position, argument, tag, log, copies)
            else:
                storages[position] = read_only(argument.raw)
        for position, group in self.cast.near.items():
            storages[position] = NearRecorded(storages[position], group_token(group))
        return bound.by_key([storages[position] for position in range(len(bound.arguments))])

    def _recording_storage(
        self, position: int, argument: TableArgument, tag: int, log: _Log, copies: _Copies
    ) -> tuple[Any, ...]:
        seen = (argument.raw, np.uint8(tag), log.rows, log.tags)
        if not self.scratch:
            return recording.Ghost(*seen, fill=fill_of(argument.storage.dtype))
        rows, stamps, slots = copies.of(position, argument)
        return recording.Scratch(*seen, state=log.state, copies=rows, stamps=stamps, slots=slots)

    def _chunks(self, tasks: int) -> int:
        return -(-tasks // self._chunk)

    def _chunk_bounds(self, chunk: int, tasks: int) -> tuple[int, int]:
        first = chunk * self._chunk
        return first, min(self._chunk, tasks - first)

    def _row_dtype(self, bound: BoundArguments) -> type[np.integer]:
        longest = max((shape.rows for shape in self.table_shapes(bound)), default=0)
        return np.int32 if longest <= np.iinfo(np.int32).max else np.int64


def _row_shape(argument: TableArgument) -> tuple[int, ...]:
    if argument.ragged:
        offsets = argument.raw[1]
        return (int(np.diff(offsets).max(initial=0)),)
    return argument.dense.shape[1:]


def _room(memory: NDArray[Any] | None, shape: tuple[int, int], dtype: type[np.integer]) -> NDArray[np.integer]:
    """Return an array, in the given memory if it is large enough."""
    needed = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if memory is None or memory.nbytes < needed or needed == 0:
        return np.empty(shape, dtype)
    return memory.reshape(-1).view(np.uint8)[:needed].view(dtype).reshape(shape)
