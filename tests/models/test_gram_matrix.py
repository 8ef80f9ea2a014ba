"""The growing Gram matrix: the products of any columns in any order, centred, however the work is split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.models.regression import gram_matrix
from strads.models.regression.gram_matrix import GramMatrix


@given(
    seed=st.integers(0, 2**32 - 1),
    requests=st.lists(st.sets(st.integers(0, 11)).map(sorted), max_size=5),
    centred=st.booleans(),
)
def test_products_of_all_that_was_ever_asked_for(seed, requests, centred):
    rng = np.random.default_rng(seed)
    X, e = np.asfortranarray(rng.normal(size=(5, 12))), rng.uniform(0.5, 2, 5) * centred
    means, total = X.T @ e, float(e @ e) if centred else 1.0
    matrix = GramMatrix(X, means, total)
    for request in requests:
        columns = rng.permutation(np.array(request, np.int64))
        centre = np.outer(means[columns], means[columns]) / total
        np.testing.assert_allclose(matrix.among(columns), X[:, columns].T @ X[:, columns] - centre, atol=1e-12)


def test_a_copy_is_handed_out():
    matrix = GramMatrix(np.eye(3, order="F"), np.zeros(3), 1.0)
    columns = np.arange(3)
    matrix.among(columns)[:] = 7.0
    np.testing.assert_array_equal(matrix.among(columns), np.eye(3))


@pytest.mark.parametrize("at_a_time", [1, 25, 1 << 21])
def test_threads_share_the_work(monkeypatch, at_a_time):
    monkeypatch.setattr(gram_matrix, "_PARALLEL", 1)
    monkeypatch.setattr(gram_matrix, "_AT_A_TIME", at_a_time)
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(6, 20)))
    matrix = GramMatrix(X, X.sum(axis=0), 6.0)
    matrix.among(np.arange(0, 20, 3))
    np.testing.assert_allclose(matrix.among(np.arange(20)), 6 * np.cov(X.T, bias=True), atol=1e-12)
