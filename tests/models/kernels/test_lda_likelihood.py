"""The likelihood of LDA against SciPy, and priors learned from counts."""

import numpy as np
import pytest
from lda_corpora import Grid, planted_corpus
from scipy.special import digamma as scipy_digamma
from scipy.special import gammaln

from strads.models.kernels.lda_counts import count_documents
from strads.models.kernels.lda_likelihood import log_documents, log_topics, log_words
from strads.models.kernels.lda_priors import (
    better_alpha,
    better_beta,
    document_prior_sums,
    word_prior_sum,
)
from strads.models.kernels.lda_tables import empty_documents, empty_words
from strads.models.kernels.lda_terms import digamma, term

BOTH = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def grid_of(sparse, corpus, topics=13, blocks=3):
    alpha = np.random.default_rng(1).gamma(1.0, 0.4, topics) + 1e-3
    grid = Grid(corpus, alpha, 0.07, sparse, blocks)
    grid.start_randomly()
    return grid


def lengths_of(grid, worker):
    return grid.corpus[grid.cuts[worker] : grid.cuts[worker + 1]].sum(axis=1)


@BOTH
def test_parts_add_up_to_the_complete_likelihood(sparse):
    corpus = planted_corpus(40, 5, 8, 60)[1]
    corpus[0, 0] += 9_000  # a count beyond the tables of small ones
    corpus[7] = 0
    grid = grid_of(sparse, corpus)
    alpha, beta, vocabulary = grid.alpha, grid.beta, corpus.shape[1]
    documents, words = grid.document_counts(), grid.word_counts()
    expected = len(corpus) * (gammaln(alpha.sum()) - gammaln(alpha).sum()) + gammaln(documents + alpha).sum()
    expected -= gammaln(documents.sum(axis=1) + alpha.sum()).sum()
    expected += len(alpha) * (gammaln(vocabulary * beta) - vocabulary * gammaln(beta)) + gammaln(words + beta).sum()
    expected -= gammaln(words.sum(axis=0) + vocabulary * beta).sum()
    found = sum(log_words(table, beta, len(alpha)) for table in grid.words) + log_topics(grid.totals, beta, vocabulary)
    found += sum(log_documents(table, lengths_of(grid, worker), alpha) for worker, table in enumerate(grid.documents))
    assert found == pytest.approx(expected, rel=1e-12)


def test_terms_agree_with_scipy():
    for prior in (1e-7, 1e-3, 0.1, 1.0, 50.0):
        assert digamma(prior) == pytest.approx(scipy_digamma(prior), rel=1e-12)
        for count in (1.0, 3.0, 1024.0, 1e6):
            assert term(count, prior, True) == pytest.approx(
                scipy_digamma(count + prior) - scipy_digamma(prior), rel=1e-11
            )
            assert term(count, prior, False) == pytest.approx(gammaln(count + prior) - gammaln(prior), rel=1e-10)


@BOTH
def test_sums_for_the_priors_are_derivatives_of_the_likelihood(sparse):
    grid = grid_of(sparse, planted_corpus(40, 5, 8, 60)[1])
    vocabulary, step = grid.corpus.shape[1], 1e-5
    lengths = lengths_of(grid, 1)
    sums, length_sum = document_prior_sums(grid.documents[1], lengths, grid.alpha)
    for topic in range(3):
        change = np.zeros(len(grid.alpha))
        change[topic] = step
        slope = log_documents(grid.documents[1], lengths, grid.alpha + change)
        slope -= log_documents(grid.documents[1], lengths, grid.alpha - change)
        assert sums[topic] - length_sum == pytest.approx(slope / (2 * step), rel=1e-5, abs=1e-4)
    slope = log_words(grid.words[0], grid.beta + step, 13) - log_words(grid.words[0], grid.beta - step, 13)
    assert word_prior_sum(grid.words[0], grid.beta, 13) == pytest.approx(slope / (2 * step), rel=1e-5)
    slope = log_topics(grid.totals, grid.beta + step, vocabulary) - log_topics(
        grid.totals, grid.beta - step, vocabulary
    )
    word_sum = sum(word_prior_sum(table, grid.beta, 13) for table in grid.words)
    total_slope = slope / (2 * step)
    expected = grid.beta * word_sum / -total_slope
    assert better_beta(grid.beta, word_sum, grid.totals, vocabulary) == pytest.approx(expected, rel=1e-5)


def documents_drawn_with(alpha, documents, length, seed=0):
    """A worker's table whose counts come from Dirichlet-multinomials with this α."""
    random = np.random.default_rng(seed)
    counts = np.stack([random.multinomial(length, random.dirichlet(alpha)) for _ in range(documents)])
    # One word for each topic: what the document has of the word has the topic.
    grid = Grid(counts, alpha, 0.1, sparse=True)
    tokens = grid.tokens[0]
    tokens.topics[:] = np.repeat(tokens.words, np.diff(tokens.run_offsets))
    count_documents(tokens, grid.documents[0])
    np.testing.assert_array_equal(grid.document_counts(), counts)
    return grid.documents[0], counts.sum(axis=1)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_planted_alpha_is_found(symmetric):
    planted = np.full(6, 0.4) if symmetric else np.array([0.05, 0.1, 0.3, 0.6, 1.0, 2.5])
    table, lengths = documents_drawn_with(planted, 4_000, 80)
    alpha = np.full(6, 1.0)
    likelihoods = []
    for _ in range(200):
        likelihoods.append(log_documents(table, lengths, alpha))
        alpha = better_alpha(alpha, *document_prior_sums(table, lengths, alpha), symmetric=symmetric)
    np.testing.assert_allclose(alpha, planted, rtol=0.12)
    assert (np.diff(likelihoods) >= -1e-9 * abs(likelihoods[0])).all()
    if symmetric:
        assert len(set(alpha)) == 1


def test_a_planted_beta_is_found():
    random = np.random.default_rng(0)
    vocabulary, topics = 300, 8
    counts = np.stack([random.multinomial(5_000, random.dirichlet(np.full(vocabulary, 0.15))) for _ in range(topics)]).T
    table = empty_words(counts.sum(axis=1), topics, sparse=False)
    table.counts[:, :topics] = counts
    beta = 1.0
    for _ in range(200):
        beta = better_beta(beta, word_prior_sum(table, beta, topics), counts.sum(axis=0), vocabulary)
    assert beta == pytest.approx(0.15, rel=0.06)


def test_without_tokens_the_priors_stay():
    table, lengths = empty_documents(np.zeros(3, int), 4, sparse=True), np.zeros(3, int)
    alpha = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(better_alpha(alpha, *document_prior_sums(table, lengths, alpha)), alpha)
    assert better_beta(0.1, 0.0, np.zeros(4, int), 10) == 0.1


def test_the_prior_of_a_topic_that_nobody_has_stays_positive():
    table, lengths = documents_drawn_with(np.array([1.0, 1.0, 1e-9]), 50, 20)
    alpha = np.ones(3)
    for _ in range(30):
        alpha = better_alpha(alpha, *document_prior_sums(table, lengths, alpha))
    assert 0 < alpha[2] < 1e-3
