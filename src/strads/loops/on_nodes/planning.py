"""Plans a loop from its records: the jobs, the rows that they draw from, and the notes that `explain` shows."""

from dataclasses import replace

import numpy as np

from strads.bodies.functions import plain_function
from strads.engine.views.roles import Role
from strads.errors import PlanError
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.placing import Placed, notes_on_pools, placed_on_nodes, pools_of
from strads.loops.on_nodes.recording_decision import RecordingDecision, loop_of, reason_not_to_plan
from strads.loops.on_nodes.sequential_reasons import ONE_THREAD, SequentialReason
from strads.loops.on_nodes.specs import LoopSpec
from strads.schedule.choice import ALONE
from strads.schedule.kernels.counting_sort import PlanOrderCopy
from strads.schedule.plan import Plan
from strads.schedule.planner import KEPT, build_plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.hot_rows import sample
from strads.schedule.records.pools import Pools
from strads.user_code.source_location import SourceLine, describe

_AGAIN = "prepared again"  # how the note on it begins


def plan_loop(
    spec: LoopSpec, decision: RecordingDecision, records: AccessRecords, copy_in_order: PlanOrderCopy | None
) -> tuple[Placed, SequentialReason | None]:
    """Plan and place a loop, given the records of all nodes; also returns why it runs as one job, if it was told to."""
    tasks, options = decision.tasks, spec.options
    plan, alone = _plan(spec, decision, records, copy_in_order)
    near, plan = _pools(tasks, records, plan, options.strategy)
    if plan.strategy == "sequential" and tasks.node.size == 1 and not options.interpreted:
        plan = plan.with_details(prefetch_distance=tasks.prefetch_distance(loop_of(spec, tasks, in_order=True)))
    plan = plan.with_details(notes=_notes(spec, decision), notes_on_near=notes_on_pools(tasks, plan, near))
    return placed_on_nodes(tasks, options, plan, records, near, everything=decision.checks_all), alone


def _plan(
    spec: LoopSpec, decision: RecordingDecision, records: AccessRecords, copy_in_order: PlanOrderCopy | None
) -> tuple[Plan, SequentialReason | None]:
    tasks, options, alone = decision.tasks, spec.options, decision.alone
    threads = tasks.node.size * tasks.team.size
    loop = loop_of(spec, tasks, in_order=decision.keeps_order or options.order == "sequential")
    alone = alone or reason_not_to_plan(
        spec, sample(records), loop, serves_one_call=decision.serves_one_call
    )  # as on one node
    plan = decision.plan or build_plan(
        records,
        loop,
        threads=threads,
        strategy="sequential" if alone else options.strategy,
        copy_in_order=copy_in_order,
        loop_sample=decision.loop_sample,
    )
    if plan.strategy == "wavefront" and options.strategy == "auto" and threads == 1 and not tasks.bound.sums_floats:
        # The result is the same. Float sums depend on the division into jobs, which must not depend on the threads.
        return _one_job(records, ONE_THREAD.reason), ONE_THREAD
    if alone:
        plan = replace(plan, reason=f"{ALONE}: {alone.reason}").with_details(rejected=decision.rejected)
    elif decision.keeps_order:
        plan = replace(plan, reason=f"{plan.reason}; {KEPT}")
    return plan, alone


def _one_job(records: AccessRecords, reason: str) -> Plan:
    plan = build_plan(records, threads=1, strategy="sequential")
    return replace(plan, reason=f"{ALONE}: {reason}")


def _pools(tasks: NodeTasks, records: AccessRecords, plan: Plan, strategy: str) -> tuple[tuple[Pools, ...], Plan]:
    """Return the rows that each job may draw, and the plan, which is another one if some job could draw none."""
    found, argument_roles = pools_of(tasks, records, plan), tasks.program.argument_roles
    filled = np.diff(plan.offsets) > 0
    lacking = [group for group, of_group in enumerate(found) if np.any(of_group.sizes[filled] == 0)]
    if not lacking:
        return found, plan
    names = " and ".join(
        tasks.bound.arguments[p].name for p, group in argument_roles.near.items() if group == lacking[0]
    )
    reason = (
        f"rng.near draws from the rows of {names} that a job owns, and some job owns none: "
        "let each task also touch a row of it by a fixed index"
    )
    if strategy not in ("auto", "sequential"):
        raise PlanError(f"{strategy} cannot serve this loop: {reason}")
    if min(records.tables[table].rows for group in argument_roles.near_tables() for table in group) == 0:
        return found, plan
    plan = _one_job(records, reason)
    return pools_of(tasks, records, plan), plan


def _notes(spec: LoopSpec, decision: RecordingDecision) -> tuple[str, ...]:
    """Describe what is recorded or checked in an unusual way, and why."""
    program, arguments = decision.tasks.program, decision.tasks.bound.arguments
    facts = program.facts
    notes = []
    if spec.again:
        changed = (_where_it_decides(decision, position) for position in sorted(spec.changed))
        notes.append(": ".join([_AGAIN, spec.again, *filter(None, [", ".join(changed)])]))
    if facts.outcomes and not decision.checks_all:
        notes.append("conditions that the loop changes: recorded both ways, so the plan holds whatever they are")
    for position in sorted(facts.drawn):
        name = arguments[position].name
        notes.append(
            f"rows of {name} are drawn, and known only when a call begins: a plan serves one call; "
            f"with rng.near({name}) the plan would last"
        )
    counted = " and ".join(arguments[position].name for position in sorted(spec.counters))
    if counted:
        notes.append(f"integers are only added to {counted}: each thread adds to a copy of its own")
    guarded = ", ".join(arguments[position].name for position in program.argument_roles.with_role(Role.GUARDED))
    if decision.checks_all:
        proved = program.is_proved(decision.tasks.bound)
        checked = (
            "nothing, as the body proves that its indices exist" if proved else "every access, as none was recorded"
        )
        notes.append(f"checked in the run: {checked}")
    elif guarded:
        where = describe(*(facts.first_volatile_line or SourceLine.of(plain_function(program.body))))
        what = "sums that the run may reorder" if facts.guards_roundings else "values that the loop changes"
        notes.append(f"checked in the run: rows of {guarded}, chosen by {what} at {where}")
    if spec.in_order_of_sums:
        notes.append("sums are not reordered: in another order, they chose other rows than the recorded ones")
    return tuple(notes)


def notes_again(spec: LoopSpec, notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the notes of an earlier loop for one that is prepared like it."""
    others = tuple(note for note in notes if not note.startswith(_AGAIN))
    return (f"{_AGAIN}: {spec.again}", *others) if spec.again else others


def _where_it_decides(decision: RecordingDecision, position: int) -> str:
    """Name an argument, with the first line where its content chooses rows."""
    program = decision.tasks.program
    name, line = decision.tasks.bound.arguments[position].name, program.facts.deciding_lines.get(position)
    return name if line is None else f"{name} ({describe(*line)})"
