"""Decides what may run concurrently: from access records to a plan (DESIGN §4.4, thesis §7.2.4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.passes.counting_sort import PlanOrderCopy
from strads.schedule.passes.parallel import Parallel, sequential
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.cost import BYTES
from strads.schedule.records.crowding import crowded_row, sample
from strads.schedule.records.feeding import Feeding, feeding, feeds_forward
from strads.schedule.records.parts import as_sparse, as_uniform, chosen
from strads.schedule.records.row_ranges import RowRanges, ranges_of
from strads.schedule.strategies.buckets import buckets, touch_few_rows
from strads.schedule.strategies.colouring import colouring, colouring_of_ranges, foreseen_colouring
from strads.schedule.strategies.components import components
from strads.schedule.strategies.dealing import Deal
from strads.schedule.strategies.independent import independent
from strads.schedule.strategies.locked import locked
from strads.schedule.strategies.precedence import no_precedence
from strads.schedule.strategies.problem import Problem
from strads.schedule.strategies.rotation import ENOUGH, rotation
from strads.schedule.strategies.wavefront import foreseen_chunks, wavefront, wavefront_of_ranges


def in_sequence(problem: Problem) -> Plan:
    """One job runs the loop in its order. Applies to every loop."""
    looked_at = min(problem.tasks, ENOUGH_TASKS)
    row, sharing = problem.busiest_row_of(looked_at)
    reason = ALONE
    if row >= 0:
        reason += f" ({sharing:,} of {looked_at:,} tasks touch {problem.row_name(row)})"
    return _one_job(problem, "sequential", reason)


STRATEGIES: dict[str, Callable[[Problem], Plan]] = {
    "independent": independent,
    "rotation": rotation,
    "buckets": buckets,
    "components": components,
    "colouring": colouring,
    "wavefront": wavefront,
    "sequential": in_sequence,
    "locked": locked,
}
IN_ORDER = ("independent", "wavefront", "sequential")  # strategies whose result is that of the sequential loop
KEPT = "tasks read what earlier ones wrote, so the loop's order is kept"
ALONE = "one job runs the loop in its order"
PLANNED = 20.0  # nanoseconds of planning for an access
JOB_NS = 500.0  # cost to a thread of taking and finishing a job
PARTS, SMALLEST_PART = 16, 1 << 17  # of the tasks of a long loop, of which one part stands for all
ENOUGH_TASKS = 1 << 18  # for identifying a row that many tasks touch
WORTHWHILE = 1.2  # minimum estimated speed-up of two threads over one, as estimates may be wrong


def build_plan(
    records: AccessRecords,
    *,
    threads: int,
    strategy: str = "auto",
    seed: int = 0,
    parallel: Parallel = sequential,
    copy_in_order: PlanOrderCopy | None = None,
    in_order: bool = False,
    streams: bool = False,
    certain: float = 1.0,
    near: Sequence[frozenset[int]] = (),
    deal: Deal = (),
) -> Plan:
    """Plan a loop: group its tasks into jobs, and order the jobs that conflict.

    Two tasks conflict when they touch a row that any task of the loop writes.

    Parameters
    ----------
    records
        The rows that each task touches.
    threads
        Number of threads that make the plan, on which it does not depend.
    strategy
        "independent", "rotation", "buckets", "components", "colouring", "wavefront", "sequential", "locked", or "auto":
        one of them that two threads run faster than one, else "sequential"; locks are used only on request. The
        reasons why others were rejected are in `details["rejected"]`.
    seed
        Seed of the random batches of `components`.
    parallel
        Runs large passes over the tasks in chunks; sequentially by default.
    copy_in_order
        Rows to be copied into plan order at the same time, if the strategy supports it: then the plan's order is
        `copy_in_order.order`.
    in_order
        Whether the result must be that of the sequential loop.
    streams
        Whether tasks read data that are stored in the order of the loop and are not copied into that of the plan.
    certain
        The share of the accesses that are made unconditionally, not only under conditions that the loop changes.
    near
        Groups of tables from whose rows the tasks of a job draw some, by number: such rows are not recorded.
    deal
        Determines how the rows of these tables are dealt to blocks, and the seed of that.

    Returns
    -------
    Plan
        Deterministic, except under locks: the result is that of one serial order, whatever the timing. Its
        `details` hold, where the strategy provides them: `work` of each job; by table name, the number of `blocks`
        and their `bounds`; `cells`, the blocks of each job of a rotation; `batches`; `rejected`; and for
        `near` the `deck`, from which other plans can be dealt.

    Raises
    ------
    PlanError
        If the requested strategy is not applicable, or if a row is outside its table.
    """
    if strategy != "auto" and strategy not in STRATEGIES:
        raise PlanError(f"unknown strategy '{strategy}': use one of auto, {', '.join(STRATEGIES)}")
    if in_order and strategy not in ("auto", *IN_ORDER):
        raise PlanError(f"{strategy} changes the order of tasks: with order='sequential' use {' or '.join(IN_ORDER)}")
    if threads < 1:
        raise PlanError(f"a plan needs at least 1 thread, not {threads}")
    problem = Problem.of(records, threads, seed, parallel, copy_in_order, certain, tuple(near), deal)
    if problem.tasks == 0:
        return _one_job(problem, "independent" if strategy == "auto" else strategy, "the loop has no tasks")
    if near and strategy in ("wavefront", "locked"):
        raise PlanError(f"{strategy} cannot serve a loop that calls near: its jobs own no rows of their own")
    if strategy != "auto":
        return _forced(problem, strategy)
    crowded = crowded_row(sample(records))
    if crowded is not None:
        return _one_job(problem, "sequential", f"{ALONE}: {crowded}")
    middle = middle_of(records.tasks) if records.rows.size else range(0)
    part = chosen(records, np.arange(middle.start, middle.stop)) if middle else None
    if part is not None:
        loop = Loop(records.tasks, in_order, streams, certain, tuple(near), deal, seed)
        bounds = _colourable_chunks(part, loop)
        plan = None if bounds is None else colouring_of_ranges(bounds, ranges_of(as_sparse(records), bounds))
        if plan is not None:
            return plan
        hopeless = foresee_one_job(part, loop, lambda: chosen(records, np.arange(0, records.tasks, spread(loop.tasks))))
        if hopeless is not None:
            plan = _one_job(problem, "sequential", f"{ALONE}: {hopeless.reason}")
            return _with_rejected(plan, hopeless.rejected)
    if not in_order and _feeds_forward(records, part):
        plan = _choose(problem, in_order=True, streams=streams)
        return replace(plan, reason=f"{plan.reason}; {KEPT}")
    return _choose(problem, in_order=in_order, streams=streams)


def _feeds_forward(records: AccessRecords, part: AccessRecords | None) -> bool:
    """Whether the order of a loop counts, given its records and those of its middle, which usually decide.

    Whoever plans without all records only knows of the part: both must come to the same order.
    """
    found = Feeding.SELDOM if part is None else feeding(part)
    return feeds_forward(records) if found is Feeding.SELDOM else found is Feeding.FORWARD


@dataclass(frozen=True)
class Loop:
    """What the planner knows of a loop beside its records; see the parameters of `build_plan`."""

    tasks: int
    in_order: bool
    streams: bool
    certain: float
    near: tuple[frozenset[int], ...]
    deal: Deal
    seed: int


@dataclass(frozen=True)
class OneJob:
    """Why a loop has to run as one job, and why each strategy was rejected."""

    reason: str
    rejected: dict[str, str]


def middle_of(tasks: int) -> range:
    """Return the tasks in the middle of a long loop that stand for all of it; none of one that is not long."""
    size = max(SMALLEST_PART, tasks // PARTS)
    begin = (tasks - size) // 2
    return range(begin, begin + size) if tasks >= 2 * size else range(0)


def spread(tasks: int) -> int:
    """Return the stride of tasks that stand for all of a long loop wherever its order does not count.

    Neighbours share more rows than others do. Odd strides follow no period of the loop that is a power of two.
    """
    return min(PARTS, tasks // SMALLEST_PART) | 1


def foresee_one_job(
    middle: AccessRecords, loop: Loop, record_spread: Callable[[], AccessRecords | None]
) -> OneJob | None:
    """Say why a long loop has to run as one job, as far as some of its tasks tell; None if a plan may win.

    Also called before the whole loop is recorded, to save the records; the plan is the same either way.

    Parameters
    ----------
    middle
        Records of the tasks `middle_of` the loop: whether it can be planned in its order.
    loop
        The loop.
    record_spread
        Returns the records of every `spread`-th task, or None if that fails: whether it can be planned in another
        order. Only called if the middle does not decide.
    """
    middle = as_sparse(middle)  # the cost model tells uniform records from others
    plan = build_plan(middle, threads=2, in_order=True, certain=loop.certain)
    if plan.strategy != "sequential" or _colourable_chunks(middle, loop) is not None:
        return None
    if loop.in_order or feeds_forward(middle):
        return _one_job_after(
            plan, f"its order counts, and {middle.tasks:,} tasks of its middle can hardly run together"
        )
    part = record_spread()
    if part is None:
        return None
    part = as_uniform(as_sparse(part))
    problem = _of_part(part, loop)
    plan = _choose(problem, in_order=False, streams=loop.streams, share=part.tasks / loop.tasks)
    if plan.strategy != "sequential":
        return None
    cause = plan.reason.removeprefix(ALONE).strip(" ()") or "they share rows"
    return _one_job_after(
        plan, f"two threads would hardly be faster for {part.tasks:,} tasks from all over it: {cause}"
    )


def _one_job_after(trial: Plan, reason: str) -> OneJob:
    rejected = trial.details.get("rejected")
    return OneJob(reason, dict(rejected) if isinstance(rejected, dict) else {})


def is_dear(part: AccessRecords, *, in_order: bool) -> bool:
    """Whether a plan for a loop whose order counts takes longer than the loop, as far as the tasks of its middle tell.

    That is, whether rows are so short that an access takes less time than a planner's passes over its record.
    """
    part = as_sparse(part)
    row_bytes = np.array([table.row_bytes for table in part.tables])[part.tags >> 1].mean()
    return bool(row_bytes / BYTES < PLANNED) and (in_order or feeds_forward(part))


def regular_chunks(part: AccessRecords, begin: int, loop: Loop) -> tuple[NDArray[np.int64], bool] | None:
    """Return chunks by whose ranges of rows a long loop can be planned, as far as its middle tells.

    Parameters
    ----------
    part
        Records of some tasks, from `begin` on.
    loop
        The whole loop.

    Returns
    -------
    Bounds of the chunks, int64 array of shape (chunks + 1,), and whether they keep the order of the loop; or None.
    """
    part = as_sparse(part)
    if not (loop.in_order or feeds_forward(part)):
        bounds = _colourable_chunks(part, loop)
        return None if bounds is None else (bounds, False)
    problem = _of_part(part, loop)
    if problem.rows == 0 or _serves(problem, "independent"):
        return None
    bounds = foreseen_chunks(problem, part, begin, loop.tasks, WORTHWHILE)
    return None if bounds is None else (bounds, True)


def _colourable_chunks(part: AccessRecords, loop: Loop) -> NDArray[np.int64] | None:
    """Return chunks for a colouring of a long loop whose order does not count, as far as records of its middle tell."""
    if loop.in_order or loop.near or feeding(part) in (Feeding.FORWARD, Feeding.SELDOM):
        return None
    part = as_sparse(part)
    problem = _of_part(part, loop)
    if problem.rows == 0 or touch_few_rows(problem):  # then blocks of rows make better jobs than blocks of tasks
        return None
    return foreseen_colouring(problem, part, loop.tasks)


def _of_part(part: AccessRecords, loop: Loop) -> Problem:
    return Problem.of(part, 2, loop.seed, sequential, None, loop.certain, loop.near, loop.deal)


def plan_of_ranges(
    bounds: NDArray[np.int64],
    ranges: RowRanges,
    *,
    in_order: bool,
    keeps_order: bool = True,
    worthwhile: float = WORTHWHILE,
) -> Plan | None:
    """Plan a loop by the ranges of rows that its chunks touch; None if it must be recorded in full to be planned.

    `bounds`, `keeps_order`: from `regular_chunks`.
    """
    if not keeps_order:
        return colouring_of_ranges(bounds, ranges)
    plan = wavefront_of_ranges(bounds, ranges, worthwhile)
    return plan if plan is None or in_order else replace(plan, reason=f"{plan.reason}; {KEPT}")


def _forced(problem: Problem, strategy: str) -> Plan:
    try:
        return STRATEGIES[strategy](problem)
    except PlanError as error:
        trial = replace(problem, copy_in_order=None)  # which may overwrite the records
        able = [name for name in STRATEGIES if name != strategy and _serves(trial, name)]
        raise PlanError(f"{strategy} cannot serve this loop: {error}. {' or '.join(able)} could") from error


def _serves(problem: Problem, strategy: str) -> bool:
    try:
        STRATEGIES[strategy](problem)
    except PlanError:
        return False
    return True


def _choose(problem: Problem, *, in_order: bool, streams: bool, share: float = 1.0) -> Plan:
    """Return the first plan that is good enough, or the best; `share` is that of the tasks in the problem."""
    rejected: dict[str, str] = {}
    best, best_gain = None, WORTHWHILE
    for strategy in _candidates(in_order=in_order, streams=streams):
        if problem.near and strategy == "wavefront":
            rejected[strategy] = "its jobs own no rows from which near could draw"
            continue
        if strategy == "colouring" and (problem.near or middle_of(problem.tasks)):
            rejected[strategy] = (
                "its middle shows that chunks of tasks share too many rows"  # or it would have been chosen
            )
            continue
        try:
            plan = wavefront(problem, WORTHWHILE) if strategy == "wavefront" else STRATEGIES[strategy](problem)
        except PlanError as error:
            rejected[strategy] = str(error)
            continue
        gain = _gain(problem, plan, share)
        if _is_enough(plan, gain):
            return _with_rejected(plan, rejected)
        rejected[strategy] = _why(plan, gain)
        if gain > best_gain:
            best, best_gain = plan, gain
    if best is None:
        return _with_rejected(in_sequence(problem), rejected)
    del rejected[best.strategy]
    return _with_rejected(best, rejected)


def _candidates(*, in_order: bool, streams: bool) -> tuple[str, ...]:
    if in_order:
        return "independent", "wavefront"
    if streams:  # random batches would cost more than two threads gain
        return "independent", "rotation", "colouring", "wavefront"
    return "independent", "rotation", "buckets", "colouring", "components", "wavefront"


def _gain(problem: Problem, plan: Plan, share: float) -> float:
    """Estimated speed-up of a plan on two threads over the sequential loop on one thread."""
    if plan.strategy in ("independent", "rotation"):
        return plan.parallelism
    alone = problem.tasks * problem.nanoseconds_in(None)
    jobs = plan.jobs * (share if plan.strategy == "buckets" else 1.0)  # other strategies make jobs of a given size
    # Of a part of the loop, it is not known how near to each other tasks of a job are.
    reordered = alone if share < 1 else problem.tasks * problem.nanoseconds_in(plan.order)
    together = reordered / min(plan.parallelism, 2.0) + jobs * JOB_NS / 2
    gain = plan.details.get("gain")
    return min(alone / together, gain) if isinstance(gain, float) else alone / together


def _is_enough(plan: Plan, gain: float) -> bool:
    """Whether no other strategy needs to be tried."""
    if plan.strategy == "independent":
        return True
    if plan.strategy == "rotation":
        return plan.parallelism >= ENOUGH
    return gain >= WORTHWHILE and plan.parallelism >= 1.5


def _why(plan: Plan, gain: float) -> str:
    if plan.parallelism >= WORTHWHILE > gain:
        return f"{plan.jobs:,} jobs would cost more than a parallelism of {plan.parallelism:.1f} gains"
    bottleneck = plan.details.get("bottleneck")
    return f"its parallelism would be only {plan.parallelism:.1f}" + (f": {bottleneck}" if bottleneck else "")


def _one_job(problem: Problem, strategy: str, reason: str) -> Plan:
    """All tasks in loop order on one thread; no job for an empty loop."""
    groups = problem.contiguous_groups(1)
    jobs = len(groups[1]) - 1
    return problem.plan(strategy, reason, groups, np.zeros(jobs, np.int32), no_precedence(jobs))


def _with_rejected(plan: Plan, rejected: dict[str, str]) -> Plan:
    return replace(plan, details={**plan.details, "rejected": rejected})
