"""Node program `deal_anew`: rows from which `near` draws come into other blocks, and the plan follows."""

from dataclasses import replace
from typing import Any

import numpy as np

from strads.cluster import Node, ThreadTeam
from strads.loops.on_nodes.binding import bind, shards_of
from strads.loops.on_nodes.placing import NEAR, Part, executable_plan, notes_on_pools, placed_on_nodes, pools_of
from strads.loops.on_nodes.specs import LoopFacts, NodeLoop
from strads.loops.program import LoopProgram
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.strategies.dealing import Deal, deck_of


def deal_anew(
    node: Node, name: str, arguments: tuple[Any, ...], deal: Deal, team: ThreadTeam | None
) -> LoopFacts | None:
    """Deal the rows of a prepared loop; what was recorded, compiled and checked remains.

    Returns
    -------
    The facts of the loop on node 0; None elsewhere.
    """
    loop: NodeLoop = node.store[name]
    parts, found = None, None
    if node.rank == 0:
        facts = loop.facts
        assert loop.records is not None
        assert facts is not None
        bound, program = bind(node, loop.spec, arguments, outcomes=loop.outcomes)
        crew, shards = team or node.team, shards_of(node, arguments)
        plan = _dealt_plan(loop, program, facts.plan, deal, crew)
        near = pools_of(program, bound, loop.records, plan)
        filled, found = np.diff(plan.offsets) > 0, facts
        if all(np.all(of_group.sizes[filled] > 0) for of_group in near):  # else the old deal remains
            plan.details["rejected"] = facts.plan.details.get("rejected")
            notes = [note for note in _notes(facts.plan) if not note.startswith(NEAR)]
            plan.details["notes"] = [*notes, *notes_on_pools(program, bound, plan, near)]
            placing = loop.spec.options, program, plan, loop.records, near, shards, crew.size
            plan, bounds, parts = placed_on_nodes(node, *placing)
            found = loop.facts = replace(facts, plan=plan, bounds=bounds)
    mine = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    if mine is not None:
        _take_over(loop, mine)
    return found


def _notes(plan: Plan) -> list[str]:
    found = plan.details.get("notes")
    return found if isinstance(found, list) else []


def _dealt_plan(loop: NodeLoop, program: LoopProgram, old: Plan, deal: Deal, team: ThreadTeam) -> Plan:
    """Return the plan of another deal: from the deck, or from the records."""
    deck = deck_of(old)
    if deck is not None:
        return deck.deal(deal)
    assert loop.records is not None
    return build_plan(
        loop.records,
        threads=team.size,
        strategy=old.strategy,
        parallel=team.for_each,
        certain=program.facts.certain_share,
        near=program.cast.near_tables(),
        deal=deal,
    )


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
