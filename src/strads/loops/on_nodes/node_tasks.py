"""Tasks of a loop on a node, recorded in the fastest way that the body allows (thesis §7.2.2)."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, gather_all_rows
from strads.engine.views.keyed import NO_SUCH_KEY
from strads.engine.views.roles import Checking, Role
from strads.errors import BodyError, BodyIndexError, BodyKeyError
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.binding import bind, shards_of
from strads.loops.on_nodes.specs import LoopSpec
from strads.loops.program import LoopProgram, Variant
from strads.loops.reconnaissance import Reconnaissance
from strads.loops.recorder import Recorder, TaskFailed
from strads.schedule.choice import middle_of, sample_stride
from strads.schedule.loop import Loop
from strads.schedule.loop_sample import LoopSample, prefetch_distance
from strads.schedule.plan import Plan
from strads.schedule.planner import plan_of_ranges
from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape
from strads.schedule.records.hot_rows import hot_row

_MAX_COPIED = 4096  # bytes of rows that a task may copy
_CHECKED = 16  # bytes that can be copied in the time that an index check takes
CACHED = 1 << 20  # bytes of tables that stay in a core's cache, whatever the order of the tasks
_MANY_ACCESSES = 32  # of a task: recording them takes longer than the task
# A loop is not recorded if each of its tasks copies so many bytes of rows, and all together so many times its tables.
_EXPENSIVE_COPY, _EXPENSIVE_COPIES = 1 << 16, 64


@dataclass(frozen=True, eq=False)
class NodeTasks:
    """Tasks of a loop on a node."""

    node: Node
    team: ThreadTeam
    program: LoopProgram
    bound: BoundArguments
    shards: dict[int, Shard]  # the node's part of each distributed table, by the position of the argument
    indices: LoopIndices

    @classmethod
    def of(
        cls,
        node: Node,
        spec: LoopSpec,
        arguments: tuple[Any, ...],
        team: ThreadTeam | None = None,
        *,
        variant: Variant | None = None,
    ) -> "NodeTasks":
        """Bind a loop to a node; see `bind`."""
        bound, program = bind(node, spec, arguments, variant)
        return cls(node, team or node.team, program, bound, shards_of(node, arguments), spec.indices)

    def over(self, indices: LoopIndices) -> "NodeTasks":
        """Return other tasks of the loop."""
        return replace(self, indices=indices)

    def part(self, tasks: range) -> "NodeTasks":
        """Return the tasks at consecutive positions."""
        return self.over(self.indices.part(tasks.start, tasks.stop))

    @property
    def tables(self) -> tuple[TableShape, ...]:
        """Shapes of the recorded tables."""
        return self.program.argument_roles.table_shapes(self.bound)

    @property
    def own_rows(self) -> frozenset[int]:
        """Written tables of which each task accesses one row, or a block of rows, that no other task does."""
        if not self.indices.are_distinct_rows:
            return frozenset()
        return frozenset(table for table, fits in self.program.facts.own_rows.items() if self.bound.fit(fits))

    @property
    def replica_bytes(self) -> int:
        """Size of a replica of all relaxed tables and copied counters."""
        relaxed = self.program.argument_roles.with_role(Role.RELAXED, Role.CHECKED_RELAXED)
        return sum(self.bound.tables[position].storage.nbytes for position in relaxed)

    @property
    def share_no_written_rows(self) -> bool:
        """Whether the body proves that tasks share no row that one of them writes, but for rows of replicas."""
        argument_roles = self.program.argument_roles
        return self.own_rows.issuperset(argument_roles.table_of) and not argument_roles.with_role(Role.GUARDED)

    def reconnaissance(self, recorder: Recorder | None = None) -> Reconnaissance:
        """Return a reconnaissance of the tasks, with the fastest recorder unless another is given."""
        recorder = recorder or self.program.compile_recorder(self.bound, self.indices)
        return Reconnaissance(recorder, self.bound, self.indices, self.team)

    def gather_all_rows(self) -> None:
        """Fetch all rows of all tables from the other nodes (a collective)."""
        gather_all_rows(self.node, *self.shards.values())

    def replicate_read_tables(self, checking: Checking = Checking.OWNERS) -> None:
        """Copy to every node the tables of which tasks may read any row, in reconnaissance or in a run with `checking`.

        A run that checks every access reads tables in place which are otherwise copied into plan order.
        """
        if not self.shards:
            return
        everywhere = (Role.READ, Role.CHECKED, Role.SEGMENTED, Role.OFFSETS, Role.RELAXED, Role.CHECKED_RELAXED)
        roles, argument_roles = enumerate(self.program.live_roles(self.bound, checking)), self.program.argument_roles
        in_run = {
            p for p, role in roles if role in everywhere and p not in argument_roles.table_of
        }  # recorded rows move
        wanted = in_run.union(argument_roles.with_role(*everywhere))
        gather_all_rows(self.node, *(self.shards[position] for position in sorted(wanted) if position in self.shards))

    def record(self, memory: NDArray[Any] | None = None, *, keep: bool = True, most: float = inf) -> AccessRecords:
        """Record with ghosts if the body allows it; otherwise with the real rows of the tables, which are fetched.

        Records may be stored in `memory`, whatever its dtype. Without `keep` they are empty: only indices are checked.

        Raises
        ------
        RecordsTooLarge
            On one node, if irregular tasks make more than `most` accesses.
        BodyIndexError, BodyKeyError, BodyError
            If a task fails; nothing has been written.
        """
        records = self._record(memory, keep, most, is_trial=False)
        assert records is not None
        return records

    def record_if_possible(
        self, memory: NDArray[Any] | None = None, *, keep: bool = True, most: float = inf
    ) -> AccessRecords | None:
        """Record as `record` does; None if a task fails: with other outcomes of its branches it may not."""
        return self._record(memory, keep, most, is_trial=True)

    def _record(self, memory: NDArray[Any] | None, keep: bool, most: float, *, is_trial: bool) -> AccessRecords | None:
        run = self.reconnaissance()
        if run.recorder.scratch or self.program.argument_roles.read_in_ghosts:
            self.gather_all_rows()
        while True:
            records, failure, is_last = None, None, run.recorder.scratch
            try:
                records = run.run(memory, most) if keep else run.check()
            except TaskFailed as found:
                failure = found
            if is_trial or not is_last:
                if all(self.node.comm.allgather(failure is None)):
                    return records
                self.gather_all_rows()
            if is_trial:
                facts = self.program.facts
                if is_last or not (facts.unproved_tables or facts.volatile_parts):
                    return None
            elif failure is None:
                return records
            else:  # either a real failure, or an artefact of made-up values: real rows tell
                self._explain(failure, is_real=is_last)
            run = self.reconnaissance(self.program.compile_scratch_recorder(self.bound, self.indices))

    def _explain(self, failure: TaskFailed, *, is_real: bool) -> None:
        """Raise the error of a failed task; without `is_real`, only if it fails in the interpreter, too."""
        index, cause = self.indices[failure.task], failure.__cause__
        self.program.explain(self.bound, index)
        if is_real:
            kind: type[Exception] = BodyIndexError if isinstance(cause, IndexError) else BodyError
            if isinstance(cause, KeyError) and cause.args == (NO_SUCH_KEY,):
                kind = BodyKeyError
            raise kind(f"task {index} raised {type(cause).__name__}: {cause}; no table was changed") from cause

    def plan_by_ranges(self, loop_sample: LoopSample, *, in_order: bool) -> Plan | None:
        """Plan a long loop from the ranges of rows that its chunks touch: records would take time and fill the memory.

        None if tasks in the middle of the loop are not as regular, or if a task fails.
        """
        argument_roles, keeps_order = self.program.argument_roles, loop_sample.keeps_order
        if (
            argument_roles.near
            or argument_roles.has_relaxed
            or argument_roles.with_role(Role.GUARDED)
            or self.bound.sums_floats
        ):
            return None  # ownership needs all records, and sums depend on the jobs, which would differ on a cluster
        bounds = loop_sample.chunks_in_order if keeps_order else loop_sample.colourable_chunks
        if bounds is None:
            return None
        try:
            ranges = self.reconnaissance().ranges(bounds)
        except TaskFailed:
            return None
        plan = None if ranges is None else plan_of_ranges(bounds, ranges, in_order=in_order, keeps_order=keeps_order)
        if plan is None and not keeps_order:
            loop_sample.rule_out_colouring()
        return plan

    def record_some(self) -> AccessRecords | None:
        """Record tasks that are only some of the loop; None if one fails."""
        try:
            return self.reconnaissance().run()
        except TaskFailed:
            return None

    def record_middle(self) -> AccessRecords | None:
        """Record the tasks in the middle of a long loop; None if it is not long, or if a task fails."""
        middle = middle_of(len(self.indices))
        return self.part(middle).record_some() if middle else None

    def record_spread(self) -> AccessRecords | None:
        """Record tasks from all over the loop; None if one fails."""
        return self.over(self.indices.every(sample_stride(len(self.indices)))).record_some()

    @cached_property
    def sample(self) -> SparseRecords | None:
        """Records of a sample of the tasks, as they were when this was first asked; None if one fails."""
        try:
            return self.reconnaissance().sample()
        except TaskFailed:
            return None

    def _effort(self) -> tuple[float, float, bool] | None:
        """Return the accesses of a sampled task, the bytes of rows that it copies, and whether it works on copies.

        None if one fails.
        """
        some, recorder = self.sample, self.program.compile_recorder(self.bound, self.indices)
        if some is None:
            return None
        row_bytes = np.array([table.row_bytes * recorder.scratch for table in some.tables], np.int64)
        tasks = max(some.tasks, 1)
        return len(some.rows) / tasks, int(row_bytes[some.tags >> 1].sum()) / tasks, recorder.scratch

    def prefetch_distance(self, loop: Loop) -> int:
        """Return by how many tasks a run in sequence fetches rows ahead; see `loop_sample.prefetch_distance`."""
        if sum(table.rows * table.row_bytes for table in self.tables) <= CACHED:
            return 0
        some = self.sample if self.program.can_prefetch(self.bound, self.indices) else None
        return 0 if some is None else prefetch_distance(some, loop)

    def find_hot_row(
        self, some: AccessRecords | None, ignoring: frozenset[int] = frozenset(), *, in_order: bool = False
    ) -> str | None:
        """Name the written row that most sampled tasks touch, `ignoring` tables at positions; None if there is none."""
        numbers = frozenset(self.program.argument_roles.table_of[position] for position in ignoring)
        return None if some is None else hot_row(some, numbers, in_order=in_order)

    def should_check_in_run(self, tasks: int, *, changes: bool) -> bool:
        """Whether a loop that runs in sequence should check every index in the run rather than all of them beforehand.

        Checks keep the compiler from vectorizing loops, and such a run keeps a copy of what it writes; reconnaissance
        takes about as long as a run or, if tasks copy rows, much longer. `tasks`: of the whole loop. `changes`: whether
        the data that determine the rows change from call to call, as far as is known.
        """
        program, bound = self.program, self.bound
        if changes and program.writes_little(bound, tasks):
            return True
        effort = self._effort()
        if effort is None:
            return True
        accesses, copied, has_copies = effort
        if accesses > _MANY_ACCESSES and program.checks_are_cheap(bound, tasks):
            return True
        if has_copies and program.same_bits_with_checks(bound) and program.written_bytes(bound) <= accesses * tasks:
            return True  # the copy of what is written, which such a run keeps, is negligible beside the tasks
        is_copied_faster = program.written_bytes(bound) <= _CHECKED * accesses * tasks
        return copied > _MAX_COPIED or (changes and is_copied_faster)

    def copies_too_much(self) -> str | None:
        """Return why recording would spend its time on copying rows: tasks copy long rows of which they use little.

        None if they do not, or if a task fails. Where tasks use whole rows there are about as many tasks as rows, so
        that together they copy each table only a few times.
        """
        if not self.program.compile_recorder(self.bound, self.indices).scratch:
            return None
        effort = self._effort()
        if effort is None:
            return None
        _, copied, _ = effort
        size = sum(table.rows * table.row_bytes for table in self.tables)
        if copied < _EXPENSIVE_COPY or copied * len(self.indices) < _EXPENSIVE_COPIES * size:
            return None
        return f"to record it would copy {copied / 1024:,.0f} KiB of rows for each task"
