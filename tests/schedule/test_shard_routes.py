"""Routes of shards, and the job pool that follows them, under any schedule and any timing; without threads."""

import random

from hypothesis import given
from hypothesis import strategies as st

from strads.engine.plans.job_pool import arrive, finish, jobs_done, make_job_pool, take
from strads.schedule.nodes.workers import place_workers
from strads.schedule.static.rounds import Job, Round, Schedule, check_schedule
from strads.schedule.static.shard_routes import plan_routes


@st.composite
def schedules(draw):
    """Any schedule that two parameter sets and a few workers allow."""
    workers, sizes = draw(st.integers(1, 5)), (draw(st.integers(1, 6)), draw(st.integers(1, 4)))
    k = draw(st.integers(0, 2))
    rounds = []
    for _ in range(draw(st.integers(0, 8))):
        most = min([workers, *sizes[:k]])
        chosen = draw(st.permutations(range(workers)))[: draw(st.integers(0, most))]
        columns = [draw(st.permutations(range(size)))[: len(chosen)] for size in sizes[:k]]
        jobs = tuple(Job(worker, tuple(column[i] for column in columns)) for i, worker in enumerate(chosen))
        rounds.append(Round(jobs, synchronize=draw(st.booleans())))
    return Schedule(tuple(rounds)), workers, sizes


class Simulation:
    """Nodes that take jobs, finish them and get shards in any order."""

    def __init__(self, schedule, workers, sizes, nodes, rng):
        self.node_of = place_workers(workers, nodes)
        holders = tuple(place_workers(size, nodes) for size in sizes)
        self.routes, self.after = plan_routes(schedule, self.node_of, holders, nodes)
        self.parts = [of_node.part for of_node in self.routes]
        self.pools = [make_job_pool(part.plan) for part in self.parts]
        self.here = {(s, n): node for s, of_set in enumerate(holders) for n, node in enumerate(of_set)}
        self.in_transit, self.running, self.meeting, self.order, self.rng = [], [], [], [], rng
        self.synchronizations = 0

    def step(self):
        """Do one thing that is possible; returns whether there was any."""
        events = [("arrive", each) for each in self.in_transit] + [("end", each) for each in self.running]
        events += [("take", node) for node in range(len(self.pools))]
        self.rng.shuffle(events)
        return any(getattr(self, name)(what) for name, what in events) or self.synchronize()

    def arrive(self, move):
        self.in_transit.remove(move)
        self.here[move.table, move.rows.start] = move.target
        arrivals = self.parts[move.target].arrivals
        arrive(self.pools[move.target], self.parts[move.target].plan.jobs - len(arrivals) + arrivals.index(move))
        return True

    def end(self, what):
        self.running.remove(what)
        finish(self.pools[what[0]], what[1])
        return True

    def take(self, node):
        index, part = take(self.pools[node]), self.parts[node]
        if index < 0:
            return False
        if index < len(part.departures):
            move = part.departures[index]
            assert self.here.pop((move.table, move.rows.start)) == node, "a node sends what it does not have"
            self.in_transit.append(move)
            finish(self.pools[node], index)
            return True
        job = self.routes[node].jobs[index]
        if job is None:
            assert not [n for n, _ in self.running if n == node], "a node synchronizes while it works"
            self.meeting.append((node, index))
            return True
        assert self.node_of[job.worker] == node
        assert all(self.here.get(key) == node for key in job.shard_keys()), "a job begins without its shard"
        busy = [self.routes[n].jobs[i] for n, i in self.running]
        assert job.worker not in [other.worker for other in busy]
        assert not set(job.shard_keys()) & {key for other in busy for key in other.shard_keys()}
        self.running.append((node, index))
        self.order.append((self.synchronizations, job))
        return True

    def synchronize(self):
        if len(self.meeting) < len(self.pools):
            return False
        for node, index in self.meeting:
            finish(self.pools[node], index)
        self.meeting = []
        self.synchronizations += 1
        return True


@given(schedules(), st.integers(1, 4), st.integers(0, 1 << 32))
def test_any_timing_runs_every_job_once_in_an_order_that_the_schedule_allows(made, nodes, seed):
    schedule, workers, sizes = made
    check_schedule(schedule, workers, sizes)
    simulation = Simulation(schedule, workers, sizes, nodes, random.Random(seed))
    while simulation.step():
        pass
    assert all(len(jobs_done(pool)) == len(pool.pending) for pool in simulation.pools)
    planned, segment = [], 0
    for number, each in enumerate(schedule):
        planned += [(segment, job) for job in each.jobs]
        segment += each.synchronize and number + 1 < len(schedule)
    assert sorted(simulation.order, key=repr) == sorted(planned, key=repr)  # each in its segment
    for resource in range(workers):
        assert _of(simulation.order, lambda job, w=resource: job.worker == w) == _of(
            planned, lambda job, w=resource: job.worker == w
        )
    for number, size in enumerate(sizes):
        for shard in range(size):
            uses = lambda job, key=(number, shard): key in job.shard_keys()  # noqa: E731
            assert _of(simulation.order, uses) == _of(planned, uses)
            assert simulation.here[number, shard] == simulation.after[number][shard]


def _of(order, belongs):
    return [job for _, job in order if belongs(job)]


def test_workers_are_spread_evenly():
    assert place_workers(7, 3) == (0, 0, 0, 1, 1, 2, 2)
    assert place_workers(2, 4) == (0, 2)
