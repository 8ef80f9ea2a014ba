"""Splitting a plan into the parts of the nodes: which rows move, when, and what waits for them (thesis §4.2).

Rows travel in *units*: a block of a rotating table, a single row, or a shard of a SchMP program. The jobs that use a
unit run in the order of their numbers; if two consecutive ones run on different nodes, the unit *moves* between them. A
move waits for the last use at its source and precedes the first use at its target: it needs no barrier.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.partition import distinct_pairs, joined_ranges, offsets_of
from strads.schedule.details import Details
from strads.schedule.plan import Plan
from strads.schedule.strategies.precedence import linked

EVERYWHERE, NOWHERE = -1, -2  # instead of a node: barriers in which all nodes take part; jobs that no node runs
_START, _END = -1, -1  # no job before, or none after: from or to the home node of the rows


class Units(NamedTuple):
    """Rows that travel together.

    Attributes
    ----------
    table, low, high : (units,)
        Unit u is the rows `low[u]:high[u]` of table `table[u]`.
    home : (units,)
        The node that holds them at the start.
    alone : (units,) bool
        Whether they travel as soon as they can; the others travel together with units of the same table.
    written : (units,) bool
        Whether any job writes them; copies of the others are sent to their readers.
    users : (uses, 2)
        Pairs of a unit and a job that uses it; ascending.
    """

    table: NDArray[np.int32]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    home: NDArray[np.int32]
    alone: NDArray[np.bool_]
    written: NDArray[np.bool_]
    users: NDArray[np.int64]


@dataclass(frozen=True)
class Move:
    """A transfer of rows from one node to another.

    Attributes
    ----------
    number
        Identifies the move at both ends; unique in the plan.
    table, rows
        The rows that move: a slice, or row numbers.
    source, target
        Source and target node.
    after, before
        Jobs (of the whole plan) that use the rows last at the source, and first at the target.
    """

    number: int
    table: int
    rows: slice | NDArray[np.int64]
    source: int
    target: int
    after: NDArray[np.int64]
    before: NDArray[np.int64]


@dataclass(frozen=True)
class NodePlan:
    """One node's part of a plan.

    Attributes
    ----------
    plan
        Jobs of this node: first the departures, then its share of the plan's jobs and barriers in their order, and
        last the arrivals. Departures, barriers and arrivals are empty jobs.
    positions
        Position of each task in the loop's indices, in the order of `plan`; None: that of `plan.order`.
    jobs
        Number of each job in the whole plan; −1 for departures and arrivals.
    departures, arrivals
        The moves that the first and the last jobs stand for.
    """

    plan: Plan
    positions: NDArray[np.integer] | None
    jobs: NDArray[np.int64]
    departures: tuple[Move, ...]
    arrivals: tuple[Move, ...]

    @property
    def tasks(self) -> NDArray[np.integer]:
        """Position of each task in the loop's indices; shape (tasks,)."""
        return self.plan.order if self.positions is None else self.positions

    @property
    def in_loop_order(self) -> bool:
        """Whether the tasks are known to be all of the loop, in its order."""
        return self.positions is None and self.plan.permutation is None


def moves_of(
    plan: Plan, node_of: NDArray[np.int32], units: Units, *, returning: bool = True
) -> tuple[list[Move], NDArray[np.int64]]:
    """Find the moves of a plan, and the pairs of jobs of one node that use the same unit consecutively.

    Parameters
    ----------
    plan
        The plan.
    node_of : (jobs,)
        Node of each job, EVERYWHERE or NOWHERE.
    units
        What the jobs use.
    returning
        Whether units move home after their last use, or stay there.

    Returns
    -------
    moves
        In an order that all nodes agree on.
    edges : (n, 2)
        Pairs of jobs of the same node; the second waits for the first.
    """
    unit, job = units.users[:, 0], units.users[:, 1]
    node = node_of[job]
    written = units.written[unit]
    follows = (unit[1:] == unit[:-1]) & written[1:]
    same_node = node[1:] == node[:-1]
    staying = follows & same_node
    edges = np.stack([job[:-1][staying], job[1:][staying]], axis=1)
    leaving = np.flatnonzero(follows & ~same_node)
    first = np.flatnonzero(np.concatenate([[True], unit[1:] != unit[:-1]]) & written)
    last = np.flatnonzero(np.concatenate([unit[1:] != unit[:-1], [True]]) & written & returning)
    copied = np.flatnonzero(~written)
    hops = np.concatenate(
        [
            _hops(unit[leaving], node[leaving], node[leaving + 1], job[leaving], job[leaving + 1]),
            _hops(unit[first], units.home[unit[first]], node[first], _START, job[first]),
            _hops(unit[last], node[last], units.home[unit[last]], job[last], _END),
            _hops(unit[copied], units.home[unit[copied]], node[copied], _START, job[copied]),
        ]
    )
    hops = hops[hops[:, 1] != hops[:, 2]]
    return _bundled(plan, units, hops), edges


def _hops(
    unit: NDArray[np.int64],
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    after: NDArray[np.int64] | int,
    before: NDArray[np.int64] | int,
) -> NDArray[np.int64]:
    """Return rows (unit, source node, target node, job after which it leaves, job before which it arrives)."""
    return np.stack(np.broadcast_arrays(unit, source, target, after, before), axis=1).astype(np.int64)


def _bundled(plan: Plan, units: Units, hops: NDArray[np.int64]) -> list[Move]:
    """Bundle the hops of units that may travel together."""
    unit, source, target, after, before = hops.T
    bundle = np.where(before == _END, plan.jobs, before)
    if _stages_part_uses(plan, after, before):
        stages = np.append(plan.stage, plan.stage.max(initial=0) + 1)
        bundle = stages[bundle].astype(np.int64)
    alone = np.where(units.alone[unit], np.arange(len(hops)), -1)
    key = np.stack([alone, units.table[unit], source, target, bundle], axis=1)
    group = _group_of(key)
    moves = []
    for number, members in enumerate(_members(group)):
        one = hops[members]
        rows: slice | NDArray[np.int64]
        if len(members) == 1:
            rows = slice(int(units.low[one[0, 0]]), int(units.high[one[0, 0]]))
        else:
            rows = _rows_of(units, np.unique(one[:, 0]))
        moves.append(
            Move(
                number,
                int(units.table[one[0, 0]]),
                rows,
                int(one[0, 1]),
                int(one[0, 2]),
                _distinct_jobs(one[:, 3]),
                _distinct_jobs(one[:, 4]),
            )
        )
    return moves


def _rows_of(units: Units, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of several units of one table, ascending."""
    low = units.low[chosen]
    sizes = units.high[chosen] - low
    if sizes.max() > 1:
        low = joined_ranges(low, sizes)
    return np.sort(low)


def _distinct_jobs(jobs: NDArray[np.int64]) -> NDArray[np.int64]:
    found = jobs[jobs >= 0]
    return found if len(found) < 2 else np.unique(found)


def _group_of(key: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number equal rows of an array alike, in the order of the rows; `np.unique` takes a hundred times as long."""
    order = np.lexsort(key.T[::-1])
    new = np.any(np.diff(key[order], axis=0) != 0, axis=1)
    group = np.zeros(len(key), np.intp)
    group[order[1:]] = np.cumsum(new)
    return group


def _members(group: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(group) else []


def _stages_part_uses(plan: Plan, after: NDArray[np.int64], before: NDArray[np.int64]) -> bool:
    """Whether every hop leads to a later stage: then all hops into a stage can wait for one another."""
    between = (after >= 0) & (before >= 0)
    return bool(np.all(plan.stage[after[between]] < plan.stage[before[between]]))


def place(
    plan: Plan, node_of: NDArray[np.int32], units: Units, nodes: int, lanes: int = 1, *, returning: bool = True
) -> list[NodePlan]:
    """Split a plan into the parts of the nodes.

    Parameters
    ----------
    plan
        The plan of the loop; it may have barriers.
    node_of : (jobs,)
        Node of each job, EVERYWHERE or NOWHERE.
    units
        Units of rows that its jobs use.
    nodes, lanes
        Number of nodes, and of replicas of relaxed tables on each node.
    returning
        Whether units move home after their last use.
    """
    moves, edges = moves_of(plan, node_of, units, returning=returning)
    barriers = _barrier_edges(plan, node_of)
    return [_node_plan(plan, node_of, node, lanes, moves, np.concatenate([edges, barriers])) for node in range(nodes)]


def _barrier_edges(plan: Plan, node_of: NDArray[np.int32]) -> NDArray[np.int64]:
    before = np.repeat(np.arange(plan.jobs), np.diff(plan.successor_offsets))
    after = plan.successors.astype(np.int64)
    part = (node_of[before] == EVERYWHERE) | (node_of[after] == EVERYWHERE)
    every = np.flatnonzero(node_of == EVERYWHERE)  # in sequence even if a node has no job between two of them
    pairs = (np.stack([before[part], after[part]], axis=1), np.stack([every[:-1], every[1:]], axis=1))
    return np.concatenate(pairs).astype(np.int64)


def _node_plan(
    plan: Plan, node_of: NDArray[np.int32], node: int, lanes: int, moves: list[Move], edges: NDArray[np.int64]
) -> NodePlan:
    departures = tuple(move for move in moves if move.source == node)
    arrivals = tuple(move for move in moves if move.target == node)
    jobs = np.flatnonzero((node_of == node) | (node_of == EVERYWHERE))
    local = np.full(plan.jobs, -1, np.int64)
    local[jobs] = len(departures) + np.arange(len(jobs))
    first_arrival = len(departures) + len(jobs)
    mine = local[edges]
    pairs = [mine[np.all(mine >= 0, axis=1)]]
    for number, move in enumerate(departures):
        pairs.append(_star(local[move.after], number, inward=True))
    for number, move in enumerate(arrivals):
        pairs.append(_star(local[move.before], first_arrival + number, inward=False))
    pieces = [plan.order[plan.offsets[job] : plan.offsets[job + 1]] for job in jobs]
    tasks = np.concatenate([*pieces, plan.order[:0]])
    sizes = np.concatenate([np.zeros(len(departures)), np.diff(plan.offsets)[jobs], np.zeros(len(arrivals))])
    numbers = np.concatenate([np.full(len(departures), -1), jobs, np.full(len(arrivals), -1)])
    lane = None if plan.lane is None else np.where(numbers >= 0, plan.lane[numbers] - node * lanes, -1)
    before, after = np.concatenate(pairs).T
    before, after = distinct_pairs(before, after, len(numbers)).T
    precedence = linked(before, after, len(numbers))
    precedence.predecessors[first_arrival:] = 1  # the arrival itself
    part = replace(
        plan,
        permutation=None,
        starts=None,
        offsets=offsets_of(sizes),
        stage=np.where(numbers >= 0, plan.stage[numbers], 0).astype(np.int32) if plan.jobs else plan.stage,
        **precedence._asdict(),
        locks=None if len(tasks) == 0 else plan.locks,
        details=Details(),
        lane=None if lane is None else np.maximum(lane, -1).astype(np.int32),
    )
    return NodePlan(part, tasks, numbers, departures, arrivals)


def _star(others: NDArray[np.int64], center: int, *, inward: bool) -> NDArray[np.int64]:
    centers = np.full(len(others), center, np.int64)
    return np.stack([others, centers] if inward else [centers, others], axis=1)
