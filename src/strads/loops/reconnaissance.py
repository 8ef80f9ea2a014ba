"""Reconnaissance: one read-only run of a loop that finds which rows each task touches (thesis §7.2.2)."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.engine.stopping import stoppable
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.recorder import Copies, Log, Recorder, row_dtype
from strads.schedule.records.access import MAX_UNIFORM, AccessRecords, SparseRecords, TableShape, UniformRecords
from strads.schedule.records.hot_rows import shortened, some_tasks
from strads.schedule.records.merging import append_records, merge_repeated
from strads.schedule.records.parts import as_uniform, nothing_recorded
from strads.schedule.records.row_ranges import BATCH, Marks, RowRanges, units

_PROBE = 64  # tasks whose accesses suggest a pattern for all
_ROOM = 1 << 26  # accesses in one log: tasks that make more are recorded some at a time


class RecordsTooLarge(Exception):
    """The records of a loop turned out larger than they may be."""


@dataclass(frozen=True)
class Reconnaissance:
    """A reconnaissance of some tasks.

    Each method raises `TaskFailed` if a task raises, typically because of an index out of range; none writes a table.
    """

    recorder: Recorder
    bound: BoundArguments
    indices: LoopIndices
    team: ThreadTeam

    @cached_property
    def tables(self) -> tuple[TableShape, ...]:
        """Shapes of the tables as recorded."""
        return self.recorder.table_shapes(self.bound)

    def run(self, memory: NDArray[Any] | None = None, most: float = inf) -> AccessRecords:
        """Record all tasks; uniform records are stored in `memory` if they fit.

        Raises
        ------
        RecordsTooLarge
            If tasks make different numbers of accesses, and all together more than `most` different ones.
        """
        tasks = len(self.indices)
        probe = self._probe(range(min(tasks, _PROBE)))[0]
        pattern = probe.tags[: probe.counts[0] if tasks else 0].copy()
        if len(pattern) <= MAX_UNIFORM and _is_uniform(probe.counts, probe.tags, pattern):
            rows = _room(memory, (tasks, len(pattern)), self._dtype)
            if rows is not None and self._run_uniform(pattern, rows):
                tables = tuple(int(tag) >> 1 for tag in pattern)
                writes = tuple(bool(tag & 1) for tag in pattern)
                return UniformRecords(self.tables, tables, writes, rows)
        found = self._run_sparse(1 + int(1.25 * probe.counts.mean()) if tasks else 1, most)
        return as_uniform(found) if len(pattern) > MAX_UNIFORM else found

    def ranges(self, bounds: NDArray[np.int64]) -> RowRanges | None:
        """Record only the ranges of rows that chunks of consecutive tasks touch; None if some chunk touches too many.

        `bounds`: (chunks + 1,), the bounds of the chunks.
        """
        found = RowRanges.empty(len(bounds) - 1)
        shared = iter(list(units(bounds)))  # of which each thread takes the next
        fits = [True]

        def record(_: int) -> None:
            copies, log, marks = Copies(), self._new_log(BATCH, 4 * BATCH), Marks.of(self.tables)
            for chunk, batches in shared:
                for tasks in batches:
                    log, used = self._record(tasks.start, len(tasks), log, copies)
                    logged = log.counts[: len(tasks)], log.rows[:used], log.tags[:used]
                    chunk = found.add(chunk, tasks, bounds, logged, marks)
                    if chunk < 0:
                        fits[0] = False  # threads only ever write False: no thread undoes what another has found
                    if not fits[0]:
                        return

        self._on_threads(record)
        return found if fits[0] else None

    def check(self) -> AccessRecords:
        """Run all tasks only to check that no index is out of range; returns empty records."""
        chunks = iter(self._chunks())  # shared by the threads

        def run(_: int) -> None:
            copies, log = Copies(), self._new_log(self.recorder.chunk, 0)  # accesses are only counted
            for tasks in chunks:
                self._run(tasks.start, len(tasks), log, copies)

        self._on_threads(run)
        return nothing_recorded(self.tables, len(self.indices))

    def sample(self) -> SparseRecords:
        """Record a sample of tasks from the whole loop."""
        logs = self._probe(*some_tasks(len(self.indices)))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([log.counts for log in logs]))]).astype(np.int64)
        rows, tags = np.concatenate([log.rows for log in logs]), np.concatenate([log.tags for log in logs])
        return SparseRecords(self.tables, offsets, rows, tags)

    def _probe(self, *stretches: range) -> list[Log]:
        """Record the first tasks of each stretch: only as many as `hot_row` needs if some make many accesses."""
        logs = list[Log]()

        def record(_: int) -> None:
            copies = Copies()
            for stretch in stretches:
                tasks = shortened(stretch, len(self._record_chunk(stretch[:1], 4, copies).rows))
                log = self._new_log(len(tasks), 4 * len(tasks))
                used = self._run(tasks.start, len(tasks), log, copies)
                if used <= len(log.rows):
                    logs.append(Log(log.state, log.counts, log.rows[:used], log.tags[:used]))
                else:  # only the counts of accesses are known
                    tasks = shortened(tasks, log.counts)
                    logs.append(self._record_chunk(tasks, int(log.counts[: len(tasks)].sum()), copies))

        self._for_each(record, 1)  # on a thread of the team, so that the waiting thread can be interrupted
        return logs

    def _run_uniform(self, pattern: NDArray[np.uint8], rows: NDArray[np.integer]) -> bool:
        """Record directly into the array of rows; False as soon as a chunk does not match the pattern."""
        arity, flat = len(pattern), rows.reshape(-1)
        chunks = iter(self._chunks())  # shared by the threads
        follows = [True]

        def record(_: int) -> None:
            # One buffer per thread: fresh memory for each chunk would cost more than recording it.
            copies, log = Copies(), self._new_log(self.recorder.chunk, 0)
            tags = np.empty(self.recorder.chunk * arity, np.uint8)
            for tasks in chunks:
                count, used = len(tasks), len(tasks) * arity
                place = flat[tasks.start * arity : tasks.stop * arity]
                part = Log(log.state, log.counts[:count], place, tags[:used])
                matches = self._run(tasks.start, count, part, copies) == used
                if not (matches and _is_uniform(part.counts, part.tags, pattern)):
                    follows[0] = False  # as in `ranges`
                if not follows[0]:
                    return

        self._on_threads(record)
        return follows[0]

    def _run_sparse(self, each: int, most: float) -> SparseRecords:
        """Record tasks that make about `each` accesses; a log's capacity follows the longest chunk so far."""
        chunks = self._chunks()
        logs: list[Log | None] = [None] * len(chunks)
        spare = [Copies() for _ in range(self.team.size)]  # one for each thread
        longest, total, counting = [each], [0], threading.Lock()

        def merge(log: Log, used: int) -> Log:
            kept = merge_repeated(log.counts, log.rows[:used], log.tags[:used])
            with counting:
                total[0] += kept
                if total[0] > most:
                    raise RecordsTooLarge
            return Log(log.state, log.counts, log.rows[:kept].copy(), log.tags[:kept].copy())

        def merged_log(tasks: range, copies: Copies) -> Log:
            log = self._new_log(len(tasks), min(longest[0] * len(tasks), _ROOM))
            used = self._run(tasks.start, len(tasks), log, copies)
            longest[0] = max(longest[0], -(-used // len(tasks)))
            if used <= len(log.rows):
                return merge(log, used)
            counts, of_room = log.counts, np.cumsum(log.counts, dtype=np.int64) // _ROOM
            del log
            bounds = [0, *(np.flatnonzero(np.diff(of_room)) + 1).tolist(), len(tasks)]
            parts = list[Log]()  # merged one by one: all together may be too large
            for first, last in pairwise(bounds):
                part = self._record_chunk(tasks[first:last], int(counts[first:last].sum()), copies)
                parts.append(merge(part, len(part.rows)))
            columns = zip(*((part.counts, part.rows, part.tags) for part in parts), strict=True)
            return Log(parts[0].state, *(np.concatenate(column) for column in columns))

        def record(chunk: int) -> None:
            copies = spare.pop()
            try:
                logs[chunk] = merged_log(chunks[chunk], copies)
            finally:
                spare.append(copies)

        self._for_each(record, len(chunks))
        recorded = [log for log in logs if log is not None]
        ends = np.concatenate([[0], np.cumsum([len(log.rows) for log in recorded])]).astype(np.int64)
        offsets = np.zeros(len(self.indices) + 1, np.int64)
        rows, tags = np.empty(int(ends[-1]), self._dtype), np.empty(int(ends[-1]), np.uint8)

        def append(chunk: int) -> None:
            log = recorded[chunk]
            append_records(log.counts, log.rows, log.tags, chunks[chunk].start, ends[chunk], offsets, rows, tags)

        self.team.for_each(append, len(recorded))
        return SparseRecords(self.tables, offsets, rows, tags)

    def _record_chunk(self, tasks: range, capacity: int, copies: Copies) -> Log:
        log, used = self._record(tasks.start, len(tasks), self._new_log(len(tasks), capacity), copies)
        return Log(log.state, log.counts, log.rows[:used], log.tags[:used])

    def _record(self, first: int, tasks: int, log: Log, copies: Copies) -> tuple[Log, int]:
        """Record tasks, in a larger log if theirs is too small; returns the log and the number of accesses."""
        used = self._run(first, tasks, log, copies)
        if used > len(log.rows):  # now the required size is known
            log = self._new_log(len(log.counts), 2 * used)
            used = self._run(first, tasks, log, copies)
        return log, used

    def _run(self, first: int, tasks: int, log: Log, copies: Copies) -> int:
        return self.recorder.run(self.bound, self.indices, first, tasks, log, copies)

    @cached_property
    def _dtype(self) -> type[np.integer]:
        return row_dtype(self.tables)

    def _new_log(self, tasks: int, capacity: int) -> Log:
        return self.recorder.new_log(tasks, np.empty(capacity, self._dtype))

    def _chunks(self) -> list[range]:
        """Return the positions of the tasks that a thread records at a time."""
        size, tasks = self.recorder.chunk, range(len(self.indices))
        return [tasks[first : first + size] for first in tasks[::size]]

    def _on_threads(self, work: Callable[[int], None]) -> None:
        """Run `work` on each thread; Ctrl-C stops them."""
        with stoppable() as stop:
            self.team.run(work, on_interrupt=stop)

    def _for_each(self, work: Callable[[int], None], count: int) -> None:
        """Run `work` for each number; Ctrl-C stops the threads."""
        with stoppable() as stop:
            self.team.for_each(work, count, on_interrupt=stop)


def _is_uniform(counts: NDArray[np.int32], tags: NDArray[np.uint8], pattern: NDArray[np.uint8]) -> bool:
    """Whether every task of a chunk logged exactly the pattern of tags."""
    arity = len(pattern)
    if np.any(counts != arity):
        return False
    repeated = len(tags) - arity
    return np.array_equal(tags[:arity], pattern) and np.array_equal(tags[arity:], tags[:repeated])


def _room(memory: NDArray[Any] | None, shape: tuple[int, int], dtype: type[np.integer]) -> NDArray[np.integer] | None:
    """Return an array, in the given memory if it is large enough; None if the system grants none of that size."""
    needed = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if memory is None or memory.nbytes < needed or needed == 0:
        with suppress(MemoryError):
            return np.empty(shape, dtype)
        return None
    return memory.reshape(-1).view(np.uint8)[:needed].view(dtype).reshape(shape)
