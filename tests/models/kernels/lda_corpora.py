"""A grid of workers and blocks in one thread, for the tests of the LDA kernels."""

from typing import Any

import numpy as np
from topic_tables import dense_document_counts, dense_word_counts

from strads.models.kernels.lda_counts import (
    add_to_words,
    count_documents,
    make_tokens,
    random_topics,
)
from strads.models.kernels.lda_dense_sampler import dense_scratch, sample_dense
from strads.models.kernels.lda_random import job_key
from strads.models.kernels.lda_sparse_sampler import sample_sparse, sparse_scratch
from strads.models.kernels.lda_tables import empty_documents, empty_words, make_prior


class Grid:
    """Counts (documents × words) over as many workers as blocks; word w is row w // blocks of block w % blocks."""

    def __init__(self, corpus: Any, alpha: Any, beta: float, sparse: bool, blocks: int = 1):
        corpus = np.asarray(corpus)
        self.corpus, self.topics, self.blocks = corpus, len(alpha), blocks
        self.alpha, self.beta = np.asarray(alpha, float), beta
        self.cuts = np.linspace(0, len(corpus), blocks + 1).astype(int)
        vocabulary = corpus.shape[1]
        words = np.concatenate([np.arange(b, vocabulary, blocks) for b in range(blocks)])
        bounds = np.concatenate([[0], np.cumsum([len(range(b, vocabulary, blocks)) for b in range(blocks)])])
        self.tokens, self.documents = [], []
        for first, last in zip(self.cuts[:-1], self.cuts[1:], strict=True):
            rows = corpus[first:last]
            documents, indices = np.nonzero(rows)
            indptr = np.searchsorted(documents, np.arange(last - first + 1))
            counts = rows[documents, indices]
            self.tokens.append(make_tokens(indptr, indices, counts, vocabulary, words, bounds))
            self.documents.append(empty_documents(rows.sum(axis=1), self.topics, sparse))
        frequencies = corpus.sum(axis=0)
        self.words = [empty_words(frequencies[b::blocks], self.topics, sparse) for b in range(blocks)]
        self.prior = make_prior(self.alpha, beta, corpus.shape[1])
        self.scratch = (sparse_scratch if sparse else dense_scratch)(self.topics)
        self.sample = sample_sparse if sparse else sample_dense
        self.totals = np.zeros(self.topics, np.int64)

    def start_randomly(self, seed: int = 0) -> None:
        for worker, tokens in enumerate(self.tokens):
            random_topics(tokens, 0, len(tokens.topics), self.topics, job_key(seed, 0, worker, 0))
        self.start_counts()

    def start_counts(self) -> None:
        """Fill the tables from the assignments."""
        for worker, tokens in enumerate(self.tokens):
            count_documents(tokens, self.documents[worker])
            for block in range(self.blocks):
                add_to_words(tokens, block, self.words[block], self.topics)
            self.totals += np.bincount(tokens.topics, minlength=self.topics)

    def job(self, worker: int, block: int, key: Any, fresh: bool = False) -> None:
        tables = self.tokens[worker], block, self.documents[worker], self.words[block]
        self.sample(*tables, self.totals, self.prior, self.scratch, key, fresh)

    def iterate(self, iteration: int, seed: int = 0, fresh: bool = False) -> None:
        for step in range(self.blocks):
            for worker in range(self.blocks):
                block = (worker + step) % self.blocks
                self.job(worker, block, job_key(seed, iteration, worker, block), fresh)

    def document_counts(self) -> Any:
        return np.concatenate([dense_document_counts(table, self.topics) for table in self.documents])

    def word_counts(self) -> Any:
        counts = np.empty((self.corpus.shape[1], self.topics), np.int64)
        for block, table in enumerate(self.words):
            counts[block :: self.blocks] = dense_word_counts(table, self.topics)
        return counts

    def check(self) -> None:
        """Tables agree with the assignments, one by one, and with the corpus."""
        documents, words = np.zeros_like(self.document_counts()), np.zeros_like(self.word_counts())
        for worker, tokens in enumerate(self.tokens):
            blocks = np.repeat(np.arange(self.blocks), np.diff(tokens.block_runs))
            word = np.repeat(tokens.words * self.blocks + blocks, np.diff(tokens.run_offsets))
            np.add.at(documents, (self.cuts[worker] + tokens.documents, tokens.topics), 1)
            np.add.at(words, (word, tokens.topics), 1)
        np.testing.assert_array_equal(self.document_counts(), documents)
        np.testing.assert_array_equal(self.word_counts(), words)
        np.testing.assert_array_equal(self.totals, words.sum(axis=0))
        np.testing.assert_array_equal(documents.sum(axis=1), self.corpus.sum(axis=1))
        np.testing.assert_array_equal(words.sum(axis=1), self.corpus.sum(axis=0))


def planted_corpus(documents: int, topics: int, words_per_topic: int, length: int, seed: int = 0) -> tuple[Any, Any]:
    """Topics over a shared vocabulary (K, V), and documents (counts) of few topics each."""
    random = np.random.default_rng(seed)
    vocabulary = topics * words_per_topic
    phi = np.full((topics, vocabulary), 0.1 / vocabulary)
    for topic in range(topics):
        own = slice(topic * words_per_topic, (topic + 1) * words_per_topic)
        phi[topic, own] += 0.9 * random.dirichlet(np.full(words_per_topic, 2.0))
    theta = random.dirichlet(np.full(topics, 0.1), documents)
    shares = theta @ phi
    return phi, np.stack([random.multinomial(length, row / row.sum()) for row in shares])
