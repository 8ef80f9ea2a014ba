"""The wait of a node for rows or shards: when it gives up, and whom it names."""

from types import SimpleNamespace

import pytest

from strads.cluster.threads import ThreadsCluster
from strads.engine.plans import arrivals as module
from strads.engine.plans.arrivals import Arrivals
from strads.engine.plans.job_pool import arrive, finish, make_job_pool, take
from strads.errors import NodeFailure
from strads.schedule.static.rounds import Job, Round, Schedule
from strads.schedule.static.shard_routes import plan_routes


@pytest.fixture
def comm():
    cluster = ThreadsCluster(3, 1, timeout=10)
    yield cluster._nodes[0].comm
    cluster.close()


class Clock:
    """Time that passes only when told."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def pass_by(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def waiting_for(*rounds, holders):
    """The part of node 0, whose worker 0 needs shards that lie on other nodes."""
    schedule = Schedule(tuple(Round((Job(0, shards),), synchronize=False) for shards in rounds))
    routes, _ = plan_routes(schedule, (0, 1, 2), (holders,), 3)
    return routes[0].part


def test_names_what_is_needed_first(comm, clock):
    part = waiting_for((1,), (0,), holders=(1, 2))
    arrivals = Arrivals(part, comm, 1, lambda move: f"shard {move.rows.start}")
    pool = make_job_pool(part.plan)
    clock.pass_by(11)
    with pytest.raises(NodeFailure, match=r"for shard 1 from node 2") as caught:
        arrivals.wait(pool)
    assert caught.value.rank == 2
    position = [move.rows.start for move in part.arrivals].index(1)
    arrivals.note(position)
    arrive(pool, part.plan.jobs - 2 + position)
    arrivals.wait(pool)  # something has happened
    clock.pass_by(11)
    with pytest.raises(NodeFailure, match=r"for shard 0 from node 1"):
        arrivals.wait(pool)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_node_that_computes_for_long_does_not_give_up(comm, clock, threads):
    part = waiting_for((), (0,), holders=(1,))
    arrivals = Arrivals(part, comm, threads, str)
    pool = make_job_pool(part.plan)
    job = take(pool)
    for _ in range(3):
        clock.pass_by(11)
        if threads > 1:  # another thread waits meanwhile
            arrivals.wait(pool)
    finish(pool, job)
    arrivals.wait(pool)  # others may have waited for what has just been computed
    clock.pass_by(11)
    with pytest.raises(NodeFailure):
        arrivals.wait(pool)
