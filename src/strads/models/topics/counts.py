"""The word-topic counts of a trained model, and quantities derived from them."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.models.kernels.lda_tables import SparseWords, Words, pack_words

Rows = tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32]]  # sizes of rows, then topics and counts


class TopicCounts:
    """The count of each topic for each word.

    Parameters
    ----------
    by_word : scipy.sparse.csr_array of shape (n_words, K), int32
        n_wk.

    Attributes
    ----------
    totals : int64 ndarray of shape (K,)
        n_k, the sums over all words.

    Raises
    ------
    ValueError
        If a count is negative.
    """

    def __init__(self, by_word: scipy.sparse.csr_array):
        if len(by_word.data) and by_word.data.min() < 0:
            raise ValueError("a count is negative")
        self.by_word = by_word
        self.totals: NDArray[np.int64] = np.bincount(by_word.indices, by_word.data, by_word.shape[1]).astype(np.int64)

    @classmethod
    def none(cls, topics: int) -> "TopicCounts":
        """Return the counts of no words."""
        return cls(scipy.sparse.csr_array((0, topics), dtype=np.int32))

    @classmethod
    def from_blocks(
        cls, words: Sequence[NDArray[np.int32]], blocks: Sequence[Rows], n_words: int, topics: int
    ) -> "TopicCounts":
        """Combine the rows of blocks in the order of word numbers.

        Parameters
        ----------
        words
            Word of each row of each block.
        blocks
            The output of `rows_of` for each block.
        n_words, topics
            The shape.
        """
        order = np.concatenate(words) if words else np.zeros(0, np.int32)
        sizes, found, counts = (np.concatenate([rows[part] for rows in blocks]) for part in range(3))
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        matrix = scipy.sparse.csr_array((counts, found.astype(np.int32), offsets), shape=(len(order), topics))
        by_word = matrix[np.argsort(order)]  # the words that occur; all others have empty rows
        by_word.sort_indices()
        all_offsets = np.zeros(n_words + 1, np.int64)
        all_offsets[1 + order] = sizes
        np.cumsum(all_offsets, out=all_offsets)
        return cls(scipy.sparse.csr_array((by_word.data, by_word.indices, all_offsets), shape=(n_words, topics)))

    def top_words(self, n: int) -> list[NDArray[np.int64]]:
        """Return the numbers of the n most frequent words of each topic, most frequent first."""
        by_topic = self.by_word.tocsc()
        best = []
        for topic in range(by_topic.shape[1]):
            column = slice(by_topic.indptr[topic], by_topic.indptr[topic + 1])
            order = np.argsort(-by_topic.data[column], kind="stable")[:n]
            best.append(by_topic.indices[column][order].astype(np.int64))
        return best

    def rows_of(self, words: NDArray[np.integer]) -> SparseWords:
        """Return the counts of the given words, in the kernels' format."""
        rows = self.by_word[words]
        offsets = rows.indptr.astype(np.int64)
        return SparseWords(offsets, np.diff(offsets).astype(np.int32), rows.indices.astype(np.uint16), rows.data)


def rows_of(words: Words, topics: int) -> Rows:
    """Return the nonzero part of a block's table: sizes of its rows, then their concatenated topics and counts."""
    if isinstance(words, SparseWords):
        return pack_words(words)
    counts = words.counts[:, :topics]
    rows, found = np.nonzero(counts)
    sizes = np.bincount(rows, minlength=len(counts)).astype(np.int32)
    return sizes, found.astype(np.uint16), counts[rows, found]
