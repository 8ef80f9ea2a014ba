"""Choosing what may run together: from access records to a plan (DESIGN §4.4, thesis §7.2.4)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from strads.errors import PlanError
from strads.schedule.access import AccessRecords
from strads.schedule.buckets import buckets
from strads.schedule.components import components
from strads.schedule.counting_sort import Cargo
from strads.schedule.independent import independent
from strads.schedule.locked import lock_parallelism, locked
from strads.schedule.parallel import Parallel, sequential
from strads.schedule.plan import Plan
from strads.schedule.precedence import no_precedence
from strads.schedule.problem import Problem
from strads.schedule.rotation import ENOUGH, rotation

STRATEGIES: dict[str, Callable[[Problem], Plan]] = {
    "independent": independent,
    "rotation": rotation,
    "buckets": buckets,
    "components": components,
    "locked": locked,
}
WORTHWHILE = 1.2  # less parallelism than this is none
LOCKS_COST = 2.0  # locks take time and cost determinism: they must promise this many times the parallelism


def build_plan(
    records: AccessRecords,
    *,
    threads: int,
    strategy: str = "auto",
    seed: int = 0,
    parallel: Parallel = sequential,
    cargo: Cargo | None = None,
) -> Plan:
    """Plan a loop: group its tasks into jobs, and order the jobs that conflict.

    Two tasks conflict when they touch a row that any task of the loop writes.

    Parameters
    ----------
    records
        What each task touches.
    threads
        Threads that will run the plan. Up to 8 of them, a strategy gives the same plan for every number
        (`rotation` over three tables up to 4, `components` up to 2).
    strategy
        "independent", "rotation", "buckets", "components", "locked", or "auto": the first of them that gives
        enough parallelism. Why the others were passed over is in `details["rejected"]`.
    seed
        Of the random batches of `components`.
    parallel
        Runs big passes over the tasks in chunks; one after the other by default.
    cargo
        Rows to be copied into plan order on the way, where the strategy can: then the plan's order is `cargo.order`.

    Returns
    -------
    Plan
        Deterministic, except under locks: any timing gives the result of the same serial order. Its `details`
        hold, as far as the strategy has them: `work` of each job; by table name, the number of `blocks` and
        their `bounds`; `cells`, the blocks of each job of a rotation; `batches`; and `rejected`.

    Raises
    ------
    PlanError
        If a strategy was asked for that cannot serve; if a row is outside its table.
    """
    if strategy != "auto" and strategy not in STRATEGIES:
        raise PlanError(f"unknown strategy '{strategy}': use one of auto, {', '.join(STRATEGIES)}")
    if threads < 1:
        raise PlanError(f"a plan needs at least 1 thread, not {threads}")
    problem = Problem.of(records, threads, seed, parallel, cargo)
    if problem.tasks == 0:
        return _one_job(problem, "independent" if strategy == "auto" else strategy, "the loop has no tasks")
    return _choose(problem) if strategy == "auto" else _forced(problem, strategy)


def _forced(problem: Problem, strategy: str) -> Plan:
    try:
        return STRATEGIES[strategy](problem)
    except PlanError as error:
        able = [name for name in STRATEGIES if name != strategy and _serves(problem, name)]
        raise PlanError(f"{strategy} cannot serve this loop: {error}. {' or '.join(able)} could") from error


def _serves(problem: Problem, strategy: str) -> bool:
    try:
        STRATEGIES[strategy](problem)
    except PlanError:
        return False
    return True


def _choose(problem: Problem) -> Plan:
    rejected: dict[str, str] = {}
    fallbacks: list[Plan] = []
    for strategy in ("independent", "rotation", "buckets", "components"):
        try:
            plan = STRATEGIES[strategy](problem)
        except PlanError as error:
            rejected[strategy] = str(error)
            continue
        if plan.parallelism >= _enough(strategy, problem.threads):
            return _with_rejected(plan, rejected)
        bottleneck = plan.details.get("bottleneck")
        why = f": {bottleneck}" if bottleneck else ""
        rejected[strategy] = f"its parallelism would be only {plan.parallelism:.1f}{why}"
        fallbacks.append(plan)
    return _last_resort(problem, fallbacks, rejected)


def _enough(strategy: str, threads: int) -> float:
    """Parallelism with which a strategy is taken at once; the same for 1 and 2 threads, as plans are."""
    if strategy == "independent":
        return 0.0
    return ENOUGH if strategy == "rotation" else 0.75 * max(threads, 2)


def _last_resort(problem: Problem, fallbacks: list[Plan], rejected: dict[str, str]) -> Plan:
    """No strategy gives enough: take the best, or locks where they promise much more, or run in sequence."""
    best = max(fallbacks, key=lambda plan: plan.parallelism)
    promised = min(lock_parallelism(problem), max(problem.threads, 2))
    if best.parallelism >= max(WORTHWHILE, promised / LOCKS_COST):
        del rejected[best.strategy]
        return _with_rejected(best, rejected)
    if promised > WORTHWHILE:
        return _with_rejected(locked(problem), rejected)
    row, sharing = problem.busiest_row
    rejected["locked"] = f"{sharing} of {problem.tasks} tasks touch {problem.row_name(row)}, so locks would not help"
    reason = (
        f"{sharing} of {problem.tasks} tasks touch {problem.row_name(row)}: "
        "no two of them may run together, so one job runs the loop in its order"
    )
    return _with_rejected(_one_job(problem, "components", reason), rejected)


def _one_job(problem: Problem, strategy: str, reason: str) -> Plan:
    """All tasks in loop order on one thread; no job for an empty loop."""
    groups = problem.contiguous_groups(1)
    jobs = len(groups[1]) - 1
    return problem.plan(strategy, reason, groups, np.zeros(jobs, np.int32), no_precedence(jobs))


def _with_rejected(plan: Plan, rejected: dict[str, str]) -> Plan:
    return replace(plan, details={**plan.details, "rejected": rejected})
