"""Both samplers draw from the exact conditional, and keep their tables in order."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lda_corpora import Grid, planted_corpus
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import chisquare

from strads.models.kernels.lda_random import job_key

BOTH = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def assert_drawn_from(observed: Any, probabilities: Any) -> None:
    """Chi-square, what is rare put together; the seed is fixed, so this either always holds or never."""
    draws = observed.sum()
    assert not observed[probabilities == 0].any()
    rare = probabilities * draws < 8
    expected = np.append(probabilities[~rare], probabilities[rare].sum()) * draws
    seen = np.append(observed[~rare], observed[rare].sum())
    seen, expected = seen[expected > 0], expected[expected > 0]
    assert chisquare(seen, expected).pvalue > 1e-3


def assert_states_drawn_from(observed: Any, probabilities: Any) -> None:
    """The mean squared deviation is that of independent draws, 1; those that are nearly so may be a little above."""
    common = probabilities * observed.sum() >= 20
    expected = probabilities[common] * observed.sum()
    assert common.sum() > 50
    assert ((observed[common] - expected) ** 2 / expected).mean() < 1.3


def one_token_of_many(topics: int, sparse: bool, symmetric: bool) -> Grid:
    """Two workers; the first has a single token in block 1, of a word that the second has 150 times."""
    random = np.random.default_rng(topics + symmetric)
    corpus = np.zeros((6, 12), int)
    corpus[:, ::2] = random.integers(1, 40, (6, 6))
    corpus[1, 3] = 1
    corpus[3:, 3] = 50
    alpha = np.full(topics, 0.3) if symmetric else random.gamma(0.3, 1.0, topics) + 1e-3
    grid = Grid(corpus, alpha, 0.05, sparse, blocks=2)
    grid.start_randomly(seed=3)
    return grid


@BOTH
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("topics", [2, 16, 37, 700])
def test_a_token_is_drawn_from_its_conditional(topics, symmetric, sparse):
    grid = one_token_of_many(topics, sparse, symmetric)
    tokens = grid.tokens[0]
    token = tokens.run_offsets[tokens.block_runs[1]]
    assert tokens.run_offsets[-1] == token + 1
    held = tokens.topics[token]
    document, word, totals = grid.document_counts()[1], grid.word_counts()[3], grid.totals.copy()
    for counts in (document, word, totals):
        counts[held] -= 1
    weights = (document + grid.alpha) * (word + grid.beta) / (totals + 12 * grid.beta)
    observed = np.zeros(topics, int)
    for draw in range(20_000):
        grid.job(0, 1, job_key(5, draw, 0, 1))
        observed[tokens.topics[token]] += 1
    assert_drawn_from(observed, weights / weights.sum())
    grid.check()


@BOTH
@pytest.mark.parametrize("topics", [3, 40])
def test_a_token_without_a_topic_is_drawn_given_those_before_it(topics, sparse):
    grid = one_token_of_many(topics, sparse, symmetric=False)
    empty = Grid(grid.corpus, grid.alpha, grid.beta, sparse, blocks=2)
    empty.job(1, 1, job_key(0, 0, 0, 0), fresh=True)
    empty.job(0, 0, job_key(0, 0, 0, 1), fresh=True)
    weights = (empty.document_counts()[1] + grid.alpha) * (empty.word_counts()[3] + grid.beta)
    weights /= empty.totals + 12 * grid.beta
    observed = np.zeros(topics, int)
    saved = copy.deepcopy((empty.documents[0], empty.words[1], empty.totals))
    for draw in range(8_000):
        empty.documents[0], empty.words[1], empty.totals = copy.deepcopy(saved)
        empty.job(0, 1, job_key(9, draw, 0, 1), fresh=True)
        observed[empty.tokens[0].topics[-1]] += 1
    assert_drawn_from(observed, weights / weights.sum())


@BOTH
def test_the_chain_has_the_exact_posterior(sparse):
    """All 3⁶ assignments of six tokens, by how often the chain is in each: nothing that is carried along may be off."""
    corpus = [[2, 1, 0], [1, 1, 1]]
    alpha, beta = np.array([0.2, 0.5, 1.5]), 0.4
    grid = Grid(corpus, alpha, beta, sparse)
    grid.start_randomly()
    tokens = grid.tokens[0]
    word = np.repeat(tokens.words, np.diff(tokens.run_offsets))
    states = np.array(list(itertools.product(range(3), repeat=6)))
    logs = np.empty(len(states))
    for number, state in enumerate(states):
        documents, words = np.zeros((2, 3)), np.zeros((3, 3))
        np.add.at(documents, (tokens.documents, state), 1)
        np.add.at(words, (word, state), 1)
        logs[number] = gammaln(documents + alpha).sum() + gammaln(words + beta).sum()
        logs[number] -= gammaln(words.sum(axis=0) + 3 * beta).sum()
    probabilities = np.exp(logs - logs.max())
    probabilities /= probabilities.sum()
    observed = np.zeros(len(states), int)
    place = 3 ** np.arange(5, -1, -1)
    for iteration in range(120_000):
        grid.iterate(iteration)
        if iteration % 2 == 0:  # draws in a row are not independent
            observed[tokens.topics @ place] += 1
    assert_states_drawn_from(observed, probabilities)


@BOTH
def test_words_of_one_job_do_not_disturb_one_another(sparse):
    """Three words, each at home in other topics: all 40³ assignments of a token of each, topics of three buckets."""
    topics, beta = 40, 0.01
    alpha = np.where(np.isin(np.arange(topics), (2, 7, 20, 30, 39)), 2.0, 0.01)
    grid = Grid([[1, 1, 1], [30, 30, 30]], alpha, beta, sparse)
    tokens = grid.tokens[0]
    home = np.array([[2, 7], [7, 20], [20, 39]])
    for word in range(3):
        own = slice(tokens.run_offsets[word], tokens.run_offsets[word + 1])
        tokens.topics[own] = np.resize(home[word], 31)
    grid.start_counts()
    fixed_words, fixed_totals = grid.word_counts(), grid.totals.copy()
    first = tokens.run_offsets[:-1]
    for word in range(3):
        fixed_words[word, tokens.topics[first[word]]] -= 1
        fixed_totals[tokens.topics[first[word]]] -= 1
    only = tokens._replace(run_offsets=np.arange(4), documents=tokens.documents[first], topics=tokens.topics[first])
    grid.tokens[0] = only
    states = np.array(list(itertools.product(range(topics), repeat=3)))
    document = (states[:, :, None] == np.arange(topics)).sum(axis=1)
    logs = gammaln(document + alpha).sum(axis=1) - gammaln(fixed_totals + document + 3 * beta).sum(axis=1)
    logs += np.log(fixed_words[np.arange(3), states] + beta).sum(axis=1)
    probabilities = np.exp(logs - logs.max())
    observed = np.zeros(len(states), int)
    for iteration in range(120_000):
        grid.iterate(iteration)
        if iteration % 2 == 0:
            observed[only.topics @ np.array([topics**2, topics, 1])] += 1
    assert_states_drawn_from(observed, probabilities / probabilities.sum())


@BOTH
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_counts_are_conserved(sparse, data):
    blocks, topics = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40))
    shape = data.draw(st.integers(blocks, 7)), data.draw(st.integers(blocks, 9))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    corpus = random.poisson(data.draw(st.sampled_from([0.2, 1.0, 6.0])), shape)
    grid = Grid(corpus, random.gamma(1.0, 0.5, topics) + 1e-4, 0.1, sparse, blocks)
    if data.draw(st.booleans()):
        grid.start_randomly()
    else:
        grid.iterate(0, fresh=True)
    grid.check()
    for iteration in range(1, 4):
        grid.iterate(iteration)
        grid.check()


@BOTH
def test_the_same_key_gives_the_same_bits(sparse):
    _, corpus = planted_corpus(30, 4, 10, 50)
    results = []
    for seed in (1, 1, 2):
        grid = Grid(corpus, np.full(20, 0.1), 0.01, sparse, blocks=3)
        for iteration in range(3):
            grid.iterate(iteration, seed=seed, fresh=iteration == 0)
        results.append(np.concatenate([tokens.topics for tokens in grid.tokens]))
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


@BOTH
@pytest.mark.parametrize("fresh", [True, False], ids=["sequential start", "random start"])
def test_planted_topics_are_found(sparse, fresh):
    phi, corpus = planted_corpus(400, 8, 25, 100)
    grid = Grid(corpus, np.full(8, 0.1), 0.05, sparse, blocks=2)
    if not fresh:
        grid.start_randomly(seed=2)
    for iteration in range(150):
        grid.iterate(iteration, seed=4, fresh=fresh and iteration == 0)
    found = (grid.word_counts() + grid.beta).T.astype(float)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    cosines = found @ (phi / np.linalg.norm(phi, axis=1, keepdims=True)).T
    assert cosines[linear_sum_assignment(-cosines)].min() > 0.95


@BOTH
def test_a_block_without_a_token_is_left_alone(sparse):
    grid = Grid([[3, 0, 2, 0], [1, 0, 1, 0]], np.full(3, 0.5), 0.1, sparse, blocks=2)
    grid.start_randomly()
    before = grid.tokens[0].topics.copy()
    grid.job(0, 1, job_key(0, 0, 0, 0))
    np.testing.assert_array_equal(grid.tokens[0].topics, before)
    grid.check()


def test_a_sparse_document_may_have_more_tokens_than_a_uint16_holds():
    grid = Grid([[70_000, 3, 60_000]], np.full(20, 0.5), 0.1, sparse=True)
    grid.start_randomly()
    grid.iterate(0)
    grid.check()
