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
    lines += _blocks(plan) + _locks(plan) + _notes(plan) + _rejected(plan)
    return "\n".join(lines)


def _blocks(plan: "Plan") -> list[str]:
    blocks = plan.details.get("blocks")
    if not isinstance(blocks, dict):
        return []
    return ["blocks: " + ", ".join(f"{count} of {name}" for name, count in blocks.items())]


def _locks(plan: "Plan") -> list[str]:
    lines = []
    if plan.lane is not None:
        lines.append(f"lanes: {int(plan.lane.max(initial=-1)) + 1}")
    if plan.locks is not None:
        lines.append(f"locks: {plan.locks.count:,}; the result depends on timing")
        lines.append("for the same result in every run: strategy='auto', with rng.near(table) for rows drawn at random")
    return lines


def _notes(plan: "Plan") -> list[str]:
    notes = plan.details.get("notes")
    return list(notes) if isinstance(notes, list) else []


def _rejected(plan: "Plan") -> list[str]:
    rejected = plan.details.get("rejected")
    if not isinstance(rejected, dict):
        return []
    return [f"not {strategy}: {why}" for strategy, why in rejected.items()]
