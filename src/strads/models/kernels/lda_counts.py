"""From a corpus to the tokens of a worker, and from assignments to counts."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels.lda_random import random_bits
from strads.models.kernels.lda_tables import (
    Documents,
    SparseDocuments,
    SparseWords,
    Tokens,
    Words,
)


@njit(nogil=True, cache=True)
def _place_tokens(indptr, indices, counts, ranks, places, documents):  # type: ignore[no-untyped-def]
    """Sort the tokens of documents by word: write the document of each to `documents`.

    `indptr`, `indices` and `counts` are as in `make_tokens`. `ranks[w]` is the position of word w in the order of
    blocks and rows, and `places[rank]` (int64) where the next token of that word goes; it is moved on.
    """
    for document in range(len(indptr) - 1):
        for i in range(indptr[document], indptr[document + 1]):
            rank = ranks[indices[i]]
            for _ in range(counts[i]):
                documents[places[rank]] = document
                places[rank] += 1


def make_tokens(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    counts: NDArray[Any],
    vocabulary: int,
    words: NDArray[Any],
    block_bounds: NDArray[Any],
) -> Tokens:
    """Tokens of one worker from its documents in the form of a CSR matrix (documents × words); topics are all 0.

    Parameters
    ----------
    indptr : integer array of shape (documents + 1,)
        Entries `indptr[d]:indptr[d + 1]` belong to document d; the first offset is 0.
    indices, counts : integer arrays of shape (entries,)
        Words, numbered over the whole vocabulary, and their counts in the document.
    vocabulary : int
        V.
    words : integer array
        All words that occur, in the order of blocks and, within a block, of rows.
    block_bounds : integer array of shape (blocks + 1,)
        Words `words[block_bounds[b]:block_bounds[b + 1]]` are the rows of block b.
    """
    ranks = np.full(vocabulary, -1, np.int64)
    ranks[words] = np.arange(len(words))
    sizes = np.bincount(ranks[indices], counts, len(words)).astype(np.int64)
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    small = len(indptr) - 1 <= 65_536
    documents: NDArray[Any] = np.empty(int(offsets[-1]), np.uint16 if small else np.int32)
    _place_tokens(indptr, indices, counts, ranks, offsets[:-1].copy(), documents)
    present = np.flatnonzero(sizes)
    block_runs = np.searchsorted(present, block_bounds).astype(np.int64)
    rows = present - np.repeat(np.asarray(block_bounds[:-1]), np.diff(block_runs))
    return Tokens(
        block_runs,
        rows.astype(np.int32),
        np.append(offsets[:-1][present], offsets[-1]),
        documents,
        np.zeros(len(documents), np.uint16),
    )


@njit(nogil=True, cache=True)
def random_topics(tokens, first, last, topics, key):  # type: ignore[no-untyped-def]
    """Assign uniform topics 0 … `topics` - 1 to the tokens `first … last - 1` of a worker; counts do not change."""
    for token in range(first, last):
        bits = random_bits(key, token) >> np.uint64(32)
        tokens.topics[token] = (bits * np.uint64(topics)) >> np.uint64(32)


@njit(nogil=True, cache=True)
def _count_dense_documents(tokens, counts):  # type: ignore[no-untyped-def]
    counts[:] = 0
    for token in range(len(tokens.topics)):
        counts[tokens.documents[token], tokens.topics[token]] += 1


@njit(nogil=True, cache=True)
def _count_sparse_documents(tokens, documents):  # type: ignore[no-untyped-def]
    documents.sizes[:] = 0
    documents.entries[:] = 0
    mask = np.uint32((1 << documents.topic_bits) - 1)
    one = np.uint32(1) << np.uint32(documents.topic_bits)
    for token in range(len(tokens.topics)):
        document, topic = tokens.documents[token], np.uint32(tokens.topics[token])
        first = documents.offsets[document]
        place, end = first, first + documents.sizes[document]
        while place < end and documents.entries[place] & mask != topic:
            place += 1
        if place == end:
            documents.entries[place] = topic
            documents.sizes[document] += 1
        documents.entries[place] += one


def count_documents(tokens: Tokens, documents: Documents) -> None:
    """Recompute a worker's tables from the topics of its tokens."""
    if isinstance(documents, SparseDocuments):
        _count_sparse_documents(tokens, documents)
    else:
        _count_dense_documents(tokens, documents.counts)


@njit(nogil=True, cache=True)
def _add_words_dense(tokens, block, counts):  # type: ignore[no-untyped-def]
    for run in range(tokens.block_runs[block], tokens.block_runs[block + 1]):
        for token in range(tokens.run_offsets[run], tokens.run_offsets[run + 1]):
            counts[tokens.words[run], tokens.topics[token]] += 1


@njit(nogil=True, cache=True)
def _add_words_sparse(tokens, block, words, dense):  # type: ignore[no-untyped-def]
    """Add the topics of the `tokens` in `block` to `words`, the `SparseWords` of the block.

    `dense` is scratch memory, int32 of shape (K,), all zeros before and after.
    """
    for run in range(tokens.block_runs[block], tokens.block_runs[block + 1]):
        row = tokens.words[run]
        first = words.offsets[row]
        end = first + words.sizes[row]
        for entry in range(first, end):
            dense[words.topics[entry]] = words.counts[entry]
        for token in range(tokens.run_offsets[run], tokens.run_offsets[run + 1]):
            topic = tokens.topics[token]
            if dense[topic] == 0:
                words.topics[end] = topic
                end += 1
            dense[topic] += 1
        for entry in range(first, end):
            words.counts[entry] = dense[words.topics[entry]]
            dense[words.topics[entry]] = 0
        words.sizes[row] = end - first


def add_to_words(tokens: Tokens, block: int, words: Words, topics: int) -> None:
    """Add a worker's tokens in a block to the counts of the block's shard."""
    if isinstance(words, SparseWords):
        _add_words_sparse(tokens, block, words, np.zeros(topics, np.int32))
    else:
        _add_words_dense(tokens, block, words.counts)
