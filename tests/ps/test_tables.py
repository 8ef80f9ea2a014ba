"""Tables of the parameter server on nodes: what workers read and add, under every model."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import strads
from strads import ps
from strads.errors import ArgumentError, NodeFailure

MODELS = [ps.BSP(), ps.SSP(2), ps.ESSP(2), ps.ASP(), ps.VAP(40.0)]


def count(worker, table, clocks):
    """Add 1 to random rows; returns what the worker has added."""
    generator = np.random.default_rng(worker.number)
    added = np.zeros(table.shape)
    for _ in range(clocks):
        rows = generator.integers(len(table), size=20)
        table.get(rows)
        table.inc(rows, 1)
        np.add.at(added, rows, 1)
        worker.clock()
    return added


@pytest.mark.nodes
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_no_update_is_lost(runtime, model, is_sparse):
    if is_sparse and isinstance(model, ps.VAP):
        pytest.skip("VAP is for dense tables")
    table = ps.Table(50, 3, "f8", consistency=model, sparse=is_sparse)
    ended = ps.run(count, table, 15, workers=4)
    np.testing.assert_allclose(table.to_numpy(), sum(ended.values), rtol=1e-12)
    assert table.staleness.counts.sum() > 0
    assert len(ended.computing) == len(ended.communicating) == 4
    if isinstance(model, ps.BSP):
        assert table.staleness.differentials.tolist() == [-1]


def average(worker, table, clocks):
    """Move all rows towards what the worker's generator says, by rounded arithmetic in float32."""
    generator = np.random.default_rng(worker.number)
    rows = np.arange(len(table))
    for _ in range(clocks):
        values = table.get(rows)
        chosen = generator.choice(rows, 10)
        table.inc(chosen, np.float32(0.1) * (generator.random((10, table.shape[1])) - values[chosen]))
        worker.clock()
    return table.get(rows)


@pytest.mark.nodes
def test_under_bsp_the_bits_do_not_depend_on_nodes(runtime):
    found = _averages()
    with strads.init("threads", nodes=1, threads=1):
        alone = _averages()
    for value, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(value, other)


def _averages():
    table = ps.Table(30, 4, consistency=ps.BSP())
    ended = ps.run(average, table, 10, workers=4)
    return [table.to_numpy(), *ended.values]


@pytest.mark.nodes
def test_rows_are_read_and_written_between_runs(runtime):
    values = np.arange(21, dtype=np.float32).reshape(7, 3)
    table = ps.Table.from_numpy(values, consistency=ps.SSP(1))
    np.testing.assert_array_equal(table.to_numpy(), values)
    np.testing.assert_array_equal(table.read([6, 0, 6]), values[[6, 0, 6]])
    table.write([2, 5, 2], [[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    np.testing.assert_array_equal(table.read([2, 5]), [[3, 3, 3], [2, 2, 2]])
    thin = ps.Table.from_numpy(sparse.random_array((7, 9), density=0.3, rng=0, format="csr"), sparse=True)
    assert thin.dtype == np.float64
    np.testing.assert_array_equal(thin.read([3, 1]).toarray(), thin.to_numpy()[[3, 1]])


@pytest.mark.nodes
def test_workers_have_data_of_their_own(runtime):
    table = ps.Table(1, 1, "i8")

    def total(worker, table):
        table.inc(0, worker.data)
        worker.clock()
        return int(table.get(0)[0])

    assert ps.run(total, table, workers=3, data=[1, 20, 300]).values == [321] * 3
    assert ps.run(total, table, workers=2, data=lambda number: 10 ** (3 + number)).values == [11321] * 2


@pytest.mark.nodes
def test_a_small_cache_changes_no_value(runtime):
    for model in MODELS:
        table = ps.Table(40, 2, "f8", consistency=model, cache_bytes=200)
        ended = ps.run(count, table, 8, workers=3)
        np.testing.assert_allclose(table.to_numpy(), sum(ended.values), rtol=1e-12)


@pytest.mark.nodes
def test_a_worker_that_raises_ends_the_run_and_says_where(runtime):
    def fail(worker, table):
        if worker.number == 1:
            raise ZeroDivisionError("of worker 1")
        for _ in range(100):
            table.get([0])
            worker.clock()

    table = ps.Table(4, 1)
    with pytest.raises(ZeroDivisionError, match="of worker 1"):
        ps.run(fail, table, workers=3)
    assert ps.run(count, table, 2, workers=2).values[0].sum() == 40  # the nodes are still there


@pytest.mark.nodes
def test_a_failure_reaches_workers_that_never_wait(runtime):
    def fail(worker, table, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            table.get([0])
            table.inc([0], 1)
            worker.clock()
            if worker.number == 1:
                raise ZeroDivisionError("of worker 1")

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="of worker 1"):
        ps.run(fail, ps.Table(4, 1, consistency=ps.ASP()), 30, workers=3)
    assert time.monotonic() - start < 20


def test_a_worker_that_never_comes_is_waited_for_no_longer_than_the_limit():
    def sleep(worker, table):
        if worker.number == 1:
            time.sleep(1.5)
        worker.clock()
        table.get([0])

    with strads.init("threads", nodes=2, threads=1, timeout=0.5), pytest.raises(NodeFailure, match=r"0\.5 s"):
        ps.run(sleep, ps.Table(4, 1))


def test_reads_see_own_writes_if_that_is_wanted():
    def add(worker, plain, own):
        for table in (plain, own):
            table.inc([0, 1], [[1.0], [2.0]])
            table.inc([1], [[0.5]])
        return plain.get([1, 0, 2]).ravel().tolist(), own.get([1, 0, 2]).ravel().tolist()

    ended = ps.run(add, ps.Table(3, 1), ps.Table(3, 1, read_my_writes=True), workers=1)
    assert ended.values == [([0, 0, 0], [2.5, 1, 0])]


def test_results_may_be_written_to_a_given_array():
    def read(worker, table):
        out = np.empty((2, 2), np.float32)
        assert table.get([1, 0], out) is out
        with pytest.raises(ArgumentError, match="contiguous"):
            table.get([1, 0], out.T)
        with pytest.raises(ArgumentError, match="float64"):
            table.get([1, 0], out.astype(float))
        out.flags.writeable = False
        with pytest.raises(ArgumentError, match="writable"):
            table.get([1, 0], out)
        return out

    values = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert ps.run(read, ps.Table.from_numpy(values), workers=1).values[0].tolist() == [[2, 3], [0, 1]]


def test_a_profile_says_what_was_read():
    table = ps.Table(3, 1, consistency=ps.BSP())
    ps.run(count, table, 2, workers=2)
    assert table.staleness.mean == -1
    assert table.staleness.counts.tolist() == [2 * 2 * 20 * 2]  # workers, clocks, rows; of each worker's updates
    assert "100.0%" in str(table.staleness)
    assert table.staleness.newest.differentials.tolist() == [-1]
    assert table.staleness.newest.counts.tolist() == [2 * 2 * 20]


def test_the_newest_update_of_a_row_is_the_one_of_the_worker_ahead():
    """Worker 1 reads at clock 0 what worker 0 has sent at its clocks 0 and 1."""

    def read(worker, table, is_ahead, is_read):
        if worker.number == 0:
            for _ in range(2):
                table.inc(0, 1)
                worker.clock()
            is_ahead.set()
            is_read.wait(20)  # one that has ended does not count
        else:
            is_ahead.wait(20)
            table.get([0])
            is_read.set()

    table = ps.Table(1, 1, consistency=ps.SSP(3))
    ps.run(read, table, threading.Event(), threading.Event(), workers=2)
    assert table.staleness.differentials.tolist() == [-1, 1]  # of its own, none; of worker 0, up to its clock 1
    assert table.staleness.newest.differentials.tolist() == [1]


LONG_RUN = """
import os, signal, threading
import strads
from strads import ps

def work(worker, table, is_first):
    while True:
        if table.get([0])[0, 0] > 100 and is_first.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        table.inc([0], 1)
        worker.clock()

if __name__ == "__main__":
    with strads.init("threads", nodes=2, threads=2):
        table = ps.Table(3, 1, consistency=ps.ASP())
        try:
            ps.run(work, table, threading.Lock())
        except KeyboardInterrupt:
            print("interrupted", table.to_numpy()[0, 0] > 0)
"""


def test_an_interrupt_ends_a_run_and_leaves_the_table():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LONG_RUN], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    assert done.stdout.split() == ["interrupted", "True"]


def test_a_sparse_cache_keeps_within_its_bytes_what_fits():
    def read(worker, table):
        sizes = []
        for row in range(len(table)):
            table.get(row)
            client = table._endpoint._client
            sizes.append((client._cache.size, client._store.nbytes))
        return sizes

    table = ps.Table.from_numpy(np.ones((200, 10)), sparse=True, cache_bytes=5000, consistency=ps.SSP(1))
    rows, sizes = np.transpose(ps.run(read, table, workers=1).values[0])
    assert sizes.max() <= 5000
    assert rows[100:].min() > 10  # of about 20 that fit


def test_sparse_updates_without_entries_change_nothing():
    def add(worker, table):
        table.inc([2, 0], sparse.csr_array((2, 4)))
        return table.get([0, 1]).nnz

    assert ps.run(add, ps.Table(3, 4, sparse=True, read_my_writes=True), workers=1).values == [0]


def test_own_writes_are_kept_no_longer_than_they_are_needed():
    def add(worker, table):
        for clock in range(50):
            assert table.get([0, 1]).ravel().tolist() == [clock, clock]
            table.inc([0, 1], 1)
            worker.clock()
        return len(table._endpoint._client._workers[0].own._sent)

    for model in MODELS:
        table = ps.Table(2, 1, consistency=model, read_my_writes=True)
        assert ps.run(add, table, workers=1).values[0] <= 4


def test_staleness_may_be_a_number_of_numpy():
    assert ps.SSP(np.int64(3)) == ps.SSP(3)


def test_arrays_of_foreign_byte_order_and_round_floats_of_bytes_are_taken():
    table = ps.Table.from_numpy(np.arange(3, dtype=">f4")[:, None], cache_bytes=1e6)
    assert ps.run(lambda worker, table: table.get([2, 1]).ravel().tolist(), table, workers=1).values == [[2, 1]]


@pytest.mark.nodes
def test_tables_of_one_run_may_have_different_models(runtime):
    def add(worker, *tables):
        for clock in range(5):
            fresh = tables[0].get([0, 3])
            assert (fresh == clock * worker.count).all()
            for table in tables:
                table.get([0])
                table.inc([0, 3], 1)
            worker.clock()

    tables = [ps.Table(4, 2, "i8", consistency=model) for model in MODELS]
    ended = ps.run(add, *tables, workers=3)
    for table in tables:
        assert table.to_numpy().tolist() == [[15, 15], [0, 0], [0, 0], [15, 15]]
    assert (sum(ended.bytes_sent) > 0) == (sum(ended.messages_sent) > 0) == (runtime.cluster.size > 1)


@pytest.mark.nodes
def test_own_writes_are_seen_on_nodes(runtime):
    def add(worker, table):
        rows = np.arange(len(table))
        for clock in range(8):
            own = table.get(rows)[:, worker.number]
            assert (own == clock * (rows % 3 == worker.number)).all()
            chosen = rows[rows % 3 == worker.number]
            table.inc(chosen, np.eye(3)[worker.number])
            worker.clock()

    for model in MODELS:
        for cache_bytes in (None, 100):
            table = ps.Table(9, 3, "f8", consistency=model, read_my_writes=True, cache_bytes=cache_bytes)
            ps.run(add, table, workers=3)


def test_servers_forget_readers_without_room():
    def read(worker, table):
        table.get([0, 1])
        worker.clock()
        table.get([0])
        return bool(table._endpoint._server._readers[0].registered.any())

    table = ps.Table(2, 1, consistency=ps.ESSP(1))
    assert ps.run(read, table, workers=1).values == [True]
    assert ps.run(read, ps.Table(2, 1, consistency=ps.ESSP(1), cache_bytes=0), workers=1).values == [False]
