"""Node program `prepare`: distributed reconnaissance and planning; each node keeps its part (thesis §7.2.2)."""

import time
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from strads.cluster import Node
from strads.engine.plans.gather import as_records
from strads.engine.views.roles import Checking, Role
from strads.loops.compile_clock import COMPILE_CLOCK
from strads.loops.on_nodes.counting import copies_are_best, copyable_counters, counters_are_the_bottleneck, of_few_rows
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.placing import check_near, executable_plan
from strads.loops.on_nodes.planning import notes_again, plan_loop
from strads.loops.on_nodes.recording_decision import RecordingDecision, decide_recording, largest
from strads.loops.on_nodes.sequential_reasons import BEFORE_SAMPLING, CHANGING, FIRST_CALL, SAMPLING_CALL
from strads.loops.on_nodes.specs import LoopFacts, LoopSpec, NodeLoop, ReusablePreparation
from strads.schedule.kernels.counting_sort import PlanOrderCopy
from strads.schedule.loop_sample import SHORT
from strads.schedule.nodes.placement import NodePlan
from strads.schedule.planner import build_plan
from strads.schedule.records.hot_rows import hot_row, sample
from strads.schedule.records.parts import concatenated, nothing_recorded


def prepare(node: Node, spec: LoopSpec, arguments: tuple[Any, ...]) -> LoopFacts | None:
    """Record this node's share of the tasks; node 0 plans and returns facts; each node keeps its part of the plan."""
    start = _Start()
    tasks = NodeTasks.of(node, spec, arguments, spec.options.team)
    if spec.template is not None and _serves(spec.template, tasks):
        return _prepare_like(spec.template, tasks, spec, start)
    counters = copyable_counters(spec, tasks)
    if copies_are_best(counters, tasks):
        return _prepare_with_copies(node, spec, arguments, start, counters)
    few = of_few_rows(counters, tasks)
    if not few:
        return _prepare_with_copies_if_needed(node, spec, arguments, start, tasks, counters)
    facts = _prepare_with_copies(node, spec, arguments, start, few)
    if not any(node.comm.allgather(facts is not None and facts.has_no_parallel_plan)):
        return facts
    others = _prepare_with_copies_if_needed(node, spec, arguments, _Start(), tasks, counters)
    return None if others is None or facts is None else others.after(facts)


def _serves(template: LoopFacts, tasks: NodeTasks) -> bool:
    """Whether tasks can be prepared like an earlier loop, and a run would not mostly copy what it may write."""
    known, count = template.reusable, len(tasks.indices)
    if known is None or tasks.node.size > 1 or tasks.shards or known.types != tasks.bound.type_key:
        return False
    if template.samples_rows_next and count < SHORT:  # which is recorded at once
        return False
    is_work = tasks.program.written_bytes(tasks.bound) <= 2 * known.copied * count
    return is_work or tasks.program.writes_little(tasks.bound, count)


def _prepare_like(template: LoopFacts, tasks: NodeTasks, spec: LoopSpec, start: "_Start") -> LoopFacts:
    """Prepare a loop like one that takes any data: one job runs it in its order, and checks every access."""
    nothing, known = nothing_recorded(tasks.tables, len(spec.indices)), template.reusable
    assert known is not None
    plan = build_plan(nothing, threads=tasks.team.size, strategy="sequential")
    details = template.plan.details
    plan = replace(plan, reason=template.plan.reason).with_details(
        notes=notes_again(spec, details.notes), rejected=details.rejected, prefetch_distance=details.prefetch_distance
    )
    seconds = time.perf_counter() - start.time
    facts = replace(template, plan=plan, compile_seconds=0.0, reconnaissance_seconds=0.0, planning_seconds=seconds)
    part = NodePlan(plan, None, np.arange(plan.jobs), (), ())
    tasks.node.store[spec.name] = NodeLoop(
        spec,
        part,
        executable_plan(spec, part, None),
        (),
        tables_of_moves=known.tables_of_moves,
        variant=known.variant,
        checking=Checking.ALL,
        facts=facts,
    )
    return facts


def _prepare_with_copies_if_needed(
    node: Node,
    spec: LoopSpec,
    arguments: tuple[Any, ...],
    start: "_Start",
    tasks: NodeTasks,
    counters: frozenset[int],
) -> LoopFacts | None:
    """Prepare a loop; with copies of its counters, if it has a parallel plan only then."""
    facts = _prepare(tasks, spec, start, counters)
    alone = facts is not None and facts.has_no_parallel_plan
    if not (counters and any(node.comm.allgather(alone)) and counters_are_the_bottleneck(counters, tasks, facts)):
        return facts
    first: NodeLoop = node.store[spec.name]
    final = _prepare_with_copies(node, spec, arguments, _Start(), counters)
    if any(node.comm.allgather(final is not None and final.plan.strategy == "sequential")):
        node.store[spec.name] = first  # copies of the counters would only add a barrier
        if final is None or facts is None:
            return None
        known = facts.after(final)
        return replace(
            known, planning_is_deferred=final.planning_is_deferred, stays_in_sequence=final.stays_in_sequence
        )
    return None if final is None or facts is None else final.after(facts)


@dataclass(frozen=True)
class _Start:
    """When preparation began."""

    time: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=lambda: COMPILE_CLOCK.seconds)


def _prepare_with_copies(
    node: Node, spec: LoopSpec, arguments: tuple[Any, ...], start: _Start, counters: frozenset[int]
) -> LoopFacts | None:
    spec = replace(spec, counters=counters)
    return _prepare(NodeTasks.of(node, spec, arguments, spec.options.team), spec, start)


def _prepare(
    whole: NodeTasks, spec: LoopSpec, start: _Start, counters: frozenset[int] = frozenset()
) -> LoopFacts | None:
    """Prepare a loop, of which each thread could have a copy of `counters`, but does not in this attempt."""
    node = whole.node
    check_near(whole)
    decision = decide_recording(spec, whole)
    program, shards, memory = decision.tasks.program, whole.shards, decision.memory
    records = node.comm.gather(decision.records)
    recorded, compile_seconds = time.perf_counter(), COMPILE_CLOCK.seconds - start.compiled
    facts, parts, kept = None, None, None
    aligned: dict[int, tuple[Hashable, Any]] = {}
    if records is not None:
        together = concatenated(records)
        del records  # as large as the data
        copy_in_order = _plan_order_copy(spec, decision)
        numbers = frozenset(program.argument_roles.table_of[position] for position in counters)
        has_hot_row_besides_counters = (
            bool(counters) and node.size > 1 and hot_row(sample(together), numbers) is not None
        )
        (plan, bounds, parts), alone = plan_loop(spec, decision, together, copy_in_order)
        if copy_in_order is not None and plan.permutation is copy_in_order.order:
            position = largest(memory)
            aligned[position] = spec.contents[position], memory.pop(position)
        reusable = None
        if alone in (CHANGING, BEFORE_SAMPLING) and decision.checks_all and _is_in_place(spec, decision):
            copied = program.written_bytes(whole.bound) / max(len(spec.indices), 1)
            positions = program.argument_roles.position_of
            reusable = ReusablePreparation(whole.bound.type_key, copied, program.variant, positions)
        kept = together if (spec.options.interpreted and not decision.checks_all) or plan.details.is_dealt else None
        facts = LoopFacts(
            plan=plan,
            bounds=bounds,
            placed={p: shards[p].bounds for p in program.argument_roles.table_of if p in shards and p not in bounds},
            written=program.facts.written,
            aligned=program.argument_roles.in_plan_order(program.facts.segments),
            deciding=program.facts.deciding,
            deciding_columns=program.facts.deciding_columns,
            written_columns=program.facts.written_columns,
            is_volatile=bool(program.facts.volatile) and not program.facts.guards_roundings,
            guards_roundings=program.facts.guards_roundings,
            takes_any_contents=decision.checks_all and not decision.follows_contents,
            reusable=reusable,
            samples_rows_next=alone == BEFORE_SAMPLING,
            planning_is_deferred=alone in (FIRST_CALL, BEFORE_SAMPLING, SAMPLING_CALL)
            or (alone == CHANGING and not decision.checks_all),
            stays_in_sequence=plan.strategy == "sequential" and (alone is None or alone.lasts),
            serves_one_call=alone == CHANGING,
            has_hot_row_besides_counters=has_hot_row_besides_counters,
            compile_seconds=compile_seconds,
            reconnaissance_seconds=max(recorded - start.time - compile_seconds, 0.0),
            planning_seconds=time.perf_counter() - recorded,
        )
    part, owned, near = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    executable = executable_plan(spec, part, owned)
    checking = Checking.OWNERS
    if decision.checks_all:
        checking = Checking.ALL
    elif node.size == 1 and part.plan.strategy == "sequential":
        checking = Checking.BOUNDS
    node.store[spec.name] = NodeLoop(
        spec,
        part,
        executable,
        near,
        tables_of_moves=program.argument_roles.position_of,
        variant=program.variant,
        checking=checking,
        samples_rows=decision.alone == SAMPLING_CALL,
        failure=decision.failure,
        records=kept,
        facts=facts,
        memory={} if executable.in_loop_order else memory,  # in the order of the loop, nothing has to be copied
        aligned=aligned,
    )
    return facts


def _is_in_place(spec: LoopSpec, decision: RecordingDecision) -> bool:
    """Whether one job runs a loop on the tables themselves."""
    tasks, argument_roles = decision.tasks, decision.tasks.program.argument_roles
    is_here = tasks.node.size == 1 and not (tasks.shards or spec.options.interpreted)
    return is_here and not (argument_roles.near or argument_roles.has_relaxed)


def _plan_order_copy(spec: LoopSpec, decision: RecordingDecision) -> PlanOrderCopy | None:
    """Return a table to be copied while the plan is made; None if its rows are not numbered like the tasks.

    The copy overwrites the records, which a guarded loop still needs afterwards.
    """
    position, argument_roles, tasks = largest(decision.memory), decision.tasks.program.argument_roles, len(spec.indices)
    if position not in spec.contents or decision.alone or argument_roles.near or argument_roles.with_role(Role.GUARDED):
        return None
    table, room = decision.tasks.bound.tables[position].dense, decision.memory[position]
    if not (spec.indices.is_counting and len(table) >= tasks and room.size > 0 and table.flags.c_contiguous):
        return None
    return PlanOrderCopy.of(as_records(table), as_records(room))
