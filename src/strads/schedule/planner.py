"""Choosing what may run together: from access records to a plan (DESIGN §4.4, thesis §7.2.4)."""

from collections.abc import Callable
from dataclasses import replace


from strads.errors import PlanError
from strads.schedule.access import AccessRecords
from strads.schedule.independent import independent
from strads.schedule.parallel import Parallel, sequential
from strads.schedule.plan import Plan
from strads.schedule.problem import Problem
from strads.schedule.rotation import rotation

STRATEGIES: dict[str, Callable[[Problem], Plan]] = {
    "independent": independent,
    "rotation": rotation,
}


def build_plan(
    records: AccessRecords,
    *,
    threads: int,
    strategy: str = "auto",
    seed: int = 0,
    parallel: Parallel = sequential,
) -> Plan:
    """Plan a loop."""
    problem = Problem.of(records, threads, seed, parallel)
    if strategy != "auto":
        return STRATEGIES[strategy](problem)
    try:
        return independent(problem)
    except PlanError as error:
        plan = rotation(problem)
        return replace(plan, details={**plan.details, "rejected": {"independent": str(error)}})
