"""`sync_for` on nodes: the same bits under BSP, every consistency model, sparse exchange, failures of a node."""

import numpy as np
import pytest
from minibatch_programs import RULES, add_items, count_words, generate, logistic, relax_rows, simulate, sparse

import strads

pytestmark = [pytest.mark.nodes, pytest.mark.usefixtures("runtime")]


def largest(changes):
    return np.where(changes.max(axis=0) > -changes.min(axis=0), changes.max(axis=0), changes.min(axis=0))


@pytest.mark.parametrize("recon", [False, True])
def test_bsp_is_its_definition_to_the_last_bit(nodes, recon):
    records = sparse(203, 12)
    data, w, expected = strads.dvector(records), strads.dvector.zeros(12), np.zeros(12, np.float32)
    for _ in range(2):
        strads.sync_for(data, relax_rows, w, 0.3, batch_size=8, recon=recon, fastmath=False)
        simulate(records, relax_rows, expected, np.float32(0.3), size=8, workers=8)
    assert w.to_numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_every_model_learns(nodes, rules):
    data, w = strads.dvector(generate(600, 6)), strads.dvector.zeros(6)
    found = []
    for _ in range(5):
        loss = strads.accumulator(0.0)
        statistics = strads.sync_for(data, logistic, w, 0.5, loss, batch_size=20, consistency=rules)
        found.append(loss.value / 600)
    assert found[4] < 0.95 * found[0]
    if nodes > 1:
        profile = statistics.staleness[0]
        assert profile.counts.sum() > 0
        assert sum(statistics.bytes_sent) > 0
        if rules.in_order:
            assert profile.differentials.tolist() == [-1]
        elif isinstance(rules, strads.SSP):
            assert profile.differentials.min() >= -3


@pytest.mark.few(4)
@pytest.mark.parametrize("rules", RULES[:-1], ids=repr)
@pytest.mark.parametrize("recon", [False, True])
def test_ragged_rows_are_counted_once(rules, recon):
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 50, length).tolist() for length in rng.integers(1, 20, 77)]
    documents, counts = strads.dvector(rows), strads.dvector.zeros(50, "i8")
    strads.register_aggregation(counts, "sum")
    for epoch in range(1, 3):
        total = strads.accumulator(0)
        strads.sync_for(documents, count_words, counts, total, batch_size=5, consistency=rules, recon=recon)
        assert counts.to_numpy().tolist() == (epoch * np.bincount(np.concatenate(rows), minlength=50)).tolist()
        assert total.value == sum(map(len, rows))


def test_with_recon_only_the_rows_of_minibatches_travel(nodes):
    if nodes == 1:
        pytest.skip("nothing travels")
    data = strads.dvector(sparse(400, 5000))
    found, sent = [], []
    for recon in (False, True):
        w = strads.dvector.zeros(5000)
        statistics = strads.sync_for(data, relax_rows, w, 0.3, batch_size=20, recon=recon)
        found.append(w.to_numpy().tobytes())
        sent.append(sum(statistics.bytes_sent))
    assert found[0] == found[1]
    assert sent[1] < 0.2 * sent[0]


def test_an_aggregation_of_ones_own(nodes):
    def move(batch, w, by):
        for i in range(len(batch)):
            w[batch[i], 1] += by[batch[i]]

    numbers = np.arange(12) % 4
    by = strads.dvector(np.array([1.0, -2.0, 3.0, 0.5], np.float32))
    for recon in (False, True):
        w = strads.dvector.zeros((4, 2))
        strads.register_aggregation(w, largest)
        strads.sync_for(strads.dvector(numbers), move, w, by, batch_size=4, recon=recon, workers=nodes)
        rounds = -(-3 // nodes)  # each worker's minibatch moves every row
        assert np.array_equal(w.to_numpy()[:, 1], rounds * by.to_numpy())
        assert not w.to_numpy()[:, 0].any()


def test_after_other_loops_and_operators():
    def double(k, w):
        w[k] *= 2.0

    data = strads.dvector(sparse(300, 12)).filter(lambda r: r.row < 6)
    w, expected = strads.dvector.zeros(12), np.zeros(12)
    strads.register_aggregation(w, "sum")
    for _ in range(2):
        strads.async_for(len(w), double, w)
        strads.sync_for(data, sum_values, w, batch_size=50)
        expected = 2 * expected
        np.add.at(expected, data.to_numpy()["row"], data.to_numpy()["value"])
    assert np.allclose(w.to_numpy(), expected, atol=1e-4)
    w[0] = 7.0
    strads.sync_for(data, sum_values, w, batch_size=50, consistency=strads.ASP())
    assert np.isclose(w[0], 7 + data.to_numpy()["value"][data.to_numpy()["row"] == 0].sum(), atol=1e-4)


def sum_values(batch, w):
    for i in range(len(batch)):
        r = batch[i]
        w[r.row] += r.value


@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_a_node_that_fails_ends_all_and_changes_nothing(nodes, rules):
    def refuses(batch, w):
        for i in range(len(batch)):
            if batch[i] == 97.0:
                raise ValueError("97")
            w[0] += batch[i]

    w = strads.dvector.zeros(3)
    wrong = sparse(50, 3)
    wrong["row"][49] = 3
    with pytest.raises(strads.BodyIndexError, match=r"relax_rows|w\[r.row\]"):
        strads.sync_for(strads.dvector(wrong), relax_rows, w, 0.3, batch_size=4, consistency=rules)
    assert not w.to_numpy().any()
    with pytest.raises(strads.BodyError, match="97"):
        strads.sync_for(strads.dvector(np.arange(100, dtype=np.float32)), refuses, w, batch_size=3, consistency=rules)
    if nodes > 1 or not isinstance(rules, strads.Hybrid):
        assert not w.to_numpy().any()
    strads.sync_for(strads.dvector(sparse(50, 3)), relax_rows, w, 0.3, batch_size=4, consistency=rules)
    assert w.to_numpy().any()


def test_fewer_minibatches_than_nodes(nodes):
    for rows in range(nodes + 1):
        for rules in RULES:
            w = strads.dvector.zeros(4)
            strads.register_aggregation(w, "sum")
            records = np.zeros(rows, sparse(1, 1).dtype)
            records["value"] = 1.0
            strads.sync_for(strads.dvector(records), sum_values, w, batch_size=1, consistency=rules)
            assert np.isclose(w[0], rows)


def test_threads_are_chosen_by_init(nodes):
    if nodes > 1:
        with pytest.raises(strads.ArgumentError, match="threads=2"):
            strads.sync_for(5, count_words, strads.dvector.zeros(1, "i8"), 0, batch_size=1, threads=2)


def test_minibatches_are_not_written():
    w = strads.dvector.zeros(6)
    with pytest.raises(strads.ArgumentError, match="'w', which is the data"):
        strads.sync_for(w, add_items, w, batch_size=2)
    x = strads.dvector(np.ones(6, np.float32))
    for table in (w, strads.relaxed(w)):
        strads.sync_for(x, add_items, table, batch_size=6)
    assert w[0] == 12
