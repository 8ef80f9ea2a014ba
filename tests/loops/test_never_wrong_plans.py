"""Plans, checks and copies that are kept from call to call: none outlives what it was made from."""

import enum
import itertools
import time
import zlib

import numpy as np
import pytest
from launching import in_its_own_process
from serial import refuse, run_or_refuse

import strads
from strads import async_for, sync_for
from strads.loops import reconnaissance

full, zeros = strads.dvector.full, strads.dvector.zeros


def with_same_crc32(array, other):
    """Return int32 `array` with a last element by which it has the CRC-32 of `other`."""
    state = zlib.crc32(other.tobytes()) ^ 0xFFFFFFFF
    for _ in range(32):  # backwards over four zero bytes
        state = ((state ^ 0xEDB88320) << 1 | 1) if state >> 31 else state << 1
    found = array.copy()
    last = state ^ zlib.crc32(array[:-1].tobytes()) ^ 0xFFFFFFFF
    found[-1:].view(np.uint32)[0] = last
    assert zlib.crc32(found.tobytes()) == zlib.crc32(other.tobytes())
    return found


def test_the_collision_is_one():
    ones, numbers = np.ones(50, np.int32), np.arange(50, dtype=np.int32)
    assert with_same_crc32(ones, numbers)[:-1].tolist() == [1] * 49


# -- async_for -----------------------------------------------------------------------------------------------


def scatter(k, A, W):
    W[A[k]] += 1


def read_by_task(k, A, W):
    W[k] += A[k]


def read_far(k, A, W):
    W[k] += A[len(A) - 2 - k]


@pytest.mark.few(2)
@pytest.mark.parametrize("body", [scatter, read_by_task, read_far])
def test_index_arrays_with_the_same_checksum(body):
    tasks = 3000
    first = np.arange(tasks + 1, dtype=np.int32)  # the last element is not used
    second = with_same_crc32(np.full(tasks + 1, 7, np.int32), first)
    W = zeros(tasks, "i8")
    for A in (first, second, first, second):
        assert run_or_refuse(tasks, body, A, W) is None


@in_its_own_process(60)
def test_an_index_array_with_the_same_checksum_that_leads_outside():
    tasks = 3000
    first = np.arange(tasks + 1, dtype=np.int32)
    W = zeros(tasks, "i8")
    assert run_or_refuse(tasks, scatter, first, W) is None
    refuse(strads.BodyIndexError, tasks, scatter, with_same_crc32(np.full(tasks + 1, 1 << 30, np.int32), first), W)


def test_an_array_that_is_changed_in_place():
    A, W = np.arange(3000, dtype=np.int32), zeros(3000, "i8")
    for body in (scatter, read_by_task):
        for row in (3, 4):
            assert run_or_refuse(3000, body, A, W) is None
            A[1000:2000] = row


def add_first(k, A, W):
    W[k] += A[0] * len(A) + A[k % len(A)]


def add_if_there(k, A, W):
    if k < len(A):
        W[k] = A[k]


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [add_first, add_if_there])
def test_arrays_of_other_lengths(body):
    W = zeros(100, "i8")
    for length in (3, 7, 50, 100, 3, 120):
        assert run_or_refuse(100, body, np.arange(length) + 1, W) is None


@pytest.mark.few(1)
@pytest.mark.parametrize("body", [add_first, add_if_there])
def test_tables_of_other_lengths(body):
    W = zeros(100, "i8")
    for length in (3, 7, 50, 100, 3, 120):
        assert run_or_refuse(100, body, strads.dvector(np.arange(length) + 1), W) is None


def add_to_row(k, docs, W):
    W[docs[k][1]] += len(docs[k])


def test_ragged_rows_of_other_lengths():
    W, plain = zeros(10, "i8"), [0] * 10
    for rows in ([[1, 2], [3, 4], [5, 6]], [[1, 2, 3], [4, 5], [6]], [[1, 2, 3], [4, 9], [5, 6, 7]]):
        docs = strads.dvector(rows, "i8")
        if len(rows[2]) == 1:
            with pytest.raises(strads.StradsError):
                async_for(3, add_to_row, docs, W)
        else:
            async_for(3, add_to_row, docs, W)
            for row in rows:
                plain[row[1]] += len(row)
        assert W.to_list() == plain


def counting_by(value):
    """Define an enumeration and a body anew, under the same names."""

    class Kind(enum.IntEnum):
        A = value

    def count(k, W):
        W[0 + Kind.A] += 1

    return count


def test_an_enumeration_that_is_defined_anew():
    W = zeros(10, "i8")
    for call, row in enumerate((3, 4, 3)):
        try:
            async_for(1000, counting_by(row), W)
        except strads.CompileError:
            assert call == 0
            assert not W.to_numpy().any()
            return
    assert W.to_list() == [0, 0, 0, 2000, 1000, 0, 0, 0, 0, 0]


class Kind(enum.IntEnum):
    A = 3


def count_by_global(k, W):
    W[0 + Kind.A] += 1


def test_a_global_enumeration_that_is_replaced(monkeypatch):
    W = zeros(10, "i8")
    async_for(1000, count_by_global, W)
    monkeypatch.setitem(globals(), "Kind", enum.IntEnum("Kind", {"A": 5}, module=__name__, qualname="Kind"))
    async_for(1000, count_by_global, W)
    assert W.to_list() == [0, 0, 0, 1000, 0, 1000, 0, 0, 0, 0]


class Settings:
    ROW = 3


def count_by_class(k, W):
    W[Settings.ROW] += 1


def test_an_attribute_of_a_class_that_is_changed(monkeypatch):
    W = zeros(10, "i8")
    try:
        async_for(1000, count_by_class, W)
    except strads.CompileError:
        return
    monkeypatch.setattr(Settings, "ROW", 5)
    async_for(1000, count_by_class, W)
    assert W.to_list() == [0, 0, 0, 1000, 0, 1000, 0, 0, 0, 0]


# -- sync_for ------------------------------------------------------------------------------------------------


def count_rows(batch, A, W):
    for i in range(len(batch)):
        W[A[batch[i]]] += 1


@pytest.mark.few(1)
@pytest.mark.parametrize("recon", [True, False])
def test_index_arrays_of_minibatches_with_the_same_checksum(recon):
    first = np.arange(201, dtype=np.int32)
    second = with_same_crc32(np.full(201, 7, np.int32), first)
    W = zeros(200, "i8")
    strads.register_aggregation(W, "sum")
    expected = np.zeros(200, np.int64)
    for A in (first, second):
        sync_for(200, count_rows, A, W, batch_size=10, recon=recon)
        np.add.at(expected, A[:200], 1)
        assert np.array_equal(W.to_numpy(), expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("recon", [False, True])
@in_its_own_process(60)
def test_an_index_array_of_minibatches_that_leads_outside(recon):
    first = np.arange(201, dtype=np.int32)
    second = with_same_crc32(np.full(201, 1 << 30, np.int32), first)
    W = zeros(200, "i8")
    strads.register_aggregation(W, "sum")
    sync_for(200, count_rows, first, W, batch_size=10, recon=recon)
    with pytest.raises(strads.BodyIndexError):
        sync_for(200, count_rows, second, W, batch_size=10, recon=recon)
    assert (W.to_numpy() == 1).all()


def count_keys(batch, counts):
    for i in range(len(batch)):
        counts[batch[i]] += 1


WAYS = {
    "BSP": {},
    "recon": {"recon": True},
    "Hybrid": {"consistency": strads.Hybrid(), "threads": 1},  # writes to the tables themselves
}


@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_minibatches_with_changed_keys_of_a_map(way):
    data = strads.dvector(np.array([1, 2, 3] * 40))
    counts = strads.dmap([1, 2, 3], np.zeros(3, np.int64))
    strads.register_aggregation(counts.table, "sum")
    sync_for(data, count_keys, counts, batch_size=10, **WAYS[way])
    assert counts.to_dict() == {1: 40, 2: 40, 3: 40}
    for removed, added in ((2, 9), (1, 10)):
        del counts[removed]
        counts[added] = 0
        strads.register_aggregation(counts.table, "sum")
        before = counts.to_dict()
        with pytest.raises(strads.BodyKeyError):
            sync_for(data, count_keys, counts, batch_size=10, **WAYS[way])
        assert counts.to_dict() == before
    del counts[9]
    del counts[10]
    counts[1] = counts[2] = 0
    strads.register_aggregation(counts.table, "sum")
    sync_for(data, count_keys, counts, batch_size=10, **WAYS[way])
    assert counts.to_dict() == {1: 40, 2: 40, 3: 80}


def read_keys(batch, weights, W):
    for i in range(len(batch)):
        W[0] += weights[batch[i]]


@pytest.mark.parametrize("way", ["BSP", "Hybrid"])
def test_minibatches_with_changed_keys_of_a_map_that_is_only_read(way):
    data = strads.dvector(np.array([1, 2, 3] * 40))
    W = zeros(1, "i8")
    strads.register_aggregation(W, "sum")
    total = 0
    for keys in ([1, 2, 3], [4, 5, 6], [1, 2, 3], [3, 2, 1], [1, 2, 4]):
        weights = strads.dmap(keys, np.array([1, 10, 100]))
        if set(keys) == {1, 2, 3}:
            sync_for(data, read_keys, weights, W, batch_size=10, **WAYS[way])
            total += 111 * 40
        else:
            with pytest.raises(strads.BodyKeyError):
                sync_for(data, read_keys, weights, W, batch_size=10, **WAYS[way])
        assert W[0] == total


def third_of_row(batch, docs, W):
    for i in range(len(batch)):
        W[3] += docs[batch[i]][2]


def third_of_item(batch, W):
    for i in range(len(batch)):
        W[3] += batch[i][2]


@pytest.mark.few(1)
@pytest.mark.parametrize(("own", "way"), [(False, "BSP"), (True, "BSP"), (False, "Hybrid")])
def test_minibatches_with_ragged_rows_of_other_lengths(own, way):
    W = zeros(4, "i8")
    strads.register_aggregation(W, "sum")
    total = 0
    longer = [[1, 2], *([[1, 2, 3]] * 198), [1, 2, 3, 999]]
    for rows in ([[1, 2, 3]] * 200, longer, [[1, 2, 3]] * 200, [[]] * 100 + [[1, 2, 3, 4, 5, 6]] * 100):
        docs = strads.dvector(rows, "i8")

        def call(docs=docs):
            if own:
                return sync_for(docs, third_of_item, W, batch_size=10, **WAYS[way])
            return sync_for(200, third_of_row, docs, W, batch_size=10, **WAYS[way])

        if len(rows[0]) == 3:
            call()
            total += 600
        else:
            with pytest.raises(strads.StradsError):
                call()
        assert W[3] == W.to_numpy().sum() == total


def test_minibatches_with_scalars_that_choose_rows():
    def add_at(batch, row, W):
        W[row] += len(batch)

    W = zeros(10, "i8")
    strads.register_aggregation(W, "sum")
    for recon, row in itertools.product((True, False), (3, 4)):
        sync_for(100, add_at, row, W, batch_size=10, recon=recon)
    assert W.to_list() == [0, 0, 0, 200, 200, 0, 0, 0, 0, 0]
    with pytest.raises(strads.BodyIndexError):
        sync_for(100, add_at, 10, W, batch_size=10)
    assert W.to_numpy().sum() == 400


# -- recording on several threads ----------------------------------------------------------------------------


def add_where_there_is_a_row(k, E, x):
    i = E[k]
    if i >= 0:
        x[i] = 0.5 * x[i] + k


@pytest.mark.parametrize("late", [1 << 16, 60_000])
def test_a_task_unlike_the_others_is_noticed_whichever_thread_ends_last(monkeypatch, late):
    """One of two chunks has tasks without a row; the thread of the chunk of `late` tasks decides last about its own."""
    decide = reconnaissance._is_uniform

    def is_uniform(counts, tags, pattern):
        if len(counts) == late:
            time.sleep(0.2)
        return decide(counts, tags, pattern)

    monkeypatch.setattr(reconnaissance, "_is_uniform", is_uniform)
    size, tasks = 5000, (1 << 16) + 60_000
    E = np.random.default_rng(0).integers(0, size, tasks)
    E[(1 << 16) + 10 :: 97] = -1
    with strads.init(threads=2):
        x = zeros(size)
        stats = async_for(tasks, add_where_there_is_a_row, strads.dvector(E), x, fastmath=False, record_order=True)
    expected = np.zeros(size, x.dtype)
    for k in stats.order.tolist():
        add_where_there_is_a_row(k, E, expected)
    assert np.array_equal(x, expected)
