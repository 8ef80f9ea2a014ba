"""What a parameter server refuses, and how it says so."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import strads
from strads import ps
from strads.errors import ArgumentError, BodyIndexError, InputError


def count(worker, table, clocks):
    """Add 1 to random rows."""
    generator = np.random.default_rng(worker.number)
    for _ in range(clocks):
        table.inc(generator.integers(len(table), size=20), 1)
        worker.clock()


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda table: table.get([0, 5]), BodyIndexError, r"row 5 \(at place 1 of rows\).* 0 … 4"),
        (lambda table: table.get(-1), BodyIndexError, "row -1"),
        (lambda table: table.get([0.5]), ArgumentError, "whole numbers"),
        (lambda table: table.inc([0], np.zeros((2, 2))), InputError, r"expected \(1, 2\)"),
        (lambda table: table.inc([0], ["a"]), InputError, "give numbers"),
        (lambda table: table.inc([0], sparse.csr_array(np.zeros((1, 3)))), InputError, r"expected \(1, 2\)"),
    ],
)
def test_bad_rows_and_values_are_refused(act, error, message):
    with pytest.raises(error, match=message):
        ps.run(lambda worker, table: act(table), ps.Table(5, 2), workers=1)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("make", [np.array, sparse.csc_array])
def test_integers_that_would_wrap_are_refused(make, is_sparse):
    values = make([[0, 1 << 40]])
    with pytest.raises(InputError, match="1099511627776 does not fit int32"):
        ps.run(lambda worker, table: table.inc([0], values), ps.Table(5, 2, "i4", sparse=is_sparse), workers=1)


class _BoundedSSP(ps.SSP):
    def bound(self, clock):
        return 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ps.Table(0, 1), "rows=0"),
        (lambda: ps.Table(1, 1, "i2"), "int16"),
        (lambda: ps.Table(1, 1, "U5"), "a table holds"),
        (lambda: ps.Table(1, 1, cache_bytes=-1), "cache_bytes=-1"),
        (lambda: ps.Table(1, 1, consistency="SSP"), "SSP"),
        (lambda: ps.Table(1, 1, consistency=ps.VAP(1.0), sparse=True), "dense"),
        (lambda: ps.Table(1, 1 << 31, sparse=True), "at most 2147483647"),
        (lambda: ps.Table(1, 1, cache_bytes="1M"), "cache_bytes='1M'"),
        (lambda: ps.Table(1, 1, cache_bytes=np.nan), "cache_bytes=nan"),
        (lambda: ps.Table(1, 1, consistency=_BoundedSSP(1)), r"Push\.UPDATE"),
        (lambda: ps.run(count, (ps.Table(1, 1), ps.Table(1, 1))), "as a separate argument"),
        (lambda: pickle.dumps(ps.Table(1, 1)), "as a separate argument"),
        (lambda: ps.SSP(-1), "staleness=-1"),
        (lambda: ps.ESSP(1.5), "staleness=1.5"),
        (lambda: ps.VAP(0), "v0=0"),
        (lambda: ps.VAP("1"), "v0='1': give a number"),
        (lambda: ps.VAP(1, "1"), "decay='1': give a number"),
        (lambda: ps.VAP(1, -1), "decay=-1"),
        (lambda: ps.run(count, workers=0), "workers=0"),
        (lambda: ps.run(count, workers=2, data=[1]), "1 workers were given"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_tables_of_nodes_that_are_gone_are_refused():
    table = ps.Table(1, 1)
    strads.init("threads", threads=1)
    with pytest.raises(strads.StradsError, match=r"before strads.init|shut down"):
        ps.run(count, table, 1)


def test_a_bound_without_room_for_whole_numbers_is_refused():
    with pytest.raises(ArgumentError, match="less than 1"):
        ps.run(count, ps.Table(5, 1, "i4", consistency=ps.VAP(1.5)), 3, workers=2)
    table = ps.Table(5, 1, "i4", consistency=ps.VAP(2, decay=0))
    ps.run(count, table, 3, workers=2)
    assert table.to_numpy().sum() == 2 * 3 * 20


def test_updates_that_would_wait_for_ever_are_refused():
    for value in (np.nan, np.inf, -1e12):
        with pytest.raises(InputError, match="diverge"):
            ps.run(lambda worker, table, value: table.inc([0], value), ps.Table(2, 1, consistency=ps.VAP(1)), value)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_fractions_are_refused_by_tables_of_whole_numbers(is_sparse):
    table = ps.Table(2, 1, "i8", sparse=is_sparse)
    with pytest.raises(InputError, match="whole numbers"):
        ps.run(lambda worker, table: table.inc([0], 0.5), table, workers=1)
    with pytest.raises(InputError, match="whole numbers"):
        table.write([0], [[1.5]])


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.to_numpy(),
        lambda table: table.write([0], [[1]]),
        lambda table: ps.Table(1, 1),
        lambda table: ps.run(lambda worker: None),
    ],
)
def test_what_is_for_the_driver_is_refused_in_workers(act):
    table = ps.Table(1, 1)
    with pytest.raises(strads.StradsError, match="for the driver"):
        ps.run(lambda worker: act(table), workers=1)


def test_a_worker_uses_what_it_is_passed():
    table = ps.Table(2, 1)
    with pytest.raises(AttributeError, match=r"'get': pass the table to ps\.run"):
        ps.run(lambda worker: table.get([0]), workers=1)
    with pytest.raises(AttributeError, match=r"no attribute 'shpae'$"):
        table.shpae  # noqa: B018


def _next(value):
    return value + 1


def test_a_worker_cannot_start_what_all_nodes_take_part_in():
    with strads.init("threads", nodes=2, threads=1), pytest.raises(strads.StradsError, match="for the driver"):
        ps.run(lambda worker: strads.dvector(np.arange(8)).map(_next), workers=1)
