"""`sync_for` in one process: bad indices, bodies and arguments, interrupts; what tables hold afterwards."""

import os
import signal
import threading

import numpy as np
import pytest
from minibatch_programs import RULES, add_items, relax_rows, sparse

import strads


@pytest.mark.parametrize("consistency", RULES, ids=repr)
@pytest.mark.parametrize("recon", [False, True])
def test_an_index_out_of_range_is_found_before_anything_is_written(consistency, recon):
    records = sparse(50, 12)
    records["row"][33] = 12
    w = strads.dvector.zeros(12)
    with pytest.raises(strads.BodyIndexError, match=r"minibatch_programs.py:\d+: w\[r.row\]"):
        strads.sync_for(strads.dvector(records), relax_rows, w, 0.5, batch_size=4, consistency=consistency, recon=recon)
    assert not w.to_numpy().any()


@pytest.mark.parametrize("consistency", [strads.BSP(), strads.Hybrid(), strads.SSP(1)], ids=repr)
def test_an_index_that_nobody_could_check_leaves_tables_as_they_were(consistency):
    def chosen_by_values(batch, w):
        for i in range(len(batch)):
            w[int(w[0])] += 1.0  # 0, 1, 1, 1 …
            w[0] += batch[i]

    w = strads.dvector.zeros(3, "f8")
    with pytest.raises(strads.BodyIndexError):
        strads.sync_for(strads.dvector(np.ones(20)), chosen_by_values, w, batch_size=5, consistency=consistency)
    assert not w.to_numpy().any()


@pytest.mark.few(1)
@pytest.mark.parametrize("consistency", [strads.BSP(), strads.SSP(1)], ids=repr)
def test_a_body_that_raises_leaves_tables_as_they_were(consistency):
    def checks(batch, w, limit):
        w[0] += 1.0
        if w[0] > limit:
            raise ValueError("too much")

    w = strads.dvector.zeros(3)
    with pytest.raises(strads.BodyError, match="too much"):
        strads.sync_for(100, checks, w, 2.0, batch_size=5, consistency=consistency)
    assert not w.to_numpy().any()
    strads.sync_for(100, checks, w, 1e6, batch_size=5, consistency=consistency)
    assert w[0] > 0


def test_what_a_body_cannot_do_is_said():
    def writes_batch(batch, w):
        batch[0] = 1.0

    def unknown(batch, w):
        w[0] = missing(batch)  # noqa: F821

    def reads(batch, w):
        w[0] += batch[0]

    data, w = strads.dvector([1.0, 2.0]), strads.dvector.zeros(2)
    with pytest.raises(strads.ArgumentError, match="writes its minibatch"):
        strads.sync_for(data, writes_batch, w, batch_size=1)
    with pytest.raises(strads.CompileError, match=r"w\[0\] = missing"):
        strads.sync_for(data, unknown, w, batch_size=1)
    with pytest.raises(strads.ArgumentError, match=r"1 arguments after the minibatch \(w\), 2 were given"):
        strads.sync_for(data, reads, w, w, batch_size=1)
    with pytest.raises(strads.ArgumentError, match="data that minibatches are made of"):
        strads.sync_for(w, reads, w, batch_size=1)
    with pytest.raises(strads.ArgumentError, match="records"):
        strads.sync_for(data, relax_rows_of_records, strads.dvector(sparse(3, 3)), batch_size=1)
    with pytest.raises(strads.ArgumentError, match="readonly"):
        strads.sync_for(data, reads, strads.readonly(w), batch_size=1)
    with pytest.raises(strads.ArgumentError, match="NumPy array"):
        strads.sync_for(data, reads, np.zeros(2), batch_size=1)
    assert not w.to_numpy().any()


def relax_rows_of_records(batch, table):
    table[0].value += batch[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"batch_size": 1, "consistency": "bsp"}, "consistency='bsp'"),
        ({"batch_size": 1, "seed": -1}, "seed"),
        ({"batch_size": 1, "threads": 0}, "threads"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(strads.ArgumentError, match=message):
        strads.sync_for(strads.dvector([1.0]), add_items, strads.dvector.zeros(1), **options)


@pytest.mark.parametrize("data", [np.zeros(3), [1, 2], True, -1, strads.dmap([1], [1.0])])
def test_data_that_cannot_be(data):
    with pytest.raises(strads.ArgumentError, match="data"):
        strads.sync_for(data, add_items, strads.dvector.zeros(1), batch_size=1)


def test_recon_needs_rows_that_can_be_foreseen():
    def row_of_values(batch, w):
        w[int(w[0]) % 3] += 1.0

    w = strads.dvector.zeros(3)
    with pytest.raises(strads.ArgumentError, match="recon=False"):
        strads.sync_for(10, row_of_values, w, batch_size=1, recon=True)
    strads.register_aggregation(w, "sum")
    strads.sync_for(10, row_of_values, w, batch_size=1)
    assert w.to_numpy().sum() == 10


def test_no_data_and_fewer_minibatches_than_threads():
    for rows in (0, 1, 2):
        for rules in RULES:
            w = strads.dvector.zeros(1)
            strads.register_aggregation(w, "sum")
            data = strads.dvector(np.ones(rows, np.float32))
            found = strads.sync_for(data, add_items, w, batch_size=1, threads=1 + rows, consistency=rules)
            assert np.isclose(w[0], rows)
            assert (found.batches, found.workers) == (rows, 8 if type(rules) is strads.BSP else 1 + rows)


def test_nan_goes_where_it_would_in_the_loop_and_no_bound_holds_it():
    data = strads.dvector(np.array([1.0, np.nan], np.float32))
    w = strads.dvector.zeros(1)
    strads.sync_for(data, add_items, w, batch_size=1)
    assert np.isnan(w[0])
    w = strads.dvector.zeros(1)
    with pytest.raises(strads.BodyError, match="'w' are infinite or not a number"):
        strads.sync_for(data, add_items, w, batch_size=1, consistency=strads.VAP(1.0))
    assert w[0] == 0


@pytest.mark.few(3)
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("rules", [strads.BSP(), strads.Hybrid(), strads.SSP(1)], ids=repr)
def test_an_interrupt_ends_the_loop(rules, size):
    def long(batch, w):
        for _ in range(1000):
            w[0] = np.cos(w[0])

    with strads.init("threads", nodes=size, threads=2 // size):
        w = strads.dvector.zeros(1)
        strads.sync_for(4, long, w, batch_size=1, consistency=rules)
        before = w[0]
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            strads.sync_for(20_000_000, long, w, batch_size=100, consistency=rules)
        assert w[0] == before or (size == 1 and isinstance(rules, strads.Hybrid))
        strads.sync_for(4, long, w, batch_size=1, consistency=rules)


def test_items_of_longer_rows_are_checked_anew():
    def third(batch, w):
        for i in range(len(batch)):
            w[0] += batch[i][2]

    w, rows = strads.dvector.zeros(1), strads.dvector([[1, 2, 3], [4, 5, 6, 7, 8]])
    strads.sync_for(rows, third, w, batch_size=1)
    with pytest.raises(strads.BodyIndexError):
        strads.sync_for(strads.dvector([[1, 2], [3, 4, 5, 6, 7, 8]]), third, w, batch_size=1)


def count_above(batch, W, H, least):
    w, h = W[0], H[0]
    if w[0] > least:
        for f in range(len(w)):
            h[f] += 1.0
    w[0] += 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{"workers": 1}, {"consistency": strads.Hybrid()}], ids=str)
def test_tables_of_other_sizes_may_need_checks_in_the_run(options):
    for width, fits in [(4, True), (64, False), (4, True)]:  # known to be in range only if rows are as long
        W, H = strads.dvector.zeros((4, width)), strads.dvector.zeros((4, 4))
        before = W.to_numpy().copy()
        if fits:
            strads.sync_for(16, count_above, W, H, 1.0, batch_size=4, threads=1, **options)
            assert H.to_numpy()[0].tolist() == [2.0] * 4
        else:
            with pytest.raises(strads.StradsError, match="out of range"):
                strads.sync_for(16, count_above, W, H, 1.0, batch_size=4, threads=1, **options)
            assert np.array_equal(W.to_numpy(), before)
            assert not H.to_numpy().any()


def test_new_data_is_checked_and_recorded_anew():
    w = strads.dvector.zeros(12)
    table = strads.dvector(sparse(50, 12))
    for recon in (False, True):
        strads.sync_for(table, relax_rows, w, 0.5, batch_size=4, recon=recon)
        wrong = sparse(50, 12)
        wrong["row"][7] = -13
        table[:] = wrong
        with pytest.raises(strads.BodyIndexError):
            strads.sync_for(table, relax_rows, w, 0.5, batch_size=4, recon=recon)
        table[:] = sparse(50, 12)


@pytest.mark.parametrize("workers", [0, -1, 2.5, "8", True, 1 << 40])
def test_workers_that_cannot_be(workers):
    with pytest.raises(strads.ArgumentError, match="workers"):
        strads.sync_for(strads.dvector([1.0]), add_items, strads.dvector.zeros(1), batch_size=1, workers=workers)


def test_workers_are_those_of_rounds_only():
    with pytest.raises(strads.ArgumentError, match="each thread is a worker"):
        strads.sync_for(
            strads.dvector([1.0]),
            add_items,
            strads.dvector.zeros(1),
            batch_size=1,
            workers=2,
            consistency=strads.SSP(1),
        )
    with strads.init("threads", nodes=3), pytest.raises(strads.ArgumentError, match="each of the 3 nodes needs one"):
        strads.sync_for(strads.dvector([1.0]), add_items, strads.dvector.zeros(1), batch_size=1, workers=2)
