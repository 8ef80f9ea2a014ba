"""Node program `deal_anew`: rows from which `near` draws come into other blocks, and the plan follows."""

from dataclasses import replace
from typing import Any

import numpy as np

from strads.cluster import Node, ThreadTeam
from strads.loops.on_nodes.binding import bind, shards_of
from strads.loops.on_nodes.placing import executable_plan, notes_on_pools, placed_on_nodes, pools_of
from strads.loops.on_nodes.specs import LoopFacts, NodeLoop
from strads.schedule.strategies.dealing import Deal


def deal_anew(
    node: Node, name: str, arguments: tuple[Any, ...], facts: LoopFacts, deal: Deal, team: ThreadTeam | None
) -> LoopFacts | None:
    """Deal the rows of a prepared loop; what was recorded, compiled and checked remains.

    Returns
    -------
    The facts of the loop on node 0; None elsewhere.
    """
    loop: NodeLoop = node.store[name]
    parts, found = None, None
    if loop.deck is not None:
        assert loop.records is not None
        bound, program = bind(node, loop.spec, arguments, outcomes=loop.outcomes)
        plan = loop.deck.deal(deal)
        near = pools_of(program, bound, loop.records, plan)
        kept = {key: value for key, value in facts.plan.details.items() if key in ("rejected", "notes")}
        plan.details.update(kept)
        drawn = notes_on_pools(program, bound, plan, near)
        plan.details["notes"] = [n for n in facts.plan.details["notes"] if not n.startswith("rng.near")] + drawn  # type: ignore[attr-defined]
        lanes = (team or node.team).size
        shards = shards_of(node, arguments)
        plan, bounds, parts = placed_on_nodes(node, loop.spec.options, program, plan, loop.records, near, shards, lanes)
        found = replace(facts, plan=plan, bounds=bounds)
    part, owned, near = node.comm.alltoall(parts if parts is not None else [None] * node.size)[0]
    loop.part, loop.pools = part, near
    loop.executable = executable_plan(loop.spec, part, owned)
    loop.attached = None
    loop.segments.clear()
    for position, (_, rows) in loop.aligned.items():
        if isinstance(rows, np.ndarray) and len(rows) == len(part.tasks):
            loop.memory[position] = rows
    loop.aligned.clear()
    return found
