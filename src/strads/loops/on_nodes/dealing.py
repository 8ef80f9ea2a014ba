"""Node program `deal_anew`: rows from which `near` draws come into other blocks, and the plan follows."""

from dataclasses import replace
from typing import Any

import numpy as np

from strads.cluster import Node, ThreadTeam
from strads.loops.on_nodes.node_tasks import NodeTasks
from strads.loops.on_nodes.placing import Part, executable_plan, notes_on_pools, placed_on_nodes, pools_of
from strads.loops.on_nodes.recording_decision import loop_of
from strads.loops.on_nodes.specs import LoopFacts, NodeLoop
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.strategies.dealing import Deal, deal_plan


def deal_anew(
    node: Node, name: str, arguments: tuple[Any, ...], deal: Deal, team: ThreadTeam | None
) -> LoopFacts | None:
    """Deal the rows of a prepared loop; what was recorded, compiled and checked remains. Node 0 returns its facts."""
    loop: NodeLoop = node.store[name]
    parts, found = None, None
    if node.rank == 0:
        facts = loop.facts
        assert loop.records is not None
        assert facts is not None
        tasks = NodeTasks.of(node, loop.spec, arguments, team, variant=loop.variant)
        plan = _dealt_plan(loop, tasks, facts.plan, deal)
        near = pools_of(tasks, loop.records, plan)
        filled, found = np.diff(plan.offsets) > 0, facts
        if all(np.all(of_group.sizes[filled] > 0) for of_group in near):  # else the old deal remains
            old, new = facts.plan.details, notes_on_pools(tasks, plan, near)
            plan = plan.with_details(rejected=old.rejected, notes=old.notes, notes_on_near=new)
            plan, bounds, parts = placed_on_nodes(tasks, loop.spec.options, plan, loop.records, near)
            found = loop.facts = replace(facts, plan=plan, bounds=bounds)
    mine = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    if mine is not None:
        _take_over(loop, mine)
    return found


def _dealt_plan(loop: NodeLoop, tasks: NodeTasks, old: Plan, deal: Deal) -> Plan:
    """Return the plan of another deal: from the deck, or from the records."""
    if old.details.deck is not None:
        return deal_plan(old.details.deck, deal)
    assert loop.records is not None
    of = replace(loop_of(loop.spec, tasks, in_order=False), deal=deal)
    return build_plan(loop.records, of, threads=tasks.team.size, strategy=old.strategy)


def _take_over(loop: NodeLoop, mine: Part) -> None:
    """Give a node its part of another plan; copies of rows in the order of the old one are outdated."""
    loop.part, owned, loop.pools = mine
    loop.executable = executable_plan(loop.spec, loop.part, owned)
    loop.attached = None
    loop.segments.clear()
    for position, (_, rows) in loop.aligned.items():
        if isinstance(rows, np.ndarray) and len(rows) == loop.part.plan.tasks:
            loop.memory[position] = rows
    loop.aligned.clear()
