"""Tables of the LDA kernels: made from a corpus, packed, and too long documents refused."""

import numpy as np
from lda_corpora import Grid, planted_corpus

from strads.models.kernels.aligned import aligned_zeros
from strads.models.kernels.lda_counts import make_tokens, random_topics
from strads.models.kernels.lda_random import job_key, uniform
from strads.models.kernels.lda_tables import DenseDocuments, empty_documents, pack_words, unpack_words


def test_tokens_come_by_block_word_and_document():
    corpus = np.random.default_rng(0).poisson(0.8, (20, 11))
    documents, words = np.nonzero(corpus)
    order = np.array([9, 6, 3, 0, 10, 7, 4, 1, 8, 5, 2])  # rows need not rise with the word
    bounds = np.array([0, 4, 8, 11])
    indptr = np.searchsorted(documents, np.arange(21))
    tokens = make_tokens(indptr, words, corpus[documents, words], 11, order, bounds)
    found = np.zeros_like(corpus)
    for block in range(3):
        runs = slice(tokens.block_runs[block], tokens.block_runs[block + 1])
        assert (np.diff(tokens.words[runs]) > 0).all()
        for run in range(runs.start, runs.stop):
            own = tokens.documents[tokens.run_offsets[run] : tokens.run_offsets[run + 1]].astype(int)
            assert len(own) > 0
            assert (np.diff(own) >= 0).all()
            word = order[bounds[block] + tokens.words[run]]
            np.add.at(found, (own, word), 1)
    np.testing.assert_array_equal(found, corpus)
    assert len(tokens.documents) == len(tokens.topics) == corpus.sum()


def test_a_corpus_without_tokens_has_no_runs():
    tokens = make_tokens(np.zeros(4, int), np.empty(0, int), np.empty(0, int), 3, np.arange(3), np.arange(4))
    np.testing.assert_array_equal(tokens.block_runs, np.zeros(4))
    np.testing.assert_array_equal(tokens.run_offsets, [0])


def test_a_packed_shard_is_as_long_as_what_is_in_use_and_comes_back():
    grid = Grid(planted_corpus(60, 5, 10, 40)[1], np.full(30, 0.1), 0.01, sparse=True)
    grid.iterate(0, fresh=True)
    before = grid.word_counts()
    sizes, topics, counts = pack_words(grid.words[0])
    assert len(topics) == len(counts) == (before > 0).sum() < grid.words[0].offsets[-1]
    grid.words[0] = unpack_words(grid.words[0].offsets, sizes, topics, counts)
    np.testing.assert_array_equal(grid.word_counts(), before)
    grid.iterate(1)
    grid.check()


def test_dense_counts_are_as_wide_as_the_longest_document_needs():
    def width(longest: int) -> int:
        table = empty_documents(np.array([3, longest]), 20, sparse=False)
        assert isinstance(table, DenseDocuments)
        return table.counts.itemsize

    assert (width(65_535), width(65_536)) == (2, 4)


def test_arrays_start_at_a_cache_line():
    arrays = [aligned_zeros((n, 16), np.float32) for n in range(1, 9)]
    assert all(array.ctypes.data % 64 == 0 and not array.any() for array in arrays)


def test_random_topics_are_uniform_and_leave_other_tokens_alone():
    tokens = make_tokens(np.array([0, 1]), np.array([0]), np.array([60_000]), 1, np.zeros(1, int), np.array([0, 1]))
    random_topics(tokens, 10_000, 60_000, 5, job_key(1, 2, 3, 4))
    assert not tokens.topics[:10_000].any()
    shares = np.bincount(tokens.topics[10_000:], minlength=5) / 50_000
    np.testing.assert_allclose(shares, 0.2, atol=0.01)


def test_jobs_that_differ_in_one_number_have_unrelated_streams():
    keys = {job_key(*numbers) for numbers in np.ndindex(3, 3, 3, 3)}
    assert len(keys) == 81
    rows = np.array([[uniform(key, count) for count in range(400)] for key in keys])
    assert rows.min() > 0
    assert rows.max() < 1
    assert abs(rows.mean() - 0.5) < 0.01
    between = np.corrcoef(rows)[np.triu_indices(81, 1)]
    assert abs(between).max() < 0.25  # 5 standard deviations of what independent rows have
