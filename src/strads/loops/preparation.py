"""From a call to a plan: reconnaissance and planning, done once and kept while they stay valid (DESIGN §4.3)."""

import contextlib
import sys
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.dds import RaggedArray, dvector
from strads.engine.executor import Schedule
from strads.engine.gather import as_records, gather_ragged, gather_rows
from strads.engine.roles import Role
from strads.loops.arguments import Argument, BoundArguments, ScalarArgument, TableArgument
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram
from strads.schedule.access import AccessRecords, SparseRecords
from strads.schedule.counting_sort import Cargo
from strads.schedule.parallel import index_dtype
from strads.schedule.planner import build_plan

_MAX_KEPT = 8


@dataclass(eq=False)
class PreparedLoop:
    """A plan for one call, and the tables that are stored in its order."""

    validity: "_Validity"
    schedule: Schedule
    records: AccessRecords | None  # kept only where every access is checked against them
    guards: tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.uint8]] | None
    reconnaissance_seconds: float = 0.0
    planning_seconds: float = 0.0
    copy_seconds: float = 0.0  # part of the planning
    aligned: dict[int, tuple[object, Any]] = field(default_factory=dict)  # position → (content key, copy)

    def aligned_storage(
        self, position: int, argument: TableArgument, team: ThreadTeam, target: NDArray[Any] | None = None
    ) -> Any:
        """Return the table in plan order; copied (into `target`) only when its content has changed."""
        key = argument.content_key()
        if position not in self.aligned or self.aligned[position][0] != key:
            self.aligned.pop(position, None)  # free the old copy first
            self.aligned[position] = (key, self._in_plan_order(argument, team, target))
        return self.aligned[position][1]

    def _in_plan_order(self, argument: TableArgument, team: ThreadTeam, target: NDArray[Any] | None) -> Any:
        storage = argument.storage
        indices = self._existing(len(storage))
        if isinstance(storage, RaggedArray):
            if len(storage) == 0:
                return storage.values, np.zeros(len(indices) + 1, np.int64)
            return gather_ragged(storage.values, storage.offsets, indices, team)
        if len(storage) == 0:
            return np.zeros((len(indices), *storage.shape[1:]), storage.dtype)
        runs = self.schedule.plan.offsets
        return gather_rows(np.ascontiguousarray(storage), indices, runs, team, target)

    def _existing(self, rows: int) -> NDArray[np.integer]:
        """Put row 0 where `A[k]` does not exist: reconnaissance has shown that task k does not read it."""
        indices = self.schedule.indices
        lowest, highest = self.validity.indices.bounds()
        if -rows <= lowest and highest < rows:
            return indices
        return np.where((-rows <= indices) & (indices < rows), indices, 0)


@dataclass(eq=False)
class _Validity:
    """What a plan was made for; it holds as long as this is unchanged."""

    program: "weakref.ref[LoopProgram]"
    indices: LoopIndices
    options: tuple[Any, ...]
    shapes: tuple[Any, ...]
    contents: tuple[Any, ...]
    tables: "tuple[weakref.ref[dvector], ...]"

    @classmethod
    def of(
        cls,
        program: LoopProgram,
        bound: BoundArguments,
        indices: LoopIndices,
        options: tuple[Any, ...],
    ) -> "_Validity":
        deciding = sorted(program.facts.deciding)
        tables = [argument.table for argument in bound.tables().values() if argument.table is not None]
        return cls(
            weakref.ref(program),
            indices,
            options,
            tuple((len(argument.storage), argument.values.shape) for argument in bound.tables().values()),
            tuple(_content(bound.arguments[position]) for position in deciding),
            tuple(weakref.ref(table, _drop_dead) for table in tables),
        )

    def same_as(self, other: "_Validity") -> bool:
        """Whether a plan for one serves the other."""
        mine, theirs = self._key(), other._key()
        return mine == theirs and self.indices == other.indices

    def is_outdated_by(self, other: "_Validity") -> bool:
        """Whether it is of the same loop over the same tables."""
        mine, theirs = (validity.tables for validity in (self, other))
        same_tables = [reference() for reference in mine] == [reference() for reference in theirs]
        same_loop = self.program() is other.program() and self.options == other.options
        return same_loop and same_tables and self.indices == other.indices

    def _key(self) -> tuple[Any, ...]:
        identities = tuple(id(reference()) for reference in self.tables)
        return id(self.program()), self.options, self.shapes, self.contents, identities


def _content(argument: Argument) -> object:
    if isinstance(argument, TableArgument):
        return argument.content_key()
    return argument.value if isinstance(argument, ScalarArgument) else None


# Most recently used last. Several threads may call loops: each statement that changes the list is atomic.
_kept: list[PreparedLoop] = []


def prepare(
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    team: ThreadTeam,
    *,
    strategy: str,
    seed: int,
    keep_records: bool,
) -> tuple[PreparedLoop, bool]:
    """Return a plan for this call, an earlier one if nothing that decides it has changed; and whether it is new.

    A body whose rows depend on values that the loop changes is recorded anew in every call.
    """
    validity = _Validity.of(program, bound, indices, (strategy, seed, team.size))
    kept = None if program.facts.dynamic else _find(validity, keep_records)
    if kept is not None:
        _remove(kept)
        _kept.append(kept)
        return kept, False
    prepared = _prepare(program, bound, validity, team, keep_records, _retire_outdated(validity))
    if not program.facts.dynamic:
        _kept.append(prepared)
        del _kept[:-_MAX_KEPT]
    return prepared, True


def _find(wanted: _Validity, keep_records: bool) -> PreparedLoop | None:
    for prepared in reversed(_kept.copy()):
        if prepared.validity.same_as(wanted) and (prepared.records is not None or not keep_records):
            return prepared
    return None


def _retire_outdated(validity: _Validity) -> list[NDArray[Any]]:
    """Free what outdated plans hold before the next one is made; return arrays of theirs that it may overwrite.

    They are those that died with the plans, but for this list: nobody has kept the statistics of a call, and no other
    thread runs the loop.
    """
    arrays = _remove_outdated(validity)
    counts = [sys.getrefcount(array) for array in [*arrays, object()]]  # nobody else holds the object, for comparison
    return [array for array, count in zip(arrays, counts[:-1], strict=True) if count == counts[-1] + 1]


def _remove_outdated(validity: _Validity) -> list[NDArray[Any]]:
    outdated = [prepared for prepared in _kept.copy() if prepared.validity.is_outdated_by(validity)]
    for prepared in outdated:
        _remove(prepared)
    copies = [copy for prepared in outdated for _, copy in prepared.aligned.values()]
    orders = [prepared.schedule.plan.order for prepared in outdated]
    return [array for array in [*copies, *orders] if isinstance(array, np.ndarray)]


def _remove(prepared: PreparedLoop) -> None:
    with contextlib.suppress(ValueError):  # another thread was faster
        _kept.remove(prepared)


def _drop_dead(table: "weakref.ref[dvector]", kept: list[PreparedLoop] = _kept) -> None:
    """Let go of the plans of a table that is gone, and of the copies that they hold.

    The list is a default argument because tables die, too, while the interpreter ends and globals are gone.
    """
    kept[:] = [prepared for prepared in kept if table not in prepared.validity.tables]


def _prepare(
    program: LoopProgram,
    bound: BoundArguments,
    validity: _Validity,
    team: ThreadTeam,
    keep_records: bool,
    spare: list[NDArray[Any]],
) -> PreparedLoop:
    indices = validity.indices
    strategy, seed, _ = validity.options
    program.compile_recorder(bound, indices)
    recycled = not (keep_records or program.facts.dynamic)
    start = time.perf_counter()
    targets = _targets(program, bound, len(indices), spare) if recycled else {}
    largest = max(targets, key=lambda position: targets[position].nbytes, default=-1)
    cargo = _cargo(bound.tables()[largest].dense, indices, targets[largest], spare) if targets else None
    spare.clear()  # what does not fit is freed
    records: AccessRecords | None = program.record(bound, indices, team, memory=targets.get(largest))
    recorded = time.perf_counter()
    assert records is not None
    plan = build_plan(records, threads=team.size, strategy=strategy, seed=seed, parallel=team.for_each, cargo=cargo)
    if program.cast.has_relaxed:
        plan = plan.with_lanes(team.size)
    guards = _guards(records) if program.facts.dynamic else None
    if not keep_records:
        records = None  # as large as the data: gone before tables are copied into plan order
    schedule = Schedule(plan, indices.at(plan.order))
    prepared = PreparedLoop(validity, schedule, records, guards, recorded - start)
    if cargo is not None and cargo.order is plan.order:
        prepared.aligned[largest] = bound.tables()[largest].content_key(), targets[largest]
    planned = time.perf_counter()
    for position in program.cast.with_role(Role.ALIGNED):
        argument = bound.arguments[position]
        assert isinstance(argument, TableArgument)
        prepared.aligned_storage(position, argument, team, targets.get(position))
    done = time.perf_counter()
    prepared.planning_seconds, prepared.copy_seconds = done - recorded, done - planned
    return prepared


def _targets(
    program: LoopProgram, bound: BoundArguments, tasks: int, spare: list[NDArray[Any]]
) -> dict[int, NDArray[Any]]:
    """Allocate the copies in plan order; in the place of `spare` arrays where these fit.

    Until they are filled, the largest holds the records: memory that the process has touched already costs half as
    much to write as fresh memory.
    """
    targets = {}
    for position in program.cast.with_role(Role.ALIGNED):
        storage = bound.tables()[position].storage
        if isinstance(storage, np.ndarray):
            targets[position] = _take((tasks, *storage.shape[1:]), storage.dtype, spare)
    return targets


def _take(shape: tuple[int, ...], dtype: np.dtype[Any], spare: list[NDArray[Any]]) -> NDArray[Any]:
    """Take an array off the spare ones, or make it."""
    fitting = [number for number, array in enumerate(spare) if (array.shape, array.dtype) == (shape, dtype)]
    return spare.pop(fitting[0]) if fitting else np.empty(shape, dtype)


def _cargo(table: NDArray[Any], indices: LoopIndices, target: NDArray[Any], spare: list[NDArray[Any]]) -> Cargo | None:
    """Return a table to be copied while the plan is made; None where its rows are not numbered as the tasks are."""
    if not indices.is_counting or len(table) < len(indices) or target.size == 0 or not table.flags.c_contiguous:
        return None
    tasks = len(indices)
    return Cargo(as_records(table), as_records(target), _take((tasks,), index_dtype(tasks), spare))


def _guards(records: AccessRecords) -> tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.uint8]]:
    """Records in compressed form, as compiled code checks against them."""
    if isinstance(records, SparseRecords):
        return records.offsets, records.rows, records.tags
    tasks, accesses = records.rows.shape
    accessed = zip(records.access_tables, records.access_writes, strict=True)
    tags = np.array([2 * table + write for table, write in accessed], np.uint8)
    offsets = np.arange(tasks + 1, dtype=np.int64) * accesses
    return offsets, np.ascontiguousarray(records.rows).reshape(-1), np.tile(tags, tasks)
