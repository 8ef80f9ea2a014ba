"""Chooses among the strategies: which of them serve a loop, and which makes two threads faster than one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from strads.errors import PlanError
from strads.schedule.plan import Plan
from strads.schedule.strategies.buckets import buckets
from strads.schedule.strategies.colouring import colouring
from strads.schedule.strategies.components import components
from strads.schedule.strategies.independent import independent
from strads.schedule.strategies.locked import locked
from strads.schedule.strategies.precedence import no_precedence
from strads.schedule.strategies.problem import Problem
from strads.schedule.strategies.rotation import ENOUGH_OF_GRID, evidently_rotates, rotation
from strads.schedule.strategies.wavefront import wavefront

RATED_BY_PARALLELISM = ("independent", "rotation")  # tried first
REORDERING = ("rotation", "buckets", "components")  # whose order may leave that of the data
ALONE = "one job runs the loop in its order"
JOB_NS = 500.0  # cost to a thread of taking and finishing a job
PARTS, SMALLEST_PART, LARGEST_PART = 16, 1 << 17, 1 << 20  # a sample is 1/PARTS of a long loop, within these bounds
ENOUGH_TASKS = 1 << 18  # for identifying a row that many tasks touch
WORTH_MENTIONING = 0.01  # share of the tasks that touch a row which is worth mentioning
WORTHWHILE = 1.2  # minimum estimated speed-up of two threads over one, as estimates may be wrong


def in_sequence(problem: Problem) -> Plan:
    """One job runs the loop in its order. Applies to every loop."""
    looked_at = min(problem.tasks, ENOUGH_TASKS)
    row, sharing = problem.busiest_row_of(looked_at)
    if row < 0 or sharing < WORTH_MENTIONING * looked_at:
        return one_job(problem, "sequential", ALONE)
    bottleneck = f"{sharing:,} of {looked_at:,} tasks touch {problem.row_name(row)}"
    return one_job(problem, "sequential", f"{ALONE} ({bottleneck})").with_details(bottleneck=bottleneck)


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


def middle_of(tasks: int) -> range:
    """Return the middle tasks of a long loop, a sample of all its tasks; an empty range if the loop is short."""
    size = min(max(SMALLEST_PART, tasks // PARTS), LARGEST_PART)
    begin = (tasks - size) // 2
    return range(begin, begin + size) if tasks >= 2 * size else range(0)


def sample_stride(tasks: int) -> int:
    """Return the stride between sampled tasks of a long loop, for estimates that do not depend on its order.

    Neighbours share more rows than others do. An odd stride does not resonate with periods that are powers of two.
    """
    return (tasks // SMALLEST_PART) | 1


def forced(problem: Problem, strategy: str) -> Plan:
    """Return the plan of a strategy.

    Raises
    ------
    PlanError
        If it does not apply; says which strategies do.
    """
    if problem.rows == 0:  # of a loop without conflicts, a strategy orders what tasks write
        problem = replace(problem, found=problem.written)
    try:
        return STRATEGIES[strategy](problem)
    except PlanError as error:
        trial = replace(problem, copy_in_order=None)  # which may overwrite the records
        # Only planning shows whether a strategy applies: finding the names takes as long as making all these plans.
        able = [name for name in STRATEGIES if name != strategy and serves(trial, name)]
        names = " or ".join(filter(None, (", ".join(able[:-1]), *able[-1:])))
        raise PlanError(f"strategy={strategy!r} cannot serve this loop: {error}. Use {names}") from error


def serves(problem: Problem, strategy: str) -> bool:
    """Whether a strategy applies."""
    try:
        STRATEGIES[strategy](problem)
    except PlanError:
        return False
    return True


def is_evident(problem: Problem, pays: Callable[[str], bool]) -> bool:
    """Whether a strategy is good enough that no more times need to be estimated; `pays` as for `choose`."""
    return serves(problem, "independent") or (pays("rotation") and evidently_rotates(problem))


def order_pays(problem: Problem, strategy: str) -> bool:
    """Whether the order of a strategy costs less than two threads gain, if it applies.

    Tasks that stream through memory and compute little are slower in any other order than theirs.
    """
    if problem.loop.near:
        return True
    if problem.copy_in_order is not None:
        problem = replace(problem, copy_in_order=None)  # the copy may overwrite the records
    try:
        plan = STRATEGIES[strategy](problem)
    except PlanError:
        return True
    return problem.pays(plan.order, WORTHWHILE)


def choose(
    problem: Problem,
    *,
    in_order: bool,
    share: float = 1.0,
    alone: float | None = None,
    pays: Callable[[str], bool] | None = None,
) -> Plan:
    """Return the first plan that is good enough, or the best.

    Parameters
    ----------
    problem
        The loop, or tasks from all over it.
    in_order
        Whether the result must be that of the sequential loop.
    share
        Fraction of the loop's tasks that the problem contains.
    alone
        Nanoseconds of a task in loop order; needed if the tasks of the problem are not consecutive.
    pays
        Whether the order of a strategy pays, as consecutive tasks have shown: see `order_pays`.
    """
    rejected: dict[str, str] = {}
    best, best_gain = None, WORTHWHILE
    for strategy in _candidates(in_order=in_order, streams=problem.loop.streams):
        if problem.loop.near and strategy == "wavefront":
            rejected[strategy] = "its jobs own no rows from which near could draw"
            continue
        if strategy == "colouring" and problem.loop.near:
            rejected[strategy] = "it is not tried for loops that call near"
            continue
        if strategy == "colouring" and middle_of(problem.tasks):
            # A long loop that can be coloured has been planned already: see `LoopSample.colourable_chunks`.
            rejected[strategy] = "it does not pay, judging by tasks from the middle of the loop"
            continue
        if strategy in REORDERING and not (order_pays(problem, strategy) if pays is None else pays(strategy)):
            rejected[strategy] = "in its order tasks would wait for memory, for longer than two threads gain"
            continue
        try:
            plan = wavefront(problem, WORTHWHILE) if strategy == "wavefront" else STRATEGIES[strategy](problem)
        except PlanError as error:
            rejected[strategy] = str(error)
            continue
        gain = _gain(problem, plan, share, alone)
        if _is_enough(plan, gain):
            return plan.with_details(rejected=rejected)
        rejected[strategy] = _why(plan, gain)
        if gain > best_gain:
            best, best_gain = plan, gain
    if best is None:
        return in_sequence(problem).with_details(rejected=rejected)
    del rejected[best.strategy]
    return best.with_details(rejected=rejected)


def _candidates(*, in_order: bool, streams: bool) -> tuple[str, ...]:
    if in_order:
        return "independent", "wavefront"
    if streams:  # random batches would cost more than two threads gain
        return "independent", "rotation", "colouring", "wavefront"
    return "independent", "rotation", "buckets", "colouring", "components", "wavefront"


def _gain(problem: Problem, plan: Plan, share: float, of_task: float | None) -> float:
    """Estimated speed-up of a plan on two threads over the sequential loop on one thread."""
    if plan.strategy in RATED_BY_PARALLELISM:
        return plan.parallelism
    alone = problem.tasks * (problem.nanoseconds_in(None) if of_task is None else of_task)
    jobs = plan.jobs * (share if plan.strategy == "buckets" else 1.0)  # other strategies make jobs of a given size
    # Of a part of the loop, it is not known how near to each other the tasks of a job are, unless they are random.
    is_known = share == 1 or plan.details.batches != 1
    reordered = problem.tasks * problem.nanoseconds_in(plan.order) if is_known else alone
    together = reordered / min(plan.parallelism, 2.0) + jobs * JOB_NS / 2
    gain = plan.details.gain
    return alone / together if gain is None else min(alone / together, gain)


def _is_enough(plan: Plan, gain: float) -> bool:
    """Whether no other strategy needs to be tried."""
    if plan.strategy == "independent":
        return True
    if plan.strategy == "rotation":
        return plan.parallelism >= ENOUGH_OF_GRID
    return gain >= WORTHWHILE and plan.parallelism >= 1.5


def _why(plan: Plan, gain: float) -> str:
    if plan.parallelism >= WORTHWHILE > gain:
        return f"{plan.jobs:,} jobs would cost more than a parallelism of {plan.parallelism:.1f} gains"
    bottleneck = plan.details.bottleneck
    return f"its parallelism would be only {plan.parallelism:.1f}" + (f": {bottleneck}" if bottleneck else "")


def one_job(problem: Problem, strategy: str, reason: str) -> Plan:
    """All tasks in loop order on one thread; no job for an empty loop."""
    groups = problem.contiguous_groups(1)
    jobs = len(groups[1]) - 1
    return problem.plan(strategy, reason, groups, np.zeros(jobs, np.int32), no_precedence(jobs))
