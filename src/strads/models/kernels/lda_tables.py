"""Data of the LDA samplers: a worker's tokens, its documents' topic counts, and a block's word-topic counts.

All are tuples of contiguous arrays, which compiled functions accept directly. Topics are numbered 0 … K − 1, documents
from 0 within their worker, words from 0 within their block's shard. Rows of counts are padded to whole vectors.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.simd import WIDTH

MAX_TOPICS = 65_536  # a token's topic is a uint16
# Up to here `sample_dense` is the better choice. Measured with AVX-512, at 5 M tokens and 60 topics per document, the
# speeds are equal at about 450 topics; training makes documents' lists shorter, and dense tables are several times as
# large.
MAX_DENSE_TOPICS = 256


class Tokens(NamedTuple):
    """Tokens of one worker in the order (block, word, document); a *run* is its tokens of one word.

    Attributes
    ----------
    block_runs : int64 array of shape (blocks + 1,)
        Runs `block_runs[b]:block_runs[b + 1]` belong to block b.
    words : int32 array of shape (runs,)
        Row of the run's word in the shard of its block.
    run_offsets : int64 array of shape (runs + 1,)
        Tokens `run_offsets[r]:run_offsets[r + 1]` belong to run r.
    documents : int32 or uint16 array of shape (tokens,)
        Document of each token, numbered within the worker; ascending within a run.
    topics : uint16 array of shape (tokens,)
        The assignment z.
    """

    block_runs: NDArray[np.int64]
    words: NDArray[np.int32]
    run_offsets: NDArray[np.int64]
    documents: NDArray[np.integer[Any]]
    topics: NDArray[np.uint16]


class SparseDocuments(NamedTuple):
    """Nonzero topic counts n_dk of a worker's documents, in no particular order.

    Attributes
    ----------
    offsets : int64 array of shape (documents + 1,)
        Allocated places of each document: min(its tokens, K), rounded up to a multiple of 16.
    sizes : int32 array of shape (documents,)
        Number of places in use; the others are 0.
    entries : uint32 array of shape (offsets[-1],)
        `count << topic_bits | topic`: one load reads 16 topics with their counts.
    topic_bits : int
        Bits of an entry that hold the topic.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int32]
    entries: NDArray[np.uint32]
    topic_bits: int


class SparseWords(NamedTuple):
    """Nonzero word-topic counts n_wk of a block, in no particular order.

    Attributes
    ----------
    offsets : int64 array of shape (words + 1,)
        Allocated places of each word: min(its tokens in the whole corpus, K), so that no row ever outgrows them.
    sizes : int32 array of shape (words,)
        Number of places in use.
    topics : uint16 array of shape (offsets[-1],)
        Topic at each place.
    counts : int32 array of shape (offsets[-1],)
        Count n_wk of that topic.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int32]
    topics: NDArray[np.uint16]
    counts: NDArray[np.int32]


class DenseDocuments(NamedTuple):
    """Topic counts of a worker's documents: `counts` of shape (documents, K padded), uint16, or int32 for long ones."""

    counts: NDArray[np.integer[Any]]


class DenseWords(NamedTuple):
    """Word-topic counts of a block: `counts`, int32 of shape (words, K padded)."""

    counts: NDArray[np.int32]


class Prior(NamedTuple):
    """The Dirichlet priors.

    Attributes
    ----------
    alpha : float32 array of shape (K padded,)
        Prior of the documents' topics; zeros after the K-th element.
    beta : float
        Prior of the topics' words, the same for every word.
    beta_sum : float
        V·β, with V the size of the vocabulary.
    """

    alpha: NDArray[np.float32]
    beta: float
    beta_sum: float


Documents = SparseDocuments | DenseDocuments
Words = SparseWords | DenseWords


def make_prior(alpha: NDArray[Any], beta: float, vocabulary: int) -> Prior:
    """The priors in the samplers' format, from α of shape (K,)."""
    values = aligned_zeros(padded(len(alpha)), np.float32)
    values[: len(alpha)] = alpha
    return Prior(values, float(beta), float(beta) * vocabulary)


def longest_sparse_document(topics: int) -> int:
    """Largest number of tokens of a document such that any of its counts fits in an entry together with a topic."""
    return (1 << (32 - _topic_bits(topics))) - 1


def _topic_bits(topics: int) -> int:
    return max(1, (topics - 1).bit_length())


def empty_documents(lengths: NDArray[Any], topics: int, sparse: bool) -> Documents:
    """Empty tables for documents of these lengths; with sparse ones none is longer than `longest_sparse_document`."""
    if not sparse:
        dtype = np.uint16 if np.max(lengths, initial=0) < 65_536 else np.int32
        return DenseDocuments(aligned_zeros((len(lengths), padded(topics)), dtype))
    bits = _topic_bits(topics)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum((np.minimum(lengths, topics).astype(np.int64) + WIDTH - 1) // WIDTH * WIDTH, out=offsets[1:])
    return SparseDocuments(offsets, np.zeros(len(lengths), np.int32), aligned_zeros(int(offsets[-1]), np.uint32), bits)


def empty_words(frequencies: NDArray[Any], topics: int, sparse: bool) -> Words:
    """Empty tables for words with these frequencies in the whole corpus."""
    if not sparse:
        return DenseWords(aligned_zeros((len(frequencies), padded(topics)), np.int32))
    offsets = np.zeros(len(frequencies) + 1, np.int64)
    np.cumsum(np.minimum(frequencies, topics), out=offsets[1:])
    places = int(offsets[-1])
    sizes = np.zeros(len(frequencies), np.int32)
    return SparseWords(offsets, sizes, np.zeros(places, np.uint16), np.zeros(places, np.int32))


@njit(nogil=True, cache=True)
def _pack(offsets, sizes, topics, counts, packed_topics, packed_counts):  # type: ignore[no-untyped-def]
    """Copy the places in use of `SparseWords` (`offsets`, `sizes`, `topics`, `counts`), row after row.

    They go to `packed_topics` (uint16) and `packed_counts` (int32), which have no gaps.
    """
    place = 0
    for row in range(len(sizes)):
        for entry in range(offsets[row], offsets[row] + sizes[row]):
            packed_topics[place] = topics[entry]
            packed_counts[place] = counts[entry]
            place += 1


@njit(nogil=True, cache=True)
def _unpack(offsets, sizes, packed_topics, packed_counts, topics, counts):  # type: ignore[no-untyped-def]
    """Reverse `_pack`: copy `packed_topics` and `packed_counts` to the places in use of `topics` and `counts`.

    `offsets` and `sizes` say which these are.
    """
    place = 0
    for row in range(len(sizes)):
        for entry in range(offsets[row], offsets[row] + sizes[row]):
            topics[entry] = packed_topics[place]
            counts[entry] = packed_counts[place]
            place += 1


def pack_words(words: SparseWords) -> tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32]]:
    """The used part of a shard, for sending: sizes of the rows, then the concatenated topics and counts of all rows."""
    used = int(words.sizes.sum())
    topics, counts = np.empty(used, np.uint16), np.empty(used, np.int32)
    _pack(*words, topics, counts)
    return words.sizes, topics, counts


def unpack_words(
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int32],
    packed_topics: NDArray[np.uint16],
    packed_counts: NDArray[np.int32],
) -> SparseWords:
    """Restore a shard from the output of `pack_words`: `sizes`, `packed_topics` and `packed_counts`.

    `offsets`, the allocated places of each word, never change.
    """
    topics, counts = np.zeros(int(offsets[-1]), np.uint16), np.zeros(int(offsets[-1]), np.int32)
    _unpack(offsets, sizes, packed_topics, packed_counts, topics, counts)
    return SparseWords(offsets, sizes, topics, counts)
