"""Topic shares of unseen documents."""

import itertools

import numpy as np
import pytest
from lda_corpora import Grid, planted_corpus
from scipy.special import gammaln

from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.lda_inference import fill_phi, infer_documents
from strads.models.kernels.lda_random import job_key
from strads.models.kernels.lda_tables import make_prior

KEY = job_key(7, 0, 0, 0)


def csr(corpus):
    documents, words = np.nonzero(corpus)
    return np.searchsorted(documents, np.arange(len(corpus) + 1)), words, corpus[documents, words], words


def padded_phi(phi):
    table = aligned_zeros((phi.shape[1], padded(phi.shape[0])), np.float32)
    table[:, : len(phi)] = phi.T
    return table


def test_phi_comes_from_the_counts():
    grid = Grid(planted_corpus(30, 3, 7, 40)[1], np.full(5, 0.2), 0.03, sparse=True, blocks=2)
    grid.start_randomly()
    phi = aligned_zeros((21, 16), np.float32)
    for block, table in enumerate(grid.words):
        fill_phi(table, grid.totals, grid.prior, np.arange(block, 21, 2), phi)
    expected = (grid.word_counts() + 0.03) / (grid.totals + 21 * 0.03)
    np.testing.assert_allclose(phi[:, :5], expected, rtol=1e-6)
    assert not phi[:, 5:].any()
    np.testing.assert_allclose(phi[:, :5].sum(axis=0), 1, rtol=1e-5)


def test_the_mean_is_that_of_the_exact_posterior():
    """Over all 3⁵ assignments of a document of five tokens."""
    phi = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
    alpha = np.array([0.2, 0.7, 0.4])
    corpus = np.array([[2, 1, 2], [0, 0, 0]])
    words = np.repeat([0, 1, 2], corpus[0])
    mean, mass = np.zeros(3), 0.0
    for state in itertools.product(range(3), repeat=5):
        counts = np.bincount(state, minlength=3)
        weight = np.exp(gammaln(counts + alpha).sum()) * np.prod(phi[list(state), words])
        mean += weight * (counts + alpha) / (5 + alpha.sum())
        mass += weight
    theta = np.empty((2, 3))
    arguments = (padded_phi(phi), make_prior(alpha, 0.1, 3), 60_000, 10, KEY)
    infer_documents(*csr(corpus), 0, 2, *arguments, theta)
    np.testing.assert_allclose(theta[0], mean / mass, atol=0.006)
    np.testing.assert_allclose(theta[1], alpha / alpha.sum(), rtol=1e-6)


def test_any_split_of_the_documents_gives_the_same_bits():
    phi, corpus = planted_corpus(40, 6, 10, 50)
    arguments = (padded_phi(phi), make_prior(np.full(6, 0.1), 0.1, corpus.shape[1]), 20, 5, KEY)
    whole, parts = np.empty((40, 6), np.float32), np.empty((40, 6), np.float32)
    infer_documents(*csr(corpus), 0, 40, *arguments, whole)
    for first, last in ((13, 40), (0, 13)):
        infer_documents(*csr(corpus), first, last, *arguments, parts)
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_allclose(whole.sum(axis=1), 1, rtol=1e-5)


def test_planted_shares_are_found():
    phi, _ = planted_corpus(1, 40, 20, 10)
    random = np.random.default_rng(5)
    theta = random.dirichlet(np.full(40, 0.05), 50)
    corpus = np.stack([random.multinomial(600, row / row.sum()) for row in theta @ phi])
    found = np.empty((50, 40))
    prior = make_prior(np.full(40, 0.05), 0.1, corpus.shape[1])
    infer_documents(*csr(corpus), 0, 50, padded_phi(phi), prior, 40, 20, KEY, found)
    assert abs(found - theta).sum(axis=1).mean() < 0.12


def test_a_mean_over_no_sweep_is_refused():
    with pytest.raises(ValueError, match="burn_in"):
        infer_documents(*csr(np.ones((1, 2), int)), 0, 1, padded_phi(np.ones((2, 2))), None, 5, 5, KEY, None)
