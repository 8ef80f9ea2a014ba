"""Two shards of one set in a job, and the schedule in which every two meet."""

import itertools

import numpy as np
import pytest
from programs import Mixing

import strads
from strads import schmp
from strads.schedule.nodes.workers import place_workers
from strads.schedule.static.shard_routes import plan_routes

ROUNDS = 3


class Meeting(Mixing):
    """Every job mixes the two shards that meet."""

    def __init__(self, shards):
        super().__init__(shards // 2)
        self.shards = shards

    def schedule(self, iteration):
        return schmp.tournament(self.shards, synchronizations=2)

    @staticmethod
    def start(shards):
        """Shards and data at the beginning."""
        return [np.array([0, shard]) for shard in range(shards)], [np.array([part]) for part in range(shards // 2)]

    @classmethod
    def play(cls, shards):
        """Return shards, data and state after some iterations."""
        table, data = cls.start(shards)
        with schmp.StaticEngine(cls(shards), data, [table]) as engine:
            for _ in range(ROUNDS):
                engine.iterate()
            return [s.tolist() for s in engine.shards()], [d.tolist() for d in engine.data()], engine.program.state


def serial(shards):
    """The same by plain loops."""
    program = Meeting(shards)
    table, data = Meeting.start(shards)
    sums = [0] * program.workers
    for iteration in range(ROUNDS):
        for each in program.schedule(iteration):
            for job in each.jobs:
                sums[job.worker] += program.update(job, data[job.worker], *(table[shard] for shard in job.shards))
            if each.synchronize:
                program.aggregate(sums)
                sums = [0] * program.workers
    return [s.tolist() for s in table], [d.tolist() for d in data], program.state


@pytest.mark.nodes
def test_same_result_as_plain_loops(runtime):
    assert Meeting.play(8) == serial(8)


@pytest.mark.parametrize("count", [2, 4])
def test_same_result_on_logical_nodes(count):
    with strads.init("threads", nodes=count, threads=1):
        assert Meeting.play(8) == serial(8)


@pytest.mark.parametrize("shards", [2, 4, 16])
def test_every_two_shards_meet_once(shards):
    met = [job.shards for each in schmp.tournament(shards) for job in each.jobs]
    assert sorted(met) == list(itertools.combinations(range(shards), 2))
    for each in schmp.tournament(shards):
        assert sorted(job.worker for job in each.jobs) == list(range(shards // 2))
        assert sorted(itertools.chain.from_iterable(job.shards for job in each.jobs)) == list(range(shards))


@pytest.mark.parametrize(("shards", "synchronizations"), [(4, 1), (4, 3), (16, 4)])
def test_synchronizations_are_evenly_spaced(shards, synchronizations):
    ends = [each.synchronize for each in schmp.tournament(shards, synchronizations=synchronizations)]
    assert sum(ends) == synchronizations
    assert ends[-1]


def test_few_shards_change_nodes():
    """On 2 nodes half of them change places, twice in a tournament."""
    schedule, homes = schmp.tournament(16), (place_workers(16, 2),)
    routes, _ = plan_routes(schedule, place_workers(8, 2), homes, 2)
    assert sum(len(of_node.part.arrivals) for of_node in routes) == 2 * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schmp.paired(6, 1), "power of two"),
        (lambda: schmp.paired(1, 1), "power of two"),
        (lambda: schmp.paired(4, 4), "from 1 to 3"),
        (lambda: schmp.tournament(4, synchronizations=4), "only 3 rounds"),
    ],
)
def test_impossible_pairs_are_refused(make, message):
    with pytest.raises(strads.ArgumentError, match=message):
        make()
