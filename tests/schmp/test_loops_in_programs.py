"""Loops over shared tables inside the programs of engines: on a single process they run, on several nodes not."""

import numpy as np
import pytest
from launching import in_its_own_process
from programs import lasso

import strads
from strads import schmp


def count(k, x):
    x[k] += 1


class Counting(schmp.Program):
    """Updates a table of the worker's by loops."""

    def __init__(self, workers, loops):
        self.workers, self.loops = workers, loops

    def schedule(self, iteration):
        return schmp.static_rotation(self.workers)

    def update(self, job, data, *shards):
        for threads in self.loops:
            strads.async_for(100, count, data, threads=threads)
        assert data.map(np.negative).to_numpy().sum() == -data.to_numpy().sum()
        shards[0][0] += 1


def run_counting(threads, workers=2):
    tables = [strads.dvector.zeros(100, "i8") for _ in range(workers)]
    program, shards = Counting(workers, (None, 1, 2)), [[np.zeros(1) for _ in range(workers)]]
    with schmp.StaticEngine(program, tables, shards, threads=threads) as engine:
        engine.iterate()
        assert [shard.tolist() for shard in engine.shards()] == [[workers]] * workers
    return [table.to_numpy() for table in tables]


@pytest.mark.few(2)
@pytest.mark.parametrize("of_engine", [None, 1, 2])
@pytest.mark.parametrize("of_process", [1, 2])
@in_its_own_process(60)
def test_loops_in_an_update(of_process, of_engine):
    strads.init("threads", threads=of_process)
    for table in run_counting(of_engine):
        assert (table == 2 * 3).all()  # two rounds of three loops


class Interfering(type(lasso()[0])):
    """Runs a loop in each of its methods."""

    def update(self, parameters, data):
        self.loop()
        return super().update(parameters, data)

    def aggregate(self, parameters, result):
        self.loop()
        return super().aggregate(parameters, result)

    def commit(self, parameters, changes, data):
        self.loop()
        super().commit(parameters, changes, data)

    def loop(self):
        x = strads.dvector.zeros(10, "i8")
        strads.async_for(10, count, x, threads=1)
        assert (x.to_numpy() == 1).all()


@in_its_own_process(60)
def test_loops_in_a_dynamic_program():
    strads.init("threads", threads=1)
    found = []
    for kind in (type(lasso()[0]), Interfering):
        program, data, *_ = lasso(workers=2, kind=kind)
        with schmp.DynamicEngine(program, data, instances=1) as engine:
            engine.run(5)
            found.append(engine.program.coef)
    assert np.array_equal(*found)


class Nested(schmp.Program):
    """Does in an update what only the driver can do."""

    workers = 2

    def __init__(self, act):
        self.act = act

    def schedule(self, iteration):
        return schmp.round_robin(2, ["all"])

    def update(self, job, data, *shards):
        self.act()


def start_an_engine():
    schmp.StaticEngine(Nested(len), [None, None])


def start_a_loop():
    strads.async_for(10, count, strads.dvector.zeros(10))


@pytest.mark.few(1)
@pytest.mark.parametrize(("size", "act"), [(1, start_an_engine), (2, start_an_engine), (2, start_a_loop)])
@in_its_own_process(60)
def test_what_needs_all_nodes_is_refused_in_an_update(size, act):
    with strads.init("threads", nodes=size, threads=1):
        engine = schmp.StaticEngine(Nested(act), [None, None])
        with pytest.raises(strads.ArgumentError, match="cannot start another"):
            engine.iterate()
        x = strads.dvector.zeros(10)
        strads.async_for(10, count, x)  # the nodes are free again
        assert (x.to_numpy() == 1).all()
