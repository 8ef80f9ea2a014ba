"""The Dynamic Engine gives the bits of plain loops in the order that it promises, on any nodes, threads and timing."""

import random
import time

import numpy as np
import pytest
from programs import DenseLasso, LargestChange, lasso, serial
from sklearn.linear_model import Lasso

import strads
from strads import schmp
from strads.cluster.comm import Comm

SHAPES = [(4, 1, 1, True), (4, 1, 3, True), (4, 2, 3, False), (8, 4, 2, True), (2, 5, 4, True)]


def on_engine(workers, instances, depth, reorder, rounds=12, **options):
    """Return coefficients and residuals after some rounds."""
    program, data, *_ = lasso(workers)
    scheduling = {"instances": instances, "pipeline_depth": depth, "reorder": reorder}
    with schmp.DynamicEngine(program, data, **scheduling, **options) as engine:
        engine.run(rounds)
        return engine.program.coef, [residual for _, residual in engine.data()]


def by_loops(workers, instances, depth, reorder, rounds=12):
    program, data, *_ = lasso(workers)
    return serial(program, data, rounds, instances, depth, reorder)


def assert_same_bits(found, expected):
    np.testing.assert_array_equal(found[0], expected[0])
    for mine, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.nodes
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_bits_as_plain_loops(runtime, shape):
    assert_same_bits(on_engine(*shape), by_loops(*shape))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_same_bits_on_any_number_of_threads(threads):
    assert_same_bits(on_engine(1, 1, 3, True, threads=threads), by_loops(1, 1, 3, True))
    assert_same_bits(on_engine(4, 2, 2, True, threads=threads), by_loops(4, 2, 2, True))


@pytest.mark.parametrize(("size", "threads"), [(2, 2), (3, 1), (7, 1), (16, 1)])
def test_more_nodes_than_workers_or_instances(size, threads):
    with strads.init("threads", nodes=size, threads=threads):
        assert_same_bits(on_engine(8, 2, 3, True), by_loops(8, 2, 3, True))
        assert_same_bits(on_engine(1, 5, 2, True), by_loops(1, 5, 2, True))


@pytest.mark.parametrize("size", [2, 4])
def test_same_bits_when_messages_and_updates_are_late_at_random(size, monkeypatch):
    rng = random.Random(size)
    send, update = Comm.send, DenseLasso.update

    def late_send(self, *arguments):
        time.sleep(rng.choice([0, 0, 2e-3 * rng.random()]))
        send(self, *arguments)

    def late_update(self, *arguments):
        time.sleep(rng.choice([0, 0, 4e-3 * rng.random()]))
        return update(self, *arguments)

    monkeypatch.setattr(Comm, "send", late_send)
    monkeypatch.setattr(DenseLasso, "update", late_update)
    for shape in SHAPES:
        with strads.init("threads", nodes=size, threads=2, latency=1e-3):
            found = on_engine(*shape)
        assert_same_bits(found, by_loops(*shape))


@pytest.mark.nodes
@pytest.mark.parametrize("depth", [1, 3])
def test_converges_to_the_solution(runtime, depth):
    program, data, X, y, threshold = lasso()
    with schmp.DynamicEngine(program, data, instances=2, pipeline_depth=depth) as engine:
        for _ in range(5):
            engine.run(200)
            residual = np.concatenate(engine.each_worker(lambda program, data: data[1]))
            np.testing.assert_allclose(residual, y - X @ engine.program.coef, atol=1e-10)  # whole after every run
        coef = engine.program.coef
    expected = Lasso(threshold / len(y), fit_intercept=False, tol=1e-12).fit(X, y).coef_
    np.testing.assert_allclose(coef, expected, atol=1e-8)


@pytest.mark.nodes
def test_figures_of_a_run(runtime, nodes):
    program, data, *_ = lasso(workers=4, concurrency=6)
    with schmp.DynamicEngine(program, data, instances=1) as engine:
        engine.run(1)
        found = engine.run(10)
    assert found.rounds == 10
    assert 0 < found.updates <= 60
    assert [node.rank for node in found.nodes] == list(range(nodes))
    assert sum(node.tasks for node in found.nodes) == 4 * 3 * 10  # workers, subplans, rounds
    assert all(0 < node.compute_seconds < found.seconds for node in found.nodes)
    assert all(node.wait_seconds > 0 for node in found.nodes)
    messages = [node.messages_sent for node in found.nodes]
    # Orders: the first pull, one a subplan and the last; reports: one a subplan (a node may merge to two subtrees).
    assert messages == [0] if nodes == 1 else messages[0] == 32 * (nodes - 1) and set(messages[1:]) == {30}


class Vectors(schmp.DynamicProgram):
    """Parameters of two numbers, results in a tuple; every one is to become the sum of its column over the rows."""

    def __init__(self, workers, parameters):
        self.workers, self.parameters, self.grain = workers, parameters, 1
        self.values = np.zeros((parameters, 2))

    def schedule(self, instance, parameters):
        return LargestChange(parameters, 7, instance)

    def update(self, parameters, data):
        return data["rows"][:, parameters].sum(0), np.ones(len(parameters))

    def aggregate(self, parameters, result):
        sums, count = result
        assert (count == self.workers).all()
        changes = np.column_stack([sums, -sums]) - self.values[parameters]
        self.values[parameters] += changes
        return changes

    def commit(self, parameters, changes, data):
        data["seen"][parameters] += changes


@pytest.mark.nodes
def test_tuples_and_parameters_of_several_numbers(runtime):
    rows = np.arange(3 * 4 * 20.0).reshape(3, 4, 20)

    def make(worker):
        return {"rows": rows[worker], "seen": np.zeros((20, 2))}

    with schmp.DynamicEngine(Vectors(3, 20), make) as engine:
        engine.run(60)
        values, data = engine.program.values, engine.data()
    np.testing.assert_array_equal(values[:, 0], rows.sum((0, 1)))
    for part in data:
        np.testing.assert_array_equal(part["seen"], values)


@pytest.mark.nodes
@pytest.mark.parametrize("rounds", [1, 2])
def test_instances_take_turns_from_run_to_run(runtime, rounds):
    program, data, *_ = lasso(kind=LassoOnce)
    with schmp.DynamicEngine(program, data, instances=3) as engine:
        assert sum(engine.run(rounds).updates for _ in range(60)) == 50


class Once(schmp.DynamicSchedule):
    """Proposes each parameter once."""

    def __init__(self, parameters):
        self.left = list(parameters)

    def propose(self):
        chosen, self.left = self.left[:4], self.left[4:]
        return np.array(chosen, int), np.zeros(len(chosen))

    def feedback(self, parameters, changes):
        pass


class LassoOnce(DenseLasso):
    def schedule(self, instance, parameters):
        return Once(parameters)


@pytest.mark.nodes
def test_a_run_ends_when_nothing_is_left(runtime):
    program, data, *_ = lasso(kind=LassoOnce)
    with schmp.DynamicEngine(program, data, instances=2) as engine:
        found = engine.run(1_000_000)
        assert found.updates == 50
        assert found.rounds < 40
        assert engine.run(3).updates == 0
        assert engine.is_intact


class Compiled(DenseLasso):
    """Counts rounds instead of doing them."""

    asked = ()

    def compiled_rounds(self, schedule, data, team):
        self.asked = (type(schedule), len(data), team.size)
        self.done = []

        def rounds(count):
            self.done.append(count)
            return 2 * count if sum(self.done) < 5000 else 0

        return rounds


def test_compiled_rounds_on_a_single_process():
    program, data, *_ = lasso(workers=1, kind=Compiled)
    with schmp.DynamicEngine(program, data) as engine:
        found = engine.run(3000)
        assert engine.program.asked == (LargestChange, 2, 2)
        assert sum(engine.program.done) == 3000
        assert len(engine.program.done) < 20
        assert (found.rounds, found.updates) == (3000, 6000)
        assert engine.run(10_000).rounds < 3000


@pytest.mark.parametrize(("workers", "size", "instances"), [(2, 1, 1), (1, 1, 2), (1, 2, 1)])
def test_no_compiled_rounds_where_there_are_several_of_anything(workers, size, instances):
    program, data, *_ = lasso(workers=workers, kind=Compiled)
    with strads.init("threads", nodes=size), schmp.DynamicEngine(program, data, instances=instances) as engine:
        assert engine.run(3).rounds == 3
        assert engine.program.asked == ()
