"""`sync_for` in one process: what a call does, beside a simulation in NumPy; aggregation."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minibatch_programs import RULES, add_items, count_words, generate, logistic, relax_rows, simulate, sparse

import strads
from strads.dds import RaggedArray
from strads.loops.on_nodes import run_minibatches


def losses(rules, epochs=4, rows=600, **options):
    data, w = strads.dvector(generate(rows, 6)), strads.dvector.zeros(6)
    found = []
    for _ in range(epochs):
        loss = strads.accumulator(0.0)
        strads.sync_for(data, logistic, w, 0.5, loss, batch_size=20, consistency=rules, **options)
        found.append(loss.value / rows)
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("recon", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_bsp_is_its_definition_to_the_last_bit(workers, recon):
    records = sparse(203, 12)
    w, expected = strads.dvector.zeros(12), np.zeros(12, np.float32)
    for _ in range(2):
        strads.sync_for(
            strads.dvector(records), relax_rows, w, 0.3, batch_size=8, workers=workers, recon=recon, fastmath=False
        )
        simulate(records, relax_rows, expected, np.float32(0.3), size=8, workers=workers)
    assert w.to_numpy().tobytes() == expected.tobytes()


@pytest.mark.few(1)
@pytest.mark.parametrize("recon", [False, True])
def test_bsp_has_the_same_bits_on_any_threads_and_nodes(recon):
    found = set()
    for nodes, threads in ((1, 1), (1, 4), (2, 2), (3, 1), (4, 1)):
        with strads.init("threads", nodes=nodes, threads=threads):
            data, w = strads.dvector(generate(530, 6)), strads.dvector.zeros(6)
            loss = strads.accumulator(0.0)
            for seed in (None, 3):
                strads.sync_for(data, logistic, w, 0.5, loss, batch_size=20, recon=recon, seed=seed)
            found.add((w.to_numpy().tobytes(), loss.value))
    assert len(found) == 1


@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_logistic_regression_converges_as_the_sequential_loop_does(rules):
    two = {"workers": 2} if type(rules) is strads.BSP else {}
    sequential, found = losses(strads.BSP(), workers=1), losses(rules, **two)
    assert sequential[3] < 0.9 * sequential[0]
    # The mean of two replicas has moved as far as one of them: half as far as the loop over all rows.
    assert sequential[3] - 0.02 < found[3] < sequential[1] + 0.02


@pytest.mark.slow
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=40),
    size=st.integers(1, 12),
    workers=st.integers(1, 3),
    recon=st.booleans(),
    rules=st.sampled_from(RULES[:-1]),  # VAP has no bound for whole numbers
)
@settings(max_examples=50)
def test_every_row_is_in_one_minibatch(lengths, size, workers, recon, rules):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 30, sum(lengths))
    documents = strads.dvector(RaggedArray(words, np.concatenate([[0], np.cumsum(lengths)])))
    counts, total = strads.dvector.zeros(30, "i8"), strads.accumulator(0)
    strads.register_aggregation(counts, "sum")
    workers = 1 if isinstance(rules, strads.Hybrid) else workers  # its threads may overwrite each other's counts
    found = strads.sync_for(
        documents, count_words, counts, total, batch_size=size, threads=workers, recon=recon, consistency=rules
    )
    assert counts.to_numpy().tolist() == np.bincount(words, minlength=30).tolist()
    assert total.value == len(words)
    assert found.batches == -(-len(lengths) // size)


def test_hybrid_lets_all_threads_write_to_the_tables_themselves():
    one, two = losses(strads.Hybrid(), threads=1), losses(strads.Hybrid(), threads=2)
    assert np.allclose(one, losses(strads.BSP(), workers=1), rtol=1e-5)
    assert abs(one[3] - two[3]) < 0.02


def test_a_seed_decides_the_order_of_minibatches():
    in_order, seeded, again = losses(strads.BSP()), losses(strads.BSP(), seed=1), losses(strads.BSP(), seed=1)
    assert seeded == again
    assert seeded != in_order


def test_numbers_of_a_range_are_a_minibatch_too():
    def visit(batch, x, total):
        for k in batch:
            x[k] += k
        total.add(len(batch))

    for data, chosen in ((7, range(7)), (range(2, 11, 3), range(2, 11, 3))):
        x, total = strads.dvector.zeros(11, "f8"), strads.accumulator(0)
        strads.register_aggregation(x, "sum")
        strads.sync_for(data, visit, x, total, batch_size=2)
        assert [x[k] for k in range(11)] == [k if k in chosen else 0 for k in range(11)]
        assert total.value == len(chosen)


def test_tables_may_be_used_as_a_whole():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    y = X @ [1.0, -2.0, 3.0, 0.5]

    def least_squares(batch, y, w, rate):
        for i in range(len(batch)):
            x = batch[i]
            w -= rate * (np.dot(x[:4], w) - x[4]) * x[:4]

    data, w = strads.dvector(np.column_stack([X, y])), strads.dvector.zeros(4, "f8")
    for _ in range(60):
        strads.sync_for(data, least_squares, 0, w, 0.1, batch_size=10)
    assert np.allclose(w.to_numpy(), [1.0, -2.0, 3.0, 0.5], atol=1e-3)


@pytest.mark.slow
def test_several_tables_maps_and_records_in_one_body():
    def visit(batch, prices, spent, items):
        for i in range(len(batch)):
            r = batch[i]
            spent[r.row] += prices[r.row] * r.value
            items[r.row, 1] += 1

    records = sparse(100, 5)
    keys = np.arange(5)
    prices, spent = strads.dmap(keys, keys + 1.0), strads.dmap(keys, np.zeros(5))
    items = strads.dvector.zeros((5, 2), "i4")
    for table in (spent, items):
        strads.register_aggregation(table, "sum")
    for recon in (False, True):
        strads.sync_for(strads.dvector(records), visit, prices, spent, items, batch_size=7, recon=recon)
    counted = np.bincount(records["row"], minlength=5)
    summed = np.bincount(records["row"], records["value"], minlength=5) * (keys + 1)
    assert np.allclose([spent[int(key)] for key in keys], 2 * summed, atol=1e-5)
    assert items.to_numpy().tolist() == [[0, 2 * count] for count in counted]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("average", 3.0), ("sum", 6.0), (lambda changes: changes.max(axis=0), 4.0), (lambda changes: changes[0], 2.0)],
)
def test_aggregations(aggregation, expected):
    w = strads.dvector.zeros((3, 2))
    strads.register_aggregation(w, aggregation)

    def add(batch, w):
        w[1, 0] += batch[0]

    strads.sync_for(strads.dvector([2.0, 4.0]), add, w, batch_size=1)
    assert w.to_list() == [[0, 0], [expected, 0], [0, 0]]


def test_no_more_workers_compute_at_once_than_there_are_threads(monkeypatch):
    running, most = 0, 0
    exchange, changing = run_minibatches.exchange, threading.Lock()

    def watched(node, what):
        def run(*arguments):
            nonlocal running, most
            with changing:
                running += 1
                most = max(most, running)
            time.sleep(0.001)
            what.run(*arguments)
            with changing:
                running -= 1

        return exchange(node, replace(what, run=run))

    monkeypatch.setattr(run_minibatches, "exchange", watched)
    for threads in (1, 2):
        w, most = strads.dvector.zeros(6), 0
        strads.register_aggregation(w, lambda changes: changes.sum(axis=0))
        strads.sync_for(
            strads.dvector(generate(400, 6)), logistic, w, 0.5, strads.accumulator(0.0), batch_size=20, threads=threads
        )
        assert most == threads


def test_a_function_gets_the_changes_of_all_tasks_of_a_round():
    shapes = []

    def sum_of(changes):
        shapes.append(changes.shape)
        return changes.sum(axis=0)

    w = strads.dvector.zeros((4, 2, 3))
    strads.register_aggregation(w, sum_of)

    def add(batch, w):
        w[0, 0, 0] += 1

    strads.sync_for(5, add, w, batch_size=1, workers=3)
    assert shapes == [(3, 4, 2, 3), (2, 4, 2, 3)]
    assert w[0, 0, 0] == 5


def test_aggregations_that_cannot_be():
    w, data = strads.dvector.zeros(3), strads.dvector([1.0, 2.0])
    with pytest.raises(strads.ArgumentError, match="'mode'"):
        strads.register_aggregation(w, "mode")
    with pytest.raises(strads.ArgumentError, match="ndarray"):
        strads.register_aggregation(np.zeros(3), "sum")
    strads.register_aggregation(w, lambda changes: changes)
    with pytest.raises(strads.ArgumentError, match=r"'w'.*\(2, 3\)"):
        strads.sync_for(data, add_items, w, batch_size=1)
    with pytest.raises(strads.ArgumentError, match="no rounds"):
        strads.sync_for(data, add_items, w, batch_size=1, consistency=strads.SSP(1))
    whole = strads.dvector.zeros(3, "i4")
    with pytest.raises(strads.ArgumentError, match="averaged"):
        strads.sync_for(data, count_words_of, whole, batch_size=1)
    strads.register_aggregation(whole, "sum")
    with pytest.raises(strads.ArgumentError, match="bound"):
        strads.sync_for(data, count_words_of, whole, batch_size=1, consistency=strads.VAP(1.0))
    assert w.to_list() == [0, 0, 0]


def count_words_of(batch, counts):
    counts[0] += len(batch)
