"""Node program `prepare`: distributed reconnaissance and planning; each node keeps its part (thesis §7.2.2)."""

import time
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.bodies.functions import plain_function
from strads.bodies.source_location import describe
from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard, complete
from strads.engine.plans.gather import as_records
from strads.engine.views.roles import Checking, Role
from strads.errors import BodyIndexError, BodyKeyError, CompileError, PlanError, StradsError
from strads.loops.arguments import BoundArguments
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.binding import COMPILING, bind, bring_what_is_read, compiling, shards_of
from strads.loops.on_nodes.counting import able_counters, are_best_apart, hold_all_up
from strads.loops.on_nodes.placing import Placed, check_near, executable_plan, notes_on_pools, placed_on_nodes, pools_of
from strads.loops.on_nodes.recording import (
    copies_too_much,
    find_crowded_row,
    is_checked_in_run,
    plan_by_ranges,
    record,
    record_middle,
    record_some,
    record_with_outcomes,
)
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec, NodeLoop
from strads.loops.program import LoopProgram
from strads.schedule.choice import ALONE, spread
from strads.schedule.foresight import Foresight, Loop
from strads.schedule.passes.counting_sort import PlanOrderCopy
from strads.schedule.passes.parallel import index_dtype
from strads.schedule.plan import Plan
from strads.schedule.planner import KEPT, build_plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.crowding import crowded_row, sample
from strads.schedule.records.feeding import feeds_forward
from strads.schedule.records.parts import concatenated, nothing_recorded
from strads.schedule.records.pools import Pools
from strads.schedule.strategies.dealing import is_dealt

_ALL_ROWS = "its order counts, and rng.near draws from all rows"
_FIRST_CALL = "a first call, which takes less time than a plan would; if there is a second one, it makes a plan"
_ONE_THREAD = "one thread could only follow its order"
TOO_EARLY = "tasks may need rows that only earlier tasks make possible"
_CACHED = 1 << 20  # bytes of a table that stays in the cache whatever the order


def prepare(node: Node, spec: LoopSpec, arguments: tuple[Any, ...]) -> LoopFacts | None:
    """Record this node's share of the tasks; node 0 plans; each node keeps its part of the plan.

    Returns
    -------
    The facts of the loop on node 0; None elsewhere.
    """
    start = time.perf_counter()
    bound, program = bind(node, spec, arguments)
    counters = able_counters(spec, bound, program)
    apart = replace(spec, counters=counters)
    if are_best_apart(counters, bound, program):
        return _prepare(node, apart, arguments, start)
    facts = _prepare(node, spec, arguments, start, counters)
    alone = facts is not None and facts.plan.strategy in ("sequential", "wavefront")
    if not (counters and any(node.comm.allgather(alone)) and hold_all_up(counters, node, spec, bound, program, facts)):
        return facts
    first: NodeLoop = node.store[spec.name]
    final = _prepare(node, apart, arguments, time.perf_counter())
    if any(node.comm.allgather(final is not None and final.plan.strategy == "sequential")):
        node.store[spec.name] = first  # copies of the counters would only add a barrier
        return None if final is None or facts is None else facts.after(final)
    return None if final is None or facts is None else final.after(facts)


def _prepare(
    node: Node, spec: LoopSpec, arguments: tuple[Any, ...], start: float, counters: frozenset[int] = frozenset()
) -> LoopFacts | None:
    """Prepare a loop.

    Parameters
    ----------
    start
        When preparation began.
    counters
        Tables of which each thread could have a copy, but does not in this attempt.
    """
    team = spec.options.team or node.team
    shards = shards_of(node, arguments)
    bound, program = bind(node, spec, arguments)
    check_near(program, bound)
    ahead = None
    chosen = program.with_outcomes(bound)
    if chosen is not None:
        ahead = _look_ahead(node, spec, chosen, bound, shards, team, outcomes=True)
    if ahead is None:
        ahead = _look_ahead(node, spec, program, bound, shards, team)
        assert ahead is not None
    program, memory = ahead.program, ahead.memory
    largest = _largest(memory)
    records = node.comm.gather(ahead.records)
    recorded = time.perf_counter()
    facts, parts, kept = None, None, None
    aligned: dict[int, tuple[Hashable, Any]] = {}
    if records is not None:
        whole = concatenated(records)
        del records  # as large as the data
        copy_in_order = None
        if largest in spec.contents and not ahead.alone:
            copy_in_order = _plan_order_copy(program, bound.tables()[largest].dense, memory[largest], spec)
        numbers = frozenset(program.cast.table_of[position] for position in counters)
        crowds_apart = bool(counters) and node.size > 1 and crowded_row(sample(whole), numbers) is not None
        plan, placing, parts = _plan(node, spec, program, bound, whole, shards, team, copy_in_order, ahead)
        if copy_in_order is not None and plan.permutation is copy_in_order.order:
            aligned[largest] = spec.contents[largest], memory.pop(largest)
        kept = whole if (spec.options.keep_records and not ahead.checks_all) or is_dealt(plan) else None
        facts = LoopFacts(
            plan=plan,
            bounds=placing,
            placed=_placed(program, shards, placing),
            written=program.facts.written,
            aligned=program.cast.in_plan_order(program.facts.segments),
            deciding=program.facts.deciding,
            is_volatile=bool(program.facts.volatile),
            checks_all=ahead.checks_all,
            is_put_off=ahead.alone == _FIRST_CALL,
            stays_in_sequence=plan.strategy == "sequential"
            and plan.reason not in (f"{ALONE}: {_ONE_THREAD}", f"{ALONE}: {_FIRST_CALL}"),
            crowds_apart=crowds_apart,
            compile_seconds=ahead.compile_seconds,
            reconnaissance_seconds=recorded - start - ahead.compile_seconds,
            planning_seconds=time.perf_counter() - recorded,
        )
    part, owned, near = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    executable = executable_plan(spec, part, owned)
    first = {table: position for position, table in reversed(program.cast.table_of.items())}
    checking = Checking.OWNERS
    if ahead.checks_all:
        checking = Checking.ALL
    elif node.size == 1 and part.plan.strategy == "sequential":
        checking = Checking.BOUNDS
    loop = NodeLoop(
        spec,
        part,
        executable,
        near,
        first,
        bool(program.facts.outcomes),
        checking,
        ahead.failure,
        kept,
        facts,
        memory=memory,
        aligned=aligned,
    )
    if executable.in_loop_order:
        loop.memory.clear()  # nothing has to be copied
    node.store[spec.name] = loop
    return facts


@dataclass(frozen=True)
class _Ahead:
    """What is known about a loop before it runs.

    `program`, `memory`: the compiled program, and memory for copies of tables. `alone`: why it has to run as one job,
    else empty. `plan`: the plan, if it was made without records. `checks_all`: nothing was recorded or checked.
    `failure`: the error of the attempt. `keeps_order`: tasks read elements that earlier ones wrote. `rejected`: why no
    strategy would do, if it was tried on a part of the loop. `foresight`: what such parts told.
    """

    program: LoopProgram
    memory: dict[int, NDArray[Any]]
    compile_seconds: float
    records: AccessRecords
    alone: str
    plan: Plan | None = None
    checks_all: bool = False
    failure: StradsError | None = None
    keeps_order: bool = False
    rejected: dict[str, str] = field(default_factory=dict)
    foresight: Foresight | None = None


def _look_ahead(
    node: Node,
    spec: LoopSpec,
    program: LoopProgram,
    bound: BoundArguments,
    shards: dict[int, Shard],
    team: ThreadTeam,
    *,
    outcomes: bool = False,
) -> _Ahead | None:
    """Record a loop if it is to be planned; otherwise only check its indices, or leave that to the run.

    With `outcomes`, the program chooses outcomes of branches, and None is returned if a task fails.
    """
    is_local = node.size == 1 and not spec.options.keep_records
    may_be_alone = is_local and spec.options.strategy == "auto"
    in_order = spec.options.order == "sequential"
    if in_order and is_local and not bound.sums_floats:
        program = _by_element(program, bound, spec.indices)
    try:
        _, seconds = compiling(program, lambda: program.compile_recorder(bound, spec.indices))
    except CompileError:
        if outcomes:
            return None
        raise
    share = _share(node, program, bound, spec.indices, shards)
    bring_what_is_read(node, program, shards)
    indices = spec.indices.part(share[node.rank], share[node.rank + 1])
    nothing = nothing_recorded(program.cast.table_shapes(bound), len(indices))
    if spec.leaves_rows and not is_local:  # one node gets all rows
        return _Ahead(program, {}, seconds, nothing, spec.alone, checks_all=True)
    # The planner detects crowded rows and chains itself: detecting them here saves the records.
    alone, rejected = spec.alone, dict[str, str]()
    if in_order and program.cast.near and spec.options.strategy == "auto":
        alone = alone or _ALL_ROWS
    one_thread = may_be_alone and in_order and team.size == 1 and not bound.sums_floats
    if one_thread and program.rounds_alike(bound):
        alone = alone or _ONE_THREAD
    if may_be_alone and not alone:
        alone = copies_too_much(program, bound, indices, team) or ""
        alone = alone or find_crowded_row(program, bound, indices, team) or ""
    foresight = None
    middle = record_middle(program, bound, indices, team) if may_be_alone and not alone else None
    if middle is not None and middle.rows.size:
        if not in_order and not outcomes and _feeds_by_element(program, bound, indices, team, middle):
            del middle
            options = replace(spec.options, order="sequential")
            kept = _look_ahead(node, replace(spec, options=options), program, bound, shards, team)
            return kept and replace(kept, keeps_order=True)
        loop, stride = _loop(spec, program, bound, in_order=in_order), spread(len(indices))
        foresight = Foresight(middle, loop, lambda: record_some(program, bound, indices.every(stride), team))
        if not (outcomes or spec.options.micro_sync or one_thread):
            plan = plan_by_ranges(program, bound, indices, team, foresight, in_order=in_order)
            if plan is not None:
                return _Ahead(program, {}, seconds, nothing, "", plan)
        # A loop that can still be coloured is recorded for that.
        if foresight.colourable_chunks is None and foresight.one_job is not None:
            alone, rejected = foresight.one_job.reason, foresight.one_job.rejected
        elif spec.is_first and not bound.sums_floats and foresight.is_dear:
            alone = _FIRST_CALL
    del middle
    memory = _room_for_copies(node, spec, program, bound, shards)
    known = partial(_Ahead, program, memory, seconds, rejected=rejected, foresight=foresight)
    is_same = bool(alone)  # with any number of threads, to the last bit
    if one_thread:
        is_same |= program.rounds_alike(bound)
        alone = alone or _ONE_THREAD
    if is_same and may_be_alone and is_checked_in_run(program, bound, indices, team, changes=spec.changes):
        return known(nothing, alone, checks_all=True)
    keep = not (alone and may_be_alone)
    room = None if program.cast.near else memory.get(_largest(memory))  # records are kept if rows are dealt anew
    if outcomes:
        records = record_with_outcomes(node, program, bound, indices, shards, team, room, keep=keep)
        return None if records is None else known(records, alone)
    try:
        return known(record(node, program, bound, indices, shards, team, room, keep=keep), alone)
    except (BodyIndexError, BodyKeyError) as error:
        # Tasks whose rows depend on values of the loop may fail merely because no earlier task has run.
        error.is_certain = program.is_certain(bound)
        if error.is_certain or not may_be_alone:  # then the driver asks for one job, of one node
            raise
        return known(nothing, TOO_EARLY, checks_all=True, failure=error)


def _by_element(program: LoopProgram, bound: BoundArguments, indices: LoopIndices) -> LoopProgram:
    """Return the program that records elements of tables of rows, if that is possible: otherwise grids are chains.

    Not on a cluster, where rows travel. As the order is fixed, the result is the same.
    """
    finer = program.by_element(bound)
    if finer is None:
        return program
    try:
        with COMPILING:
            recorder = finer.compile_recorder(bound, indices)
    except CompileError:
        return program
    return program if recorder.scratch else finer


def _feeds_by_element(
    program: LoopProgram, bound: BoundArguments, indices: LoopIndices, team: ThreadTeam, middle: AccessRecords
) -> bool:
    """Whether tasks fill tables of rows element by element from those that earlier tasks filled, as far as known.

    Then the order of rows counts, too.
    """
    if bound.sums_floats or not feeds_forward(middle):
        return False
    finer = _by_element(program, bound, indices)
    if finer is program:
        return False
    sample = record_middle(finer, bound, indices, team)
    return sample is not None and feeds_forward(sample)


def _notes(ahead: _Ahead, bound: BoundArguments, counters: frozenset[int]) -> list[str]:
    """Describe what is recorded or checked in an unusual way, and why."""
    facts, cast = ahead.program.facts, ahead.program.cast
    body = plain_function(ahead.program.body)
    notes = []
    if facts.outcomes:
        notes.append("conditions that the loop changes: recorded both ways, so the plan holds whatever they are")
    for position in sorted(facts.drawn):
        name = bound.arguments[position].name
        notes.append(
            f"rows of {name} are drawn, and known only when a call begins: each call records and plans anew; "
            f"with rng.near({name}) the plan would last"
        )
    counted = " and ".join(bound.arguments[position].name for position in sorted(counters))
    if counted:
        notes.append(f"integers are only added to {counted}: each thread adds to a copy of its own")
    guarded = ", ".join(bound.arguments[position].name for position in cast.with_role(Role.GUARDED))
    if ahead.checks_all:
        notes.append("checked in the run: every access, as nothing was recorded")
    elif guarded:
        where = describe(body.__code__.co_filename, facts.volatile_line)
        notes.append(f"checked in the run: rows of {guarded}, chosen by values that the loop changes at {where}")
    return notes


def _largest(memory: dict[int, NDArray[Any]]) -> int:
    return max(memory, key=lambda position: memory[position].nbytes, default=-1)


def _room_for_copies(
    node: Node, spec: LoopSpec, program: LoopProgram, bound: BoundArguments, shards: dict[int, Shard]
) -> dict[int, NDArray[Any]]:
    """Return memory for the tables that are copied into plan order, reusing that of an outdated loop if it fits.

    Until the copy is made, the largest one holds the records: writing to memory that the process has already touched
    takes half as long as writing to fresh memory (decision 19).
    """
    outdated: NodeLoop | None = node.store.pop(spec.replaces, None) if spec.replaces is not None else None
    found: dict[int, NDArray[Any]] = {}
    for position in program.cast.with_role(Role.ALIGNED):
        storage = bound.tables()[position].storage
        if position in shards or not isinstance(storage, np.ndarray) or spec.options.keep_records:
            continue
        shape = (len(spec.indices), *storage.shape[1:])
        old = None if outdated is None else outdated.aligned.get(position, (None, None))[1]
        if isinstance(old, np.ndarray) and (old.shape, old.dtype) == (shape, storage.dtype):
            found[position] = old
        else:
            found[position] = np.empty(shape, storage.dtype)
    return found


def _plan_order_copy(
    program: LoopProgram, table: NDArray[Any], room: NDArray[Any], spec: LoopSpec
) -> PlanOrderCopy | None:
    """Return a table to be copied while the plan is made; None if its rows are not numbered like the tasks.

    The copy overwrites the records, which a guarded loop still needs afterwards.
    """
    tasks = len(spec.indices)
    fits = spec.indices.is_counting and len(table) >= tasks and room.size > 0 and table.flags.c_contiguous
    if not fits or program.cast.near or program.cast.with_role(Role.GUARDED):
        return None
    return PlanOrderCopy(as_records(table), as_records(room), np.empty(tasks, index_dtype(tasks)))


def _share(
    node: Node, program: LoopProgram, bound: BoundArguments, indices: LoopIndices, shards: dict[int, Shard]
) -> NDArray[np.int64]:
    """Bounds of each node's tasks: where the rows of `A[k]` are stored, else equal parts."""
    equal = np.linspace(0, len(indices), node.size + 1).astype(np.int64)
    aligned = program.cast.with_role(Role.ALIGNED)
    for position in aligned:
        shard = shards.get(position)
        if shard is not None and indices.is_counting and int(shard.bounds[-1]) == len(indices):
            equal = shard.bounds
            break
    for position in aligned:
        shard = shards.get(position)
        if shard is not None and not (indices.is_counting and np.array_equal(shard.bounds, equal)):
            complete(node, shard)
    return equal


def _plan(
    node: Node,
    spec: LoopSpec,
    program: LoopProgram,
    bound: BoundArguments,
    records: AccessRecords,
    shards: dict[int, Shard],
    team: ThreadTeam,
    copy_in_order: PlanOrderCopy | None,
    ahead: _Ahead,
) -> Placed:
    """Plan and place the loop: returns the plan, the preferred layout of tables, and each node's part."""
    options, threads = spec.options, node.size * team.size
    loop = _loop(spec, program, bound, in_order=ahead.keeps_order or options.order == "sequential")
    plan = ahead.plan or build_plan(
        records,
        threads=threads,
        strategy="sequential" if ahead.alone else options.strategy,
        seed=options.seed,
        parallel=team.for_each,
        copy_in_order=copy_in_order,
        in_order=loop.in_order,
        certain=loop.certain,
        near=loop.near,
        deal=loop.deal,
        streams=loop.streams,
        foresight=ahead.foresight,
    )
    if ahead.alone:
        details = {**plan.details, "rejected": ahead.rejected}
        plan = replace(plan, reason=f"{ALONE}: {ahead.alone}", details=details)
    elif plan.strategy == "wavefront" and options.strategy == "auto" and threads == 1 and not bound.sums_floats:
        # The result is the same. Float sums depend on the division into jobs, which must not depend on the threads.
        plan = build_plan(records, threads=1, strategy="sequential")
        plan = replace(plan, reason=f"{ALONE}: {_ONE_THREAD}")
    elif ahead.keeps_order:
        plan = replace(plan, reason=f"{plan.reason}; {KEPT}")
    near, plan = _pools(program, bound, records, plan, options.strategy)
    plan.details["notes"] = [*_notes(ahead, bound, spec.counters), *notes_on_pools(program, bound, plan, near)]
    return placed_on_nodes(node, options, program, plan, records, near, shards, team.size, everything=ahead.checks_all)


def _loop(spec: LoopSpec, program: LoopProgram, bound: BoundArguments, *, in_order: bool) -> Loop:
    """Return what the planner has to know beside the records."""
    read = program.facts.streamed.intersection(program.cast.with_role(Role.READ, Role.CHECKED))
    streams = any(bound.tables()[position].values.nbytes > _CACHED for position in read)
    near, certain = tuple(program.cast.near_tables()), program.facts.certain_share
    return Loop(len(spec.indices), in_order, streams, certain, near, spec.deal, spec.options.seed)


def _pools(
    program: LoopProgram, bound: BoundArguments, records: AccessRecords, plan: Plan, strategy: str
) -> tuple[tuple[Pools, ...], Plan]:
    """Return the rows that each job may draw, and the plan, which is another one if some job could draw none."""
    found = pools_of(program, bound, records, plan)
    filled = np.diff(plan.offsets) > 0
    lacking = [group for group, of_group in enumerate(found) if np.any(of_group.sizes[filled] == 0)]
    if not lacking:
        return found, plan
    names = " and ".join(bound.arguments[p].name for p, group in program.cast.near.items() if group == lacking[0])
    reason = (
        f"rng.near draws from the rows of {names} that a job owns, and some job owns none: "
        "let each task also touch a row of it by a fixed index"
    )
    if strategy not in ("auto", "sequential"):
        raise PlanError(f"{strategy} cannot serve this loop: {reason}")
    if min(records.tables[table].rows for group in program.cast.near_tables() for table in group) == 0:
        return found, plan
    plan = replace(build_plan(records, threads=1, strategy="sequential"), reason=f"{ALONE}: {reason}")
    return pools_of(program, bound, records, plan), plan


def _placed(
    program: LoopProgram, shards: dict[int, Shard], wanted: dict[int, NDArray[np.int64]]
) -> dict[int, NDArray[np.int64]]:
    """Layout of the recorded tables for which the plan prescribes none: its moves of rows start from there."""
    return {p: shards[p].bounds for p in program.cast.table_of if p in shards and p not in wanted}
