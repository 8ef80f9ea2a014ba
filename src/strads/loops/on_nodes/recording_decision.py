"""Decides before a loop is planned whether to record it: finds its records, or the reason why it needs none."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.dds.shard import gather_all_rows
from strads.engine.views.roles import Checking, Role
from strads.errors import BodyIndexError, BodyKeyError, CompileError, StradsError
from strads.loops.arguments import TableArgument
from strads.loops.on_nodes.counting import copyable_counters
from strads.loops.on_nodes.node_tasks import CACHED, NodeTasks
from strads.loops.on_nodes.sequential_reasons import (
    ALL_ROWS,
    BEFORE_SAMPLING,
    CHANGING,
    FIRST_CALL,
    ONE_THREAD,
    SAMPLING_CALL,
    TOO_EARLY,
    TOO_MANY,
    SequentialReason,
)
from strads.loops.on_nodes.specs import LoopSpec
from strads.loops.program import LoopProgram, Variant
from strads.loops.reconnaissance import RecordsTooLarge
from strads.partition import even_bounds
from strads.schedule.choice import middle_of
from strads.schedule.kernels.streaming import empty_lines
from strads.schedule.loop import Loop
from strads.schedule.loop_sample import RECORD, SHORT, LoopSample, PlanningCost, records_outweigh, too_costly
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.flow_dependences import FlowDependences, flow_dependences
from strads.schedule.records.parts import nothing_recorded

_MAX_RECORDS = 16  # times the memory of the tables
_MAX_UNEXPECTED_RECORDS, _UNEXPECTED_RECORDS = 64, 1 << 30  # the same if samples do not show it; at least so many bytes
_MAX_RECORDS_OF_COUNTERS = 2  # the same where copies of the counters make records unnecessary


@dataclass(frozen=True)
class RecordingDecision:
    """What is known about a loop before it runs."""

    tasks: NodeTasks  # of the node, with the program that has recorded them
    memory: dict[int, NDArray[Any]]  # for copies of tables in plan order, by position
    records: AccessRecords  # empty if they are not needed
    alone: SequentialReason | None  # why the loop has to run as one job, if it has to
    plan: Plan | None = None  # if it was made without records
    checks_all: bool = False  # whether nothing was recorded or checked beforehand: the run checks every access
    # Whether `alone` is due to the contents of the arguments: the loop is prepared again when they change.
    follows_contents: bool = False
    failure: StradsError | None = None  # of the attempt to record it
    keeps_order: bool = False  # whether tasks read elements that earlier ones wrote
    rejected: dict[str, str] = field(default_factory=dict)  # why no strategy would do, if tried on a part of the loop
    loop_sample: LoopSample | None = None  # what such parts showed
    serves_one_call: bool = False  # whether a plan would serve one call only, as rows change from call to call


def decide_recording(spec: LoopSpec, whole: NodeTasks) -> RecordingDecision:
    """Record a loop if it is to be planned; otherwise only check its indices, or leave that to the run.

    If outcomes of branches can be chosen, they are, as long as no task fails: also those of branches on read-only data,
    once these have changed between calls. Sums that choose rows may be reordered if the run can check these rows, for
    which it keeps a copy of what it writes, in little time.
    """
    program, bound = whole.program, whole.bound
    outcomes, guards = (program.as_variant(kind, bound) for kind in (Variant.OUTCOMES, Variant.GUARDS))
    varying = program.as_variant(Variant.VARYING, bound) if spec.changed else None
    if varying is not None and spec.changed & (varying.facts.deciding | varying.facts.deciding_columns):
        varying = None  # other rows are touched, whatever the outcomes
    if guards is not None and (
        spec.in_order_of_sums
        or spec.options.interpreted
        or guards.part_checks(bound, Checking.OWNERS)
        or not guards.writes_little(bound, len(spec.indices))
    ):
        guards = None
    if varying is not None:
        lasting = replace(spec, changes=False)
        found = _decide_recording(lasting, replace(whole, program=varying), is_trial=True)
        if found is not None:
            return found
    for chosen in (outcomes, guards):
        if chosen is not None:
            found = _decide_recording(spec, replace(whole, program=chosen), is_trial=True)
            if found is not None:
                return found
    found = _decide_recording(spec, whole)
    assert found is not None
    return found


def _decide_recording(spec: LoopSpec, whole: NodeTasks, *, is_trial: bool = False) -> RecordingDecision | None:
    """Decide for one variant of the program; with `is_trial`, None is returned if a task fails."""
    node, bound, options = whole.node, whole.bound, spec.options
    is_local = node.size == 1 and not options.interpreted
    may_be_alone = is_local and options.strategy == "auto"
    independent = None
    if may_be_alone and not (spec.alone or spec.leaves_rows or bound.sums_floats):
        independent = _plan_of_own_rows(spec, whole)
    if independent is not None:
        is_checked = whole.program.is_proved(bound) or not whole.program.gains_from_checks(bound)
        # A loop that takes any data is not asked again whether sizes make rows its tasks' own.
        takes_any = spec.changes and not any(whole.program.facts.own_rows.values())
        if is_checked or (takes_any and whole.program.writes_little(bound, len(spec.indices))):
            # Data that vary from call to call would be checked beforehand in each; the run does it in less time.
            nothing = nothing_recorded(whole.tables, len(spec.indices))
            return RecordingDecision(whole, {}, nothing, None, independent, checks_all=not is_checked)
    if options.order == "sequential" and is_local and not bound.sums_floats:
        whole = _by_element(whole)
    share = _share(whole)
    whole.replicate_read_tables()
    tasks = whole.part(range(share[node.rank], share[node.rank + 1]))
    alone = spec.alone or _put_off(spec, tasks.program)
    if spec.leaves_rows or (alone and not spec.alone):  # on a cluster, one node gets all rows
        nothing = nothing_recorded(tasks.tables, len(tasks.indices))
        return RecordingDecision(tasks, {}, nothing, alone, checks_all=True)
    try:
        tasks.program.compile_recorder(bound, spec.indices)
    except CompileError:
        if is_trial:
            return None
        raise
    if independent is not None and not tasks.copies_too_much():
        known = partial(RecordingDecision, tasks, {}, plan=independent)
        return _recorded(tasks, known, None, None, keep=False, may_be_alone=True, is_trial=is_trial)
    return _decide_by_samples(spec, whole, tasks, alone, may_be_alone=may_be_alone, is_trial=is_trial)


def _put_off(spec: LoopSpec, program: LoopProgram) -> SequentialReason | None:
    """Return why this call is not planned yet: values that the loop changes choose its rows, and may choose others."""
    facts, options = program.facts, spec.options
    is_volatile = bool(facts.volatile) and not facts.guards_roundings and not program.argument_roles.near
    may_be_put_off = options.strategy == "auto" and not options.interpreted and len(spec.indices) >= SHORT
    if spec.is_first and is_volatile and may_be_put_off:
        return BEFORE_SAMPLING
    return SAMPLING_CALL if spec.samples_rows else None


def _decide_by_samples(
    spec: LoopSpec,
    whole: NodeTasks,
    tasks: NodeTasks,
    alone: SequentialReason | None,
    *,
    may_be_alone: bool,
    is_trial: bool,
) -> RecordingDecision | None:
    """Record the node's `tasks`, unless samples of the loop show that it has no plan, or one that needs no records."""
    program, bound, options = tasks.program, tasks.bound, spec.options
    in_order = options.order == "sequential"
    if in_order and program.argument_roles.near and options.strategy == "auto":
        alone = alone or ALL_ROWS
    is_single = may_be_alone and tasks.team.size == 1 and not bound.sums_floats
    one_thread = is_single and in_order
    alone = alone or (ONE_THREAD if one_thread and program.same_bits_with_checks(bound) else None)
    loop = loop_of(spec, tasks, in_order=in_order)
    if may_be_alone and not alone:
        alone = _reason_in_sample(spec, tasks, loop)
    loop_sample, rejected = None, dict[str, str]()
    middle = tasks.record_middle() if may_be_alone and not alone else None
    if middle is not None and middle.rows.size:
        if not in_order and not program.facts.outcomes and _reads_earlier_results_by_element(tasks, middle):
            del middle
            ordered = replace(spec, options=replace(options, order="sequential"))
            kept = _decide_recording(ordered, whole, is_trial=is_trial)
            return kept and replace(kept, keeps_order=True)
        loop_sample = LoopSample(middle, loop, tasks.record_spread)
        one_thread |= is_single and loop_sample.keeps_order
        if not (options.micro_sync or one_thread):
            plan = tasks.plan_by_ranges(loop_sample, in_order=in_order)
            if plan is not None:
                nothing = nothing_recorded(tasks.tables, len(tasks.indices))
                return RecordingDecision(tasks, {}, nothing, None, plan)
        # A loop that can still be coloured is recorded for that.
        if loop_sample.colourable_chunks is None and loop_sample.one_job is not None:
            alone, rejected = SequentialReason(loop_sample.one_job.reason), loop_sample.one_job.rejected
        elif spec.is_first and not bound.sums_floats and loop_sample.planning_is_costly:
            alone = FIRST_CALL
    del middle
    if may_be_alone and alone is None:
        alone = _outweighed(spec, tasks)
    memory = _room_for_copies(spec, tasks)
    known = partial(
        RecordingDecision, tasks, memory, rejected=rejected, loop_sample=loop_sample, serves_one_call=spec.changes
    )
    if may_be_alone:
        alone, checks_all, follows_contents = _check_in_run(spec, tasks, alone, one_thread=one_thread)
        if checks_all:
            nothing = nothing_recorded(tasks.tables, len(tasks.indices))
            return known(nothing, alone, checks_all=True, follows_contents=follows_contents)
    keep = not (alone and may_be_alone)
    # Records are kept if rows are dealt anew.
    room = None if program.argument_roles.near else memory.get(largest(memory))
    return _recorded(tasks, known, alone, room, keep=keep, may_be_alone=may_be_alone, is_trial=is_trial)


def _reason_in_sample(spec: LoopSpec, tasks: NodeTasks, loop: Loop) -> SequentialReason | None:
    """Return why a loop makes no plan in this call, if a sample of its tasks shows that.

    The planner detects crowded rows and chains itself: detecting them here saves the records.
    """
    reason = tasks.copies_too_much()
    some = None if reason else tasks.sample
    reason = reason or tasks.find_hot_row(some, in_order=loop.in_order)
    return SequentialReason(reason) if reason else reason_not_to_plan(spec, some, loop, serves_one_call=spec.changes)


def _check_in_run(
    spec: LoopSpec, tasks: NodeTasks, alone: SequentialReason | None, *, one_thread: bool
) -> tuple[SequentialReason | None, bool, bool]:
    """Return why a loop runs as one job, if so; whether the run checks all indices; whether it `follows_contents`."""
    program, bound = tasks.program, tasks.bound
    gains = program.gains_from_checks(bound)
    is_same = alone is not None  # with any number of threads, to the last bit
    if one_thread:
        is_same |= program.same_bits_with_checks(bound)
        alone = ONE_THREAD if alone is None or (alone == FIRST_CALL and not gains) else alone
    if is_same and tasks.should_check_in_run(len(spec.indices), changes=spec.changes):
        return alone, True, False
    if is_same and not gains:
        return alone, True, alone not in (ONE_THREAD, CHANGING)
    # After a first call in sequence the next one would only check the indices again.
    return ONE_THREAD if one_thread and alone == FIRST_CALL else alone, False, False


def _plan_of_own_rows(spec: LoopSpec, tasks: NodeTasks) -> Plan | None:
    """Return the plan of a loop whose tasks provably keep to rows of their own; None of others."""
    if not tasks.share_no_written_rows:
        return None
    nothing = nothing_recorded(tasks.tables, len(spec.indices))
    return build_plan(nothing, threads=tasks.team.size, strategy="independent")


def _recorded(
    tasks: NodeTasks,
    known: Callable[..., RecordingDecision],
    alone: SequentialReason | None,
    room: NDArray[Any] | None,
    *,
    keep: bool,
    may_be_alone: bool,
    is_trial: bool,
) -> RecordingDecision | None:
    """Record a loop, in `room` if it fits; without `keep`, only check its indices."""
    most = _most_accesses(tasks) if may_be_alone else inf
    try:
        if is_trial:
            records = tasks.record_if_possible(room, keep=keep, most=most)
            return None if records is None else known(records, alone)
        return known(tasks.record(room, keep=keep, most=most), alone)
    except RecordsTooLarge:
        return _recorded(tasks, known, TOO_MANY, None, keep=False, may_be_alone=may_be_alone, is_trial=is_trial)
    except (BodyIndexError, BodyKeyError) as error:
        # Tasks whose rows depend on values of the loop may fail merely because no earlier task has run.
        error.is_certain = tasks.program.is_certain(tasks.bound)
        if error.is_certain or not may_be_alone:  # then the driver asks for one job, of one node
            raise
        nothing = nothing_recorded(tasks.tables, len(tasks.indices))
        return replace(known(nothing, TOO_EARLY), plan=None, checks_all=True, failure=error)


def _outweighed(spec: LoopSpec, tasks: NodeTasks) -> SequentialReason | None:
    """Return why a loop is not recorded, if its records would be many times as large as its tables."""
    some = tasks.sample
    if some is None or not records_outweigh(
        some, len(spec.indices), _MAX_RECORDS_OF_COUNTERS if copyable_counters(spec, tasks) else _MAX_RECORDS
    ):
        return None
    return TOO_MANY


def _most_accesses(tasks: NodeTasks) -> float:
    """Return how many accesses to record at most: tasks that no sample contains may make many times as many."""
    size = sum(argument.values.nbytes for argument in tasks.bound.arguments if isinstance(argument, TableArgument))
    return max(_MAX_UNEXPECTED_RECORDS * size, _UNEXPECTED_RECORDS) / RECORD


def reason_not_to_plan(
    spec: LoopSpec, some: AccessRecords | None, loop: Loop, *, serves_one_call: bool
) -> SequentialReason | None:
    """Return why this call makes no plan, if one would take too long, given the records of a sample of the tasks."""
    if some is None or spec.options.strategy != "auto":
        return None
    cost = PlanningCost.of(some, loop)
    if serves_one_call and cost.exceeds_one_call:
        return CHANGING
    if cost.too_many_calls and not middle_of(loop.tasks):  # of others, the middle shows whether all need to be recorded
        return SequentialReason(too_costly(cost.too_many_calls))
    may_be_put_off = spec.is_first and loop.tasks >= SHORT
    return FIRST_CALL if may_be_put_off and cost.exceeds_first_call else None


def loop_of(spec: LoopSpec, tasks: NodeTasks, *, in_order: bool) -> Loop:
    """Return what the planner has to know of a loop beside its records."""
    program, tables = tasks.program, tasks.bound.tables
    read = program.facts.streamed.intersection(program.argument_roles.with_role(Role.READ, Role.CHECKED))
    streams = any(tables[position].values.nbytes > CACHED for position in read)
    return Loop(
        tasks=len(spec.indices),
        in_order=in_order,
        streams=streams,
        certain_share=program.facts.certain_share,
        near=tuple(program.argument_roles.near_tables()),
        deal=spec.deal,
        replica_bytes=tasks.replica_bytes,
        seed=spec.options.seed,
        allocates=program.facts.allocates,
        copies=program.copies_rows,
        computes=program.facts.computes,
        parallel=tasks.team.for_each,
    )


def largest(memory: dict[int, NDArray[Any]]) -> int:
    """Return the position of the largest table; −1 if there is none."""
    return max(memory, key=lambda position: memory[position].nbytes, default=-1)


def _by_element(tasks: NodeTasks) -> NodeTasks:
    """Return the tasks with a program that records elements of tables of rows, if possible: else grids are chains.

    Not on a cluster, where rows travel. As the order is fixed, the result is the same.
    """
    finer = tasks.program.by_element(tasks.bound)
    if finer is None:
        return tasks
    try:
        recorder = finer.compile_recorder(tasks.bound, tasks.indices)
    except CompileError:
        return tasks
    return tasks if recorder.scratch else replace(tasks, program=finer)


def _reads_earlier_results_by_element(tasks: NodeTasks, middle: AccessRecords) -> bool:
    """Whether tasks fill tables of rows element by element from those that earlier tasks filled, as far as known.

    Then the order of rows counts, too.
    """
    if tasks.bound.sums_floats or flow_dependences(middle) is not FlowDependences.FORWARD:
        return False
    finer = _by_element(tasks)
    sample = None if finer is tasks else finer.record_middle()
    return sample is not None and flow_dependences(sample) is FlowDependences.FORWARD


def _room_for_copies(spec: LoopSpec, tasks: NodeTasks) -> dict[int, NDArray[Any]]:
    """Return memory for the tables that are copied into plan order.

    Until the copy is made, the largest one holds the records: writing to memory that the process has already touched
    takes half as long as writing to fresh memory (decision 19).
    """
    found: dict[int, NDArray[Any]] = {}
    for position in tasks.program.argument_roles.with_role(Role.ALIGNED):
        storage = tasks.bound.tables[position].storage
        if position in tasks.shards or not isinstance(storage, np.ndarray) or spec.options.interpreted:
            continue
        found[position] = empty_lines((len(spec.indices), *storage.shape[1:]), storage.dtype)
    return found


def _share(tasks: NodeTasks) -> list[int]:
    """Return the bounds of each node's tasks: where the rows of `A[k]` are stored, else equal parts (a collective)."""
    node, indices = tasks.node, tasks.indices
    bounds = even_bounds(len(indices), node.size)
    aligned = [tasks.shards[p] for p in tasks.program.argument_roles.with_role(Role.ALIGNED) if p in tasks.shards]
    if indices.is_counting:
        bounds = next((shard.bounds for shard in aligned if int(shard.bounds[-1]) == len(indices)), bounds)
    for shard in aligned:
        if not (indices.is_counting and np.array_equal(shard.bounds, bounds)):
            gather_all_rows(node, shard)
    return [int(bound) for bound in bounds]
