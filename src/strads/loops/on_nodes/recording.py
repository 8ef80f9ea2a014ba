"""Reconnaissance on a node: its tasks, recorded in the fastest way that the body allows (thesis §7.2.2)."""

from typing import Any

from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, complete
from strads.engine.views.keyed import NO_SUCH_KEY
from strads.engine.views.roles import Checking, Role
from strads.errors import BodyError, BodyIndexError, BodyKeyError
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.program import LoopProgram
from strads.loops.reconnaissance import Recorder, TaskFailed
from strads.schedule.choice import middle_of
from strads.schedule.foresight import Foresight
from strads.schedule.plan import Plan
from strads.schedule.planner import plan_of_ranges
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.crowding import crowded_row
from strads.schedule.records.parts import nothing_recorded

_MOST_COPIED = 4096  # bytes of rows that a task may copy
_MANY_ACCESSES = 32  # of a task: recording them takes longer than the task
_DEAR_COPY, _TIMES = 1 << 16, 64  # not recorded: tasks that copy more bytes, in all so many times the tables
_LONG_ROW = 64  # bytes: working on such a row takes longer than recording it


def record(
    node: Node,
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    shards: dict[int, Shard],
    team: ThreadTeam,
    memory: NDArray[Any] | None = None,
    *,
    keep: bool = True,
) -> AccessRecords:
    """Record with ghosts if the body allows it; otherwise with the real rows of the tables, which are fetched first.

    Records may be stored in `memory`, whatever its dtype. Without `keep` they are empty: only indices are checked.

    Raises
    ------
    BodyIndexError, BodyKeyError, BodyError
        If a task fails; nothing has been written.
    """
    recorder, records = program.compile_recorder(bound, indices), None
    if not recorder.scratch:
        try:
            records = _run(recorder, bound, indices, team, memory, keep)
        except TaskFailed:  # either a real failure, or an artefact of made-up values: real rows will tell
            records = None
    if all(node.comm.allgather(records is not None)):
        assert records is not None
        return records
    complete(node, *shards.values())
    if not recorder.scratch:
        try:
            return _recorded(program, recorder, bound, indices, team, keep)
        except _OnlyGhostsFailed:
            pass
    return _recorded(program, program.compile_scratch_recorder(bound, indices), bound, indices, team, keep)


def record_with_outcomes(
    node: Node,
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    shards: dict[int, Shard],
    team: ThreadTeam,
    memory: NDArray[Any] | None = None,
    *,
    keep: bool = True,
) -> AccessRecords | None:
    """Record with chosen outcomes of branches; None if a task fails: with other outcomes it may not.

    Arguments are those of `record`.
    """
    recorder = program.compile_recorder(bound, indices)
    if recorder.scratch:
        complete(node, *shards.values())
    while True:
        try:
            records = _run(recorder, bound, indices, team, memory, keep)
        except TaskFailed:
            records = None
        if all(node.comm.allgather(records is not None)):
            return records
        made_up = program.facts.volatile_reads or program.facts.volatile_parts
        if recorder.scratch or not made_up:
            return None
        complete(node, *shards.values())
        recorder = program.compile_scratch_recorder(bound, indices)


def _run(
    recorder: Recorder,
    bound: BoundArguments,
    indices: LoopIndices,
    team: ThreadTeam,
    memory: NDArray[Any] | None,
    keep: bool,
) -> AccessRecords:
    if keep:
        return recorder.run(bound, indices, team, memory)
    recorder.check(bound, indices, team)
    return nothing_recorded(recorder.cast.table_shapes(bound), len(indices))


def is_checked_in_run(
    program: LoopProgram, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, *, changes: bool
) -> bool:
    """Whether a loop that runs in sequence should check every index in the run rather than all of them beforehand.

    Checks keep the compiler from vectorizing loops, but reconnaissance takes about as long as a run or, if tasks copy
    rows, much longer. It is short compared with the run if rows are not short and need not be copied.

    Parameters
    ----------
    changes
        Whether the data that determine the rows change from call to call, as far as is known.
    """
    try:
        recorder = program.compile_recorder(bound, indices)
        accesses, copied = recorder.effort(bound, indices, team)
    except TaskFailed:
        return True
    if accesses > _MANY_ACCESSES and program.checks_are_cheap(bound, len(indices)):
        return True
    row_bytes = [table.row_bytes for table in program.cast.table_shapes(bound)]
    is_cheap = not program.checks_parts(bound, Checking.ALL) or min(row_bytes, default=0) < _LONG_ROW
    if recorder.scratch and program.rounds_alike(bound) and program.written_bytes(bound) <= accesses * len(indices):
        return True  # the copy of what is written, which such a run keeps, is negligible beside the tasks
    return copied > _MOST_COPIED or (changes and (recorder.scratch or is_cheap))


def copies_too_much(program: LoopProgram, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam) -> str | None:
    """Explain why tasks would copy much longer rows than they can be working on; None if they do not, or if one fails.

    A task that works on all of a long row takes as long as the copy; there are about as many of them as rows.
    """
    recorder = program.compile_recorder(bound, indices)
    if not recorder.scratch:
        return None
    try:
        _, copied = recorder.effort(bound, indices, team)
    except TaskFailed:
        return None
    size = sum(table.rows * table.row_bytes for table in program.cast.table_shapes(bound))
    if copied < _DEAR_COPY or copied * len(indices) < _TIMES * size:
        return None
    return f"to record it would copy {copied / 1024:,.0f} KiB of rows for each task"


def find_crowded_row(
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    team: ThreadTeam,
    ignoring: frozenset[int] = frozenset(),
) -> str | None:
    """Name the written row that most tasks seem to touch; None if there is none, or if a task fails.

    Tables whose positions are in `ignoring` do not count.
    """
    numbers = frozenset(program.cast.table_of[position] for position in ignoring)
    try:
        return crowded_row(program.compile_recorder(bound, indices).run_some(bound, indices, team), numbers)
    except TaskFailed:
        return None


def record_middle(
    program: LoopProgram, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam
) -> AccessRecords | None:
    """Record the tasks in the middle of a long loop; None if it is not long, or if a task fails."""
    middle = middle_of(len(indices))
    return record_some(program, bound, indices.part(middle.start, middle.stop), team) if middle else None


def record_some(
    program: LoopProgram, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam
) -> AccessRecords | None:
    """Record some tasks of a loop; None if one fails."""
    try:
        return program.compile_recorder(bound, indices).run(bound, indices, team)
    except TaskFailed:
        return None


def plan_by_ranges(
    program: LoopProgram,
    bound: BoundArguments,
    indices: LoopIndices,
    team: ThreadTeam,
    foresight: Foresight,
    *,
    in_order: bool,
) -> Plan | None:
    """Plan a long loop from the ranges of rows that its chunks touch: records would take time and fill the memory.

    None if tasks in the middle of the loop are not as regular, or if a task fails.
    """
    if program.cast.near or program.cast.has_relaxed or program.cast.with_role(Role.GUARDED) or bound.sums_floats:
        return None  # ownership needs all records, and sums depend on the jobs, which would differ on a cluster
    keeps_order = foresight.keeps_order
    bounds = foresight.chunks_in_order if keeps_order else foresight.colourable_chunks
    if bounds is None:
        return None
    try:
        ranges = program.compile_recorder(bound, indices).ranges(bound, indices, team, bounds)
    except TaskFailed:
        return None
    plan = None
    if ranges is not None:
        plan = plan_of_ranges(bounds, ranges, in_order=in_order, keeps_order=keeps_order)
    if plan is None and not keeps_order:
        foresight.rule_out_colouring()
    return plan


class _OnlyGhostsFailed(Exception):
    pass


def _recorded(
    program: LoopProgram,
    recorder: Recorder,
    bound: BoundArguments,
    indices: LoopIndices,
    team: ThreadTeam,
    keep: bool,
) -> AccessRecords:
    try:
        return _run(recorder, bound, indices, team, None, keep)
    except TaskFailed as failure:
        index = indices[failure.task]
        program.explain(bound, index)
        if not recorder.scratch:
            raise _OnlyGhostsFailed from failure
        cause = failure.__cause__
        kind: type[Exception] = BodyIndexError if isinstance(cause, IndexError) else BodyError
        if isinstance(cause, KeyError) and cause.args == (NO_SUCH_KEY,):
            kind = BodyKeyError
        raise kind(f"task {index} raised {type(cause).__name__}: {cause}; no table was changed") from cause
