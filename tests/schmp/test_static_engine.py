"""The Static Engine gives what plain loops over the schedule give, on any number of nodes and threads."""

import numpy as np
import pytest
from programs import Mixing, replay

import strads
from strads import schmp

SHAPES = [(1, 1, 1), (4, 1, 1), (4, 1, 4), (7, 1, 3), (3, 2, 1), (3, 2, 3), (2, 3, 2)]


@pytest.mark.nodes
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_result_as_plain_loops(runtime, shape):
    assert Mixing.run(*shape) == replay(*shape)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_same_result_on_any_number_of_threads(threads):
    assert Mixing.run(8, 1, 2, threads=threads) == replay(8, 1, 2)


def test_many_logical_nodes():
    with strads.init("threads", nodes=16, threads=2):
        assert Mixing.run(16, 1, 4, iterations=2) == replay(16, 1, 4, iterations=2)


class Means(schmp.Program):
    """k-means: every worker sums its own points, all nodes get the same centres."""

    def __init__(self, centres, workers):
        self.workers, self.centres = workers, centres

    def schedule(self, iteration):
        return schmp.round_robin(self.workers, ["all"])

    def update(self, job, data, *shards):
        assert job.parameters == "all"
        nearest = np.square(data[:, None] - self.centres).sum(2).argmin(1)
        sums = np.zeros((len(self.centres), 1 + data.shape[1]))
        np.add.at(sums, nearest, np.column_stack([np.ones(len(data)), data]))
        return sums

    def aggregate(self, results):
        total = sum(results)
        self.centres = total[:, 1:] / np.maximum(total[:, :1], 1)


@pytest.mark.nodes
def test_round_robin_aggregates_on_all_nodes(runtime, nodes):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(centre, 0.1, (50, 2)) for centre in (0, 3, 6)])
    parts = [points[worker::4] for worker in range(4)]
    with schmp.StaticEngine(Means(points[[0, 50, 100]], 4), parts) as engine:
        for _ in range(5):
            engine.iterate()
        centres = engine.each_node(lambda program: program.centres)
    np.testing.assert_allclose(centres[0], [[0, 0], [3, 3], [6, 6]], atol=0.1)
    assert all(np.array_equal(centres[0], other) for other in centres[1:])
    assert len(centres) == nodes


class RandomUpdates(schmp.Program):
    """Counts how often each parameter is updated."""

    def __init__(self, parameters):
        self.workers, self.updates = 3, np.zeros(parameters, np.int64)

    def schedule(self, iteration):
        return schmp.random(3, len(self.updates), 5, rounds=4, seed=(7, iteration))

    def update(self, job, data, *shards):
        return [job.parameters]

    def aggregate(self, results):
        for result in results:
            for chosen in result:
                self.updates[chosen] += 1


@pytest.mark.nodes
def test_random_schedule(runtime):
    with schmp.StaticEngine(RandomUpdates(30)) as engine:
        first, second = engine.iterate(), engine.iterate()
        updates = engine.program.updates
    assert updates.sum() == 2 * 4 * 3 * 5
    assert updates.max() <= 8
    assert (first.number, second.number) == (0, 1)


@pytest.mark.nodes
def test_statistics_count_jobs_and_bytes(runtime, nodes):
    shards = [[np.zeros(1000) for _ in range(6)]]
    with schmp.StaticEngine(Idle(6), shards=shards) as engine:
        engine.iterate()
        found = engine.iterate()
    assert [node.rank for node in found.nodes] == list(range(nodes))
    assert sum(node.tasks for node in found.nodes) == 36
    sent = sum(node.bytes_sent for node in found.nodes)
    assert sent == 0 if nodes == 1 else 6 * 8000 * nodes <= sent < 7 * 8000 * nodes
    assert found.seconds > 0
    assert all(node.compute_seconds >= 0 for node in found.nodes)


class Idle(schmp.Program):
    """Rotates and does nothing."""

    def __init__(self, workers):
        self.workers = workers

    def schedule(self, iteration):
        return schmp.static_rotation(self.workers)

    def update(self, job, data, *shards):
        return None


@pytest.mark.nodes
def test_data_made_on_the_nodes_and_functions_of_workers_and_shards(runtime):
    with schmp.StaticEngine(Idle(5), lambda worker: np.full(2, worker), [list(range(5)), list("abcde")]) as engine:
        assert [part.tolist() for part in engine.data()] == [[w, w] for w in range(5)]
        assert engine.each_worker(lambda program, data, factor: factor * int(data[0]), 10) == [0, 10, 20, 30, 40]
        assert engine.each_shard(lambda program, shard: shard * 2, parameter_set=1) == ["aa", "bb", "cc", "dd", "ee"]
        with pytest.raises(strads.ArgumentError, match="parameter_set=2"):
            engine.shards(2)


class Failing(Idle):
    """Fails in a job of the second iteration."""

    def __init__(self, workers):
        super().__init__(workers)
        self.iteration = 0

    def schedule(self, iteration):
        self.iteration = iteration
        return super().schedule(iteration)

    def update(self, job, data, *shards):
        if self.iteration == 1 and job.worker == 2:
            raise ValueError("no update here")


@pytest.mark.nodes
def test_an_error_in_an_update_ends_all_nodes_and_the_engine(runtime):
    with schmp.StaticEngine(Failing(4), shards=[[np.zeros(2) for _ in range(4)]]) as engine:
        engine.iterate()
        with pytest.raises(ValueError, match="no update here"):
            engine.iterate()
        with pytest.raises(strads.StradsError, match=r"iteration 1 failed \(ValueError\)"):
            engine.iterate()
        with pytest.raises(strads.StradsError, match="model is incomplete"):
            engine.shards()
    assert Mixing.run() == replay(4, 1, 1)  # the nodes are still there


def test_the_given_program_is_left_alone():
    program = Mixing(2)
    with schmp.StaticEngine(program, [np.array([1]), np.array([2])], [[np.zeros(2, int), np.zeros(2, int)]]) as engine:
        engine.iterate()
        assert engine.program.state != 1
    assert program.state == 1
    with pytest.raises(strads.StradsError, match="closed"):
        engine.iterate()


class Wrong(Idle):
    """Schedules whatever it is told to."""

    def __init__(self, rounds):
        super().__init__(2)
        self.rounds = rounds

    def schedule(self, iteration):
        return self.rounds


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([schmp.Job(0, (1,)), schmp.Job(1, (1,))], "workers 0 and 1 would both use shard 1"),
        ([schmp.Job(2, (0,))], r"there is no worker 2, only 0 … 1"),
        ([schmp.Job(0, (0,)), schmp.Job(0, (1,))], "worker 0 has two jobs"),
        ([schmp.Job(0, (5,))], r"shard 5 of parameter set 0, which has the shards 0 … 1"),
        ([schmp.Job(0, (0, 0))], "a shard of parameter set 1, but the engine was given 1"),
        ([schmp.Job(0, (0,), sets=(-1,))], "a shard of parameter set -1, but the engine was given 1"),
        ([schmp.Job(0, (0,), sets=(-2,))], "a shard of parameter set -2, but the engine was given 1"),
        ([schmp.Job(0, (1, 1), sets=(0, 0))], "workers 0 and 0 would both use shard 1"),
        ([schmp.Job(0, (0, 1), sets=(0,))], "asks for 2 shards of 1 sets"),
    ],
)
def test_impossible_schedules_are_refused(jobs, message):
    with (
        schmp.StaticEngine(Wrong([schmp.Round(tuple(jobs))]), shards=[[0, 0]]) as engine,
        pytest.raises(strads.PlanError, match=message),
    ):
        engine.iterate()


class Undecided(Idle):
    """Its schedule is another one on each node."""

    def schedule(self, iteration):
        workers = np.random.default_rng().integers(2, size=64).tolist()
        return [schmp.Round((schmp.Job(worker, (worker,)),)) for worker in workers]


def test_nodes_with_different_schedules_are_told_apart():
    with (
        strads.init("threads", nodes=2, threads=1),
        schmp.StaticEngine(Undecided(2), shards=[[0, 1]]) as engine,
        pytest.raises(strads.PlanError, match="gave the nodes different rounds"),
    ):
        engine.iterate()


def test_no_schedule_at_all_is_refused():
    with schmp.StaticEngine(Wrong(None)) as engine, pytest.raises(strads.PlanError, match="returned a NoneType"):
        engine.iterate()


def test_something_else_than_rounds_is_refused():
    with schmp.StaticEngine(Wrong(["x"])) as engine, pytest.raises(strads.PlanError, match="gave a str"):
        engine.iterate()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: schmp.StaticEngine(Idle(3), data=[1, 2]), "data for 2 workers were given, but the program has 3"),
        (lambda: schmp.StaticEngine(Idle(0)), "workers=0"),
        (lambda: schmp.StaticEngine("program"), "is a str"),
        (lambda: schmp.StaticEngine(Idle(2), threads=0), "threads=0"),
        (lambda: schmp.static_rotation(0), "workers=0"),
        (lambda: schmp.static_rotation(2, 0), "k=0"),
        (lambda: schmp.static_rotation(2, synchronizations=3), "a turn has only 2 rounds"),
        (lambda: schmp.random(4, 10, 3), "exceed the 10 that exist"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(strads.ArgumentError, match=message):
        make()
