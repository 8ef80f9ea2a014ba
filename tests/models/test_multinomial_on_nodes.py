"""MultinomialLogisticRegression on the nodes of every backend: the bits of a single process."""

import numpy as np
import pytest
import scipy.sparse as sp

import strads
from strads.models import MultinomialLogisticRegression
from strads.models.multinomial import row_blocks


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 40)) * (rng.random((700, 40)) < 0.7)
    Z = X[:, :4] @ rng.normal(size=(4, 9)) + rng.gumbel(size=(700, 9))
    return X, Z.argmax(1)


@pytest.mark.nodes
@pytest.mark.parametrize("penalty", ["l2", "l1", None])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_the_bits_are_those_of_a_single_process(runtime, monkeypatch, penalty, form):
    monkeypatch.setattr(row_blocks, "_MIN_WORK", 1)  # 16 blocks of rows; chosen by the driver
    X, y = data()
    model = MultinomialLogisticRegression(penalty, C=0.1)
    found = model.fit(form(X), y)
    coef, intercept, gap = found.coef_, found.intercept_, found.dual_gap_
    on_nodes = [record["objective"] for record in found.history_]
    with strads.init("threads", threads=2):
        alone = model.fit(form(X), y)
    np.testing.assert_array_equal(coef, alone.coef_)
    np.testing.assert_array_equal(intercept, alone.intercept_)
    assert (gap, on_nodes) == (alone.dual_gap_, [record["objective"] for record in alone.history_])
