"""Partitions a corpus into a grid: documents over workers, words over rotating blocks (thesis algorithm 5)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.models.corpora.corpus import Corpus
from strads.models.corpora.counts import tokens_of_documents
from strads.models.kernels.lda_counts import make_tokens
from strads.models.kernels.lda_tables import Tokens
from strads.schedule.kernels.packing import pack


@dataclass(frozen=True)
class TokenGrid:
    """The worker of each document, and the block and row of each word that occurs.

    Attributes
    ----------
    bounds : int64 ndarray of shape (workers + 1,)
        Worker p has the documents `bounds[p]..bounds[p + 1] - 1`.
    words : int32 ndarray of shape (words that occur,)
        Word numbers in the order of blocks and, within a block, of rows, frequent words first.
    block_bounds : int64 ndarray of shape (blocks + 1,)
        Block b has the words `words[block_bounds[b]:block_bounds[b + 1]]`.
    word_tokens : int64 ndarray of shape (n_words,)
        Number of tokens of each word, by word number.
    """

    bounds: NDArray[np.int64]
    words: NDArray[np.int32]
    block_bounds: NDArray[np.int64]
    word_tokens: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus, workers: int, blocks: int | None = None) -> Self:
        """Cut a corpus into one part of equal tokens per worker, and its words into blocks, by default as many."""
        blocks = workers if blocks is None else blocks
        before = np.concatenate([[0], np.cumsum(corpus.lengths)])
        shares = np.linspace(0, before[-1], workers + 1)[1:-1]
        bounds = np.concatenate([[0], np.searchsorted(before, shares), [len(corpus)]]).astype(np.int64)
        word_tokens = np.bincount(corpus.words, corpus.counts, corpus.n_words).astype(np.int64)
        present = np.flatnonzero(word_tokens)
        block_of, _ = pack(word_tokens[present], blocks)
        order = np.lexsort((-word_tokens[present], block_of))
        block_bounds = np.searchsorted(block_of[order], np.arange(blocks + 1)).astype(np.int64)
        return cls(bounds, present[order].astype(np.int32), block_bounds, word_tokens)

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.bounds) - 1

    def words_of(self, block: int) -> NDArray[np.int32]:
        """Return the word of each row of a block."""
        return self.words[self.block_bounds[block] : self.block_bounds[block + 1]]


def tokens_of(corpus: Corpus, grid: TokenGrid, worker: int) -> tuple[Tokens, NDArray[np.int64]]:
    """Return a worker's tokens in sampling order, all with topic 0, and the lengths of its documents."""
    low, high = grid.bounds[worker : worker + 2]
    entries = slice(corpus.offsets[low], corpus.offsets[high])
    offsets = corpus.offsets[low : high + 1] - corpus.offsets[low]
    entry_words, counts = corpus.words[entries], corpus.counts[entries]
    tokens = make_tokens(offsets, entry_words, counts, corpus.n_words, grid.words, grid.block_bounds)
    return tokens, tokens_of_documents(counts, offsets)
