"""The route of each shard from job to job: what each node runs, waits for and forwards (thesis §4.2.2)."""

from dataclasses import dataclass, field

from strads.schedule.static.rounds import Job, Schedule, ShardKey

Holders = tuple[tuple[int, ...], ...]  # node that holds each shard, by parameter set


@dataclass
class ShardRoutes:
    """The jobs of one node in an iteration, in order of rounds, and their dependencies.

    Attributes
    ----------
    jobs
        The node's jobs.
    rounds, segments
        For each job: its round, and the number of synchronizations before it.
    waits
        For each job: the number of earlier jobs of this node and arrivals that it waits for.
    successors
        For each job: the jobs of this node that wait for it.
    departures
        For each job: the shards to send when it has ended, and their destinations.
    first_departures
        Shards that another node needs before this node first uses them.
    arrivals
        For each shard, the source of every arrival and the job that waits for it, in order.
    segments_count
        Number of synchronizations in the iteration, including the one at its end.
    """

    jobs: list[Job] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    departures: list[list[tuple[ShardKey, int]]] = field(default_factory=list)
    first_departures: list[tuple[ShardKey, int]] = field(default_factory=list)
    arrivals: dict[ShardKey, list[tuple[int, int]]] = field(default_factory=dict)
    segments_count: int = 1

    def add(self, job: Job, number: int, segment: int) -> int:
        """Append a job; returns its number on this node."""
        self.jobs.append(job)
        self.rounds.append(number)
        self.segments.append(segment)
        self.waits.append(0)
        self.successors.append([])
        self.departures.append([])
        return len(self.jobs) - 1

    def after(self, earlier: int, later: int) -> None:
        """Make one job wait for another; repeated calls have no further effect."""
        if later not in self.successors[earlier]:
            self.successors[earlier].append(later)
            self.waits[later] += 1

    def receive(self, key: ShardKey, source: int, job: int) -> None:
        """Make a job wait for a shard from another node."""
        self.arrivals.setdefault(key, []).append((source, job))
        self.waits[job] += 1


def place_workers(workers: int, nodes: int) -> tuple[int, ...]:
    """Return the node of each worker: contiguous ranges whose sizes differ by at most one."""
    return tuple(worker * nodes // workers for worker in range(workers))


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
        The rounds.
    node_of
        Node of each worker.
    holders
        Node that holds each shard at the start.
    nodes
        Number of nodes.

    Returns
    -------
    routes
        Routes by node.
    holders
        Node that holds each shard at the end.
    """
    routes = [ShardRoutes() for _ in range(nodes)]
    latest_job: dict[int, int] = {}  # by worker
    latest_use: dict[ShardKey, tuple[int, int]] = {}  # (node, job) by shard
    places = [list(nodes_of_set) for nodes_of_set in holders]
    segment = 0
    for number, each in enumerate(schedule):
        for job in each.jobs:
            node = node_of[job.worker]
            own = routes[node]
            index = own.add(job, number, segment)
            if job.worker in latest_job:
                own.after(latest_job[job.worker], index)
            latest_job[job.worker] = index
            for key in job.shard_keys():
                _bring(routes, key, places[key[0]][key[1]], latest_use.get(key), node, index)
                latest_use[key] = node, index
                places[key[0]][key[1]] = node
        segment += each.synchronize and number + 1 < len(schedule)
    for of_node in routes:
        of_node.segments_count = segment + 1
    return routes, tuple(tuple(nodes_of_set) for nodes_of_set in places)


def _bring(
    routes: list[ShardRoutes], key: ShardKey, place: int, user: tuple[int, int] | None, node: int, job: int
) -> None:
    """Bring a shard to a node for a job, from its current node and after the job that used it last."""
    if place == node:
        if user is not None:
            routes[node].after(user[1], job)
        return
    routes[node].receive(key, place, job)
    if user is None:
        routes[place].first_departures.append((key, node))
    else:
        routes[place].departures[user[1]].append((key, node))
