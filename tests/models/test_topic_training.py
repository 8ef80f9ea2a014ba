"""Training of LDA: counts are conserved, and the same on any number of nodes and threads."""

import numpy as np
import pytest
from planted import planted_documents
from topic_tables import dense_document_counts, dense_word_counts

import strads
from strads.cluster.messages import decode, encode
from strads.models.corpora.corpus import as_corpus
from strads.models.kernels.lda_tables import empty_words
from strads.models.topics.priors import Priors
from strads.models.topics.program import WordBlock
from strads.models.topics.training import TopicTraining

SAMPLERS = ["dense", "sparse"]


@pytest.fixture(scope="module")
def corpus():
    """A few hundred short documents, some of them empty, and words that never occur."""
    counts = planted_documents(300, 120, 6, 25)[0].tolil()
    counts[[0, 100, 299]] = 0
    counts[:, [3, 50]] = 0
    return as_corpus(counts.tocsr())


def start(corpus, sampler, **options):
    given = {"start": "sequential", "workers": 8, "synchronizations": 2, "seed": 3, "threads": None} | options
    return TopicTraining(corpus, Priors(np.full(6, 0.2), 0.05), sampler=sampler, **given)


def state(training):
    """Everything that was drawn, as bytes and numbers."""
    topics = b"".join(part.tokens.topics.tobytes() for part in training.parts())
    counts = training.counts()
    return topics, counts.by_word.toarray().tolist(), training.log_likelihood(), training.s_error


@pytest.fixture(scope="module")
def on_one_thread(corpus):
    found = {}
    for sampler in SAMPLERS:
        with strads.init("threads", threads=1), start(corpus, sampler) as training:
            for _ in range(3):
                training.iterate()
            found[sampler] = state(training)
    return found


@pytest.mark.nodes
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_topics_on_any_nodes(runtime, corpus, on_one_thread, sampler):
    with start(corpus, sampler) as training:
        for _ in range(3):
            training.iterate()
        assert state(training) == on_one_thread[sampler]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_topics_on_any_threads(corpus, on_one_thread, sampler):
    with start(corpus, sampler, threads=3) as training:
        for _ in range(3):
            training.iterate()
        assert state(training) == on_one_thread[sampler]


@pytest.mark.nodes
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("first", ["sequential", "random"])
def test_counts_are_conserved_after_every_iteration(runtime, corpus, sampler, first):
    by_word = np.bincount(corpus.words, corpus.counts, corpus.n_words).astype(int)
    with start(corpus, sampler, start=first) as training:
        for _ in range(4):
            check_counts(training, corpus, by_word)
            training.iterate()
        check_counts(training, corpus, by_word)


def check_counts(training, corpus, by_word):
    """All three tables count the topics that the tokens have."""
    counts, parts = training.counts(), training.parts()
    np.testing.assert_array_equal(counts.by_word.sum(1), by_word)
    drawn = np.bincount(np.concatenate([part.tokens.topics for part in parts]), minlength=6)
    np.testing.assert_array_equal(counts.totals, drawn)
    np.testing.assert_array_equal(training.totals(), drawn)
    assert sum(len(part.tokens.topics) for part in parts) == corpus.n_tokens
    for part in parts:
        expected = np.zeros((len(part.lengths), 6), int)
        np.add.at(expected, (part.tokens.documents, part.tokens.topics), 1)
        np.testing.assert_array_equal(dense_document_counts(part.documents, 6), expected)
        np.testing.assert_array_equal(expected.sum(1), part.lengths)


def test_the_s_error_is_what_the_formula_says(corpus):
    with start(corpus, "dense", workers=4, synchronizations=1) as training:
        training.iterate()
        before = training.totals()
        training.iterate()
        views, after = [part.totals for part in training.parts()], training.totals()
        expected = np.mean([np.abs(view - after).sum() for view in views]) / corpus.n_tokens
        assert training.s_error == pytest.approx(expected)
        assert not np.array_equal(before, after)


def test_more_synchronizations_lower_the_s_error(corpus):
    errors = []
    for synchronizations in (1, 8):
        with start(corpus, "dense", synchronizations=synchronizations) as training:
            errors.append(np.mean([training.iterate() and training.s_error for _ in range(5)]))
    assert errors[1] < 0.6 * errors[0]


def test_what_travels_of_a_block_is_what_is_in_use():
    frequencies = np.full(100, 40)
    block = WordBlock(empty_words(frequencies, 50, sparse=True))
    words = block.words
    words.sizes[:] = np.arange(100) % 5
    words.topics[:], words.counts[:] = np.arange(4000) % 50, 7
    message = encode(block)
    assert message.nbytes < words.sizes.sum() * 6 + 100 * 8 + 500 < words.topics.nbytes + words.counts.nbytes
    back = decode(message.copy()).words
    np.testing.assert_array_equal(dense_word_counts(back, 50), dense_word_counts(words, 50))
    np.testing.assert_array_equal(back.offsets, words.offsets)
