"""`sync_for` in one process: what a call does, beside a simulation in NumPy; aggregation, hints, errors."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minibatch_programs import RULES, count_words, generate, logistic, relax_rows, simulate, sparse

import strads
from strads.dds import RaggedArray


def losses(rules, epochs=4, rows=600, **options):
    data, w = strads.dvector(generate(rows, 6)), strads.dvector.zeros(6)
    found = []
    for _ in range(epochs):
        loss = strads.accumulator(0.0)
        strads.sync_for(data, logistic, w, 0.5, loss, batch_size=20, consistency=rules, **options)
        found.append(loss.value / rows)
    return found


@pytest.mark.parametrize("recon", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_bsp_is_its_definition_to_the_last_bit(workers, recon):
    records = sparse(203, 12)
    w, expected = strads.dvector.zeros(12), np.zeros(12, np.float32)
    for _ in range(2):
        strads.sync_for(
            strads.dvector(records), relax_rows, w, 0.3, batch_size=8, threads=workers, recon=recon, fastmath=False
        )
        simulate(records, relax_rows, expected, np.float32(0.3), size=8, workers=workers)
    assert w.to_numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_logistic_regression_converges_as_the_sequential_loop_does(rules):
    sequential, found = losses(strads.BSP(), threads=1), losses(rules)
    assert sequential[3] < 0.9 * sequential[0]
    # The mean of two replicas has moved as far as one of them: half as far as the loop over all rows.
    assert sequential[3] - 0.02 < found[3] < sequential[1] + 0.02


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
    assert np.allclose(one, losses(strads.BSP(), threads=1), rtol=1e-5)
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


def add_three(batch, w):
    for i in range(len(batch)):
        w[0] += batch[i]


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


def test_a_function_gets_the_changes_of_all_tasks_of_a_round():
    shapes = []

    def sum_of(changes):
        shapes.append(changes.shape)
        return changes.sum(axis=0)

    w = strads.dvector.zeros((4, 2, 3))
    strads.register_aggregation(w, sum_of)

    def add(batch, w):
        w[0, 0, 0] += 1

    strads.sync_for(5, add, w, batch_size=1, threads=3)
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
        strads.sync_for(data, add_three, w, batch_size=1)
    with pytest.raises(strads.ArgumentError, match="no rounds"):
        strads.sync_for(data, add_three, w, batch_size=1, consistency=strads.SSP(1))
    whole = strads.dvector.zeros(3, "i4")
    with pytest.raises(strads.ArgumentError, match="averaged"):
        strads.sync_for(data, count_words_of, whole, batch_size=1)
    strads.register_aggregation(whole, "sum")
    with pytest.raises(strads.ArgumentError, match="bound"):
        strads.sync_for(data, count_words_of, whole, batch_size=1, consistency=strads.VAP(1.0))
    assert w.to_list() == [0, 0, 0]


def count_words_of(batch, counts):
    counts[0] += len(batch)


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


@pytest.mark.parametrize("consistency", [strads.BSP(), strads.SSP(1)], ids=repr)
def test_a_body_that_raises_leaves_tables_as_they_were(consistency):
    def checks(batch, w, limit):
        w[0] += 1.0
        if w[0] > limit:
            raise ValueError("too much")

    w = strads.dvector.zeros(3)
    with pytest.raises(strads.BodyError, match="too much"):
        strads.sync_for(100, checks, w, 3.0, batch_size=5, consistency=consistency)
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
        strads.sync_for(strads.dvector([1.0]), add_three, strads.dvector.zeros(1), **options)


@pytest.mark.parametrize("data", [np.zeros(3), [1, 2], True, -1, strads.dmap([1], [1.0])])
def test_data_that_cannot_be(data):
    with pytest.raises(strads.ArgumentError, match="data"):
        strads.sync_for(data, add_three, strads.dvector.zeros(1), batch_size=1)


def test_recon_needs_rows_that_can_be_foreseen():
    def random_row(batch, w):
        w[np.random.randint(0, 3)] += 1.0  # noqa: NPY002 – compiled code has no other

    w = strads.dvector.zeros(3)
    with pytest.raises(strads.ArgumentError, match="recon=False"):
        strads.sync_for(10, random_row, w, batch_size=1, recon=True)
    strads.register_aggregation(w, "sum")
    strads.sync_for(10, random_row, w, batch_size=1)
    assert w.to_numpy().sum() == 10


def test_no_data_and_fewer_minibatches_than_threads():
    for rows in (0, 1, 2):
        for rules in RULES:
            w = strads.dvector.zeros(1)
            strads.register_aggregation(w, "sum")
            data = strads.dvector(np.ones(rows, np.float32))
            found = strads.sync_for(data, add_three, w, batch_size=1, threads=1 + rows, consistency=rules)
            assert np.isclose(w[0], rows)
            assert (found.batches, found.workers) == (rows, 1 + rows)


def test_nan_goes_where_it_would_in_the_loop_and_no_bound_holds_it():
    data = strads.dvector(np.array([1.0, np.nan], np.float32))
    w = strads.dvector.zeros(1)
    strads.sync_for(data, add_three, w, batch_size=1)
    assert np.isnan(w[0])
    w = strads.dvector.zeros(1)
    with pytest.raises(strads.BodyError, match="'w' are infinite or not a number"):
        strads.sync_for(data, add_three, w, batch_size=1, consistency=strads.VAP(1.0))
    assert w[0] == 0


@pytest.mark.parametrize("rules", [strads.BSP(), strads.Hybrid(), strads.SSP(1)], ids=repr)
def test_an_interrupt_ends_the_loop(rules):
    def long(batch, w):
        for _ in range(1000):
            w[0] = np.cos(w[0])

    w = strads.dvector.zeros(1)
    strads.sync_for(4, long, w, batch_size=1, consistency=rules)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        strads.sync_for(20_000_000, long, w, batch_size=100, consistency=rules)
    strads.sync_for(4, long, w, batch_size=1, consistency=rules)


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
