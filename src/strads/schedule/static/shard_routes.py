"""The ring of the Static Engine: what each node runs, which shards it waits for, and to whom it forwards them.

A SchMP program's schedule becomes a plan on nodes (thesis §4.2.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.nodes.placement import EVERYWHERE, NodePlan, Units, place
from strads.schedule.plan import Plan
from strads.schedule.static.rounds import Job, Schedule, ShardKey
from strads.schedule.strategies.precedence import barriers

Holders = tuple[tuple[int, ...], ...]  # node that holds each shard, by parameter set


@dataclass(frozen=True)
class ShardRoutes:
    """What a node runs, waits for and forwards in one iteration.

    Attributes
    ----------
    part
        The node's part of the plan, in which the rows of a move are a shard's number in its parameter set.
    jobs
        The job of the schedule that each job of the part stands for; None for departures, synchronizations, arrivals.
    rounds
        Round of each of them, -1 for departures and arrivals.
    shards
        The shards that each of them needs.
    """

    part: NodePlan
    jobs: list[Job | None]
    rounds: NDArray[np.int64]
    shards: list[tuple[ShardKey, ...]]


def plan_routes(
    schedule: Schedule, node_of: tuple[int, ...], holders: Holders, nodes: int
) -> tuple[list[ShardRoutes], Holders]:
    """Plan the route of every shard through one iteration.

    A worker's jobs run in the order of rounds, and so do the jobs that use a shard; apart from that, only
    synchronizations impose an order. A shard goes to the node of its next user as soon as a job has ended, and stays
    where it was used last.

    Parameters
    ----------
    schedule
        The rounds. The last one ends with a synchronization in any case.
    node_of
        Node of each worker.
    holders
        Node that holds each shard at the start.
    nodes
        Number of nodes.

    Returns
    -------
    routes
        By node.
    holders
        Node that holds each shard at the end.
    """
    jobs: list[Job | None] = []
    rounds: list[int] = []
    for number, each in enumerate(schedule):
        jobs += [*each.jobs, *[None] * each.synchronize]
        rounds += [number] * (len(each.jobs) + each.synchronize)
    if not jobs or jobs[-1] is not None:
        jobs.append(None)
        rounds.append(len(schedule))
    places = np.array([EVERYWHERE if job is None else node_of[job.worker] for job in jobs], np.int32)
    units = _units(jobs, node_of, holders)
    parts = place(_plan(jobs, rounds), places, units, nodes, returning=False)
    ends = units.home.copy()
    ends[units.users[:, 0]] = places[units.users[:, 1]]  # of several assignments, NumPy keeps the last
    bounds = offsets_of([len(nodes_of_set) for nodes_of_set in holders])
    after = tuple(tuple(ends[low:high].tolist()) for low, high in pairwise(bounds))
    jobs.append(None)  # what position -1 stands for
    rounds.append(-1)
    shards = [() if job is None else tuple(job.shard_keys()) for job in jobs]
    routes = [
        ShardRoutes(part, [jobs[n] for n in part.jobs], np.array(rounds)[part.jobs], [shards[n] for n in part.jobs])
        for part in parts
    ]
    return routes, after


def _units(jobs: Sequence[Job | None], node_of: tuple[int, ...], holders: Holders) -> Units:
    """Return a unit for each shard, and one for each worker, which never moves: it only keeps its jobs in order."""
    sizes = [len(nodes_of_set) for nodes_of_set in holders] + [len(node_of)]
    first = offsets_of(sizes).tolist()
    users = [
        (unit, number)
        for number, job in enumerate(jobs)
        if job is not None
        for unit in (first[-2] + job.worker, *(first[of_set] + shard for of_set, shard in job.shard_keys()))
    ]
    shard = np.concatenate([np.arange(size) for size in sizes])
    home = np.array([node for nodes_of_set in (*holders, node_of) for node in nodes_of_set], np.int32)
    yes = np.ones(len(shard), bool)
    table = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return Units(table, shard, shard + 1, home, yes, yes, np.array(sorted(users), np.int64).reshape(-1, 2))


def _plan(jobs: Sequence[Job | None], rounds: Sequence[int]) -> Plan:
    """Return the jobs as a plan without tasks, in which only synchronizations impose an order."""
    ends = np.flatnonzero([job is None for job in jobs])
    precedence = barriers(np.diff(ends, prepend=-1) - 1)
    offsets, stage = np.zeros(len(jobs) + 1, np.int64), np.array(rounds, np.int32)
    return Plan("schedule", "the program's schedule", None, offsets, stage, *precedence, parallelism=1.0)
