"""The text of `Plan.explain()`."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from strads.schedule.plan import Plan


def explain(plan: "Plan") -> str:
    """Describe what a plan does and why, one fact per line."""
    filled = plan.work[np.diff(plan.offsets) > 0]
    barriers = plan.jobs - len(filled)
    stages = len(np.unique(plan.stage))
    lines = [
        f"strategy: {plan.strategy}",
        f"reason: {plan.reason}",
        f"tasks: {plan.tasks:,}",
        f"jobs: {len(filled):,}" + (f" and {barriers:,} barrier{'s' * (barriers > 1)}" if barriers else ""),
        f"stages: {stages:,}",
        f"parallelism: {plan.parallelism:.1f}",
    ]
    if len(filled):
        lines.append(f"work of a job: heaviest {filled.max():,}, median {int(np.median(filled)):,}")
    details = plan.details
    if details.blocks:
        lines.append("blocks: " + ", ".join(f"{count} of {name}" for name, count in details.blocks.items()))
    if details.ahead:
        lines.append(f"rows are fetched into the cache {details.ahead} tasks ahead, as most are not in it")
    lines += [*_locks(plan), *details.notes, *details.notes_on_near]
    lines += [f"not {strategy}: {why}" for strategy, why in details.rejected.items()]
    return "\n".join(lines)


def _locks(plan: "Plan") -> list[str]:
    lines = []
    if plan.lane is not None:
        lines.append(f"lanes: {int(plan.lane.max(initial=-1)) + 1}")
    if plan.locks is not None:
        lines.append(f"locks: {plan.locks.count:,}; the result depends on timing")
        lines.append("for the same result in every run: strategy='auto', with rng.near(table) for rows drawn at random")
    return lines
