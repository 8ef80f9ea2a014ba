"""Data read in loop order, copied into plan order: rows A[k], and segments A[P[k]:P[k + 1]]."""

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds import RaggedArray
from strads.dds.ragged import offsets_of, read_only
from strads.dds.shard import fetch_rows
from strads.engine.plans.gather import gather_ragged, gather_rows, gather_segments
from strads.engine.views.live import Aligned, Offsets, Segmented
from strads.engine.views.roles import Role
from strads.loops.arguments import TableArgument
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.specs import NodeLoop, Segments

IN_PLAN_ORDER = (Role.ALIGNED, Role.SEGMENTED, Role.OFFSETS)
_MAX_COPIED = 2  # times the number of rows of a table: segments may overlap


class InPlanOrder:
    """The tables of a loop that are stored in plan order on a node."""

    def __init__(self, loop: NodeLoop, tasks: NodeTasks, roles: Sequence[Role]):
        self._loop, self._tasks, self._roles = loop, tasks, roles
        self._tables = tasks.bound.tables
        self._offsets_of = tasks.program.facts.segments  # position of a segmented table → position of its offsets

    def update(self, contents: Mapping[int, Hashable]) -> float:
        """Copy tables that were not copied yet or have changed since; returns the seconds taken."""
        start = time.perf_counter()
        for position, role in enumerate(self._roles):
            if role is Role.ALIGNED and not self._lies_in_order(position):
                self._update(position, contents[position])
            elif role is Role.OFFSETS:
                self._segments_of(position, contents[position])
            elif role is Role.SEGMENTED:
                offsets = self._offsets_of[position]
                segments = self._segments_of(offsets, contents[offsets])
                self._update(position, (contents[position], contents[offsets]), segments)
        return time.perf_counter() - start

    def storage(self, position: int) -> Any:
        """Return the storage that replaces a table in the run."""
        argument = self._tables[position]
        rows = len(argument.storage)
        if self._roles[position] is Role.OFFSETS:
            return Offsets(read_only(self._loop.segments[position].ends), rows)
        if self._roles[position] is Role.ALIGNED:
            data = self._in_place(argument) if self._lies_in_order(position) else self._loop.aligned[position][1]
            return Aligned(read_only(data), rows)
        segments = self._loop.segments[self._offsets_of[position]]
        data, shift = self._loop.aligned[position][1], segments.shift
        if data is None:
            data, shift = np.ascontiguousarray(argument.dense), np.zeros_like(shift)
            if segments.ends.min(initial=0) < 0:  # −1 is the last row
                data, shift = np.concatenate([data, data]), shift + rows
        return Segmented(read_only(data), shift, rows)

    def _update(self, position: int, content: Hashable, segments: Segments | None = None) -> None:
        loop = self._loop
        if position in loop.aligned and loop.aligned[position][0] == content:
            return
        old = loop.aligned.pop(position, None)
        argument = self._tables[position]
        if segments is not None:
            loop.aligned[position] = content, self._moved(argument, segments)
            return
        if old is not None and isinstance(old[1], np.ndarray):
            loop.memory[position] = old[1]  # same shape: it is part of the key
        loop.aligned[position] = content, self._rows(position, argument)

    def _lies_in_order(self, position: int) -> bool:
        """Whether the rows of a table are already in plan order: all of them, or a contiguous part."""
        if not self._loop.executable.in_loop_order or position in self._tasks.shards:
            return False
        indices, rows = self._tasks.indices, len(self._tables[position].storage)
        low, high = indices.bounds()
        return indices.is_counting or (indices.step == 1 and low >= 0 and high < rows)

    def _in_place(self, argument: TableArgument) -> Any:
        """Return the rows from that of the first task on."""
        start = self._tasks.indices.start
        if isinstance(argument.storage, RaggedArray):
            values, offsets = argument.raw
            return values, offsets[start:]
        return argument.raw[start:]

    def _indices(self) -> NDArray[np.integer]:
        """Return the loop index of each row that is stored: in the order of the loop if the run follows it."""
        indices = self._tasks.indices
        if self._loop.executable.in_loop_order:
            return indices.at(np.arange(len(indices)))
        return indices.at(self._loop.part.tasks)

    def _rows(self, position: int, argument: TableArgument) -> Any:
        """Rows of `A[k]` in the order of the plan; row 0 is a placeholder for those that no task reads."""
        storage, indices = argument.storage, self._indices()
        rows = len(storage)
        if rows == 0:
            if isinstance(storage, RaggedArray):
                return storage.values, np.zeros(len(indices) + 1, np.int64)
            return np.zeros((len(indices), *storage.shape[1:]), storage.dtype)
        lowest, highest = self._tasks.indices.bounds()
        if lowest < -rows or highest >= rows:
            indices = np.where((-rows <= indices) & (indices < rows), indices, 0)
        shard = self._tasks.shards.get(position)
        if shard is not None:
            found = fetch_rows(self._tasks.node, shard, np.where(indices < 0, indices + rows, indices).astype(np.int64))
            return (found.values, found.offsets) if isinstance(found, RaggedArray) else found
        if isinstance(storage, RaggedArray):
            return gather_ragged(storage.values, storage.offsets, indices, self._tasks.team)
        runs, room = self._loop.part.plan.offsets, self._loop.memory.pop(position, None)
        return gather_rows(np.ascontiguousarray(storage), indices, runs, self._tasks.team, room)

    def _segments_of(self, position: int, content: Hashable) -> Segments:
        """Return the segments given by the offsets, in plan order."""
        known = self._loop.segments.get(position)
        if known is None or known.content != content:
            offsets, indices = self._tables[position].dense, self._indices()
            rows = len(offsets)
            inside = (-rows <= indices) & (indices < rows) & (-rows <= indices + 1) & (indices + 1 < rows)
            first = np.where(inside, indices, 0)  # 0 for a task that reads none
            ends = np.stack([offsets[first], offsets[np.where(inside, indices + 1, 0)]], 1)
            starts = ends[:, 0].astype(np.int64)
            bounds = offsets_of(np.maximum(ends[:, 1].astype(np.int64) - starts, 0))
            known = self._loop.segments[position] = Segments(content, ends, bounds, bounds[:-1] - starts)
        return known

    def _moved(self, argument: TableArgument, segments: Segments) -> NDArray[Any] | None:
        """Return the segments of a table, concatenated; None if copying the table is not worthwhile."""
        table = argument.dense
        starts, lengths = segments.bounds[:-1] - segments.shift, np.diff(segments.bounds)
        there = lengths > 0
        inside = segments.ends.min(initial=0) >= 0 and np.all((starts + lengths)[there] <= len(table))
        if not inside or segments.bounds[-1] > _MAX_COPIED * len(table):
            return None
        return gather_segments(np.ascontiguousarray(table), starts, segments.bounds, self._tasks.team)
