"""What the samplers' tables of LDA hold, as full arrays."""

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.lda_tables import DenseDocuments, DenseWords, Documents, Words


def dense_document_counts(documents: Documents, topics: int) -> NDArray[np.int64]:
    """n_dk as an array of shape (documents, K)."""
    if isinstance(documents, DenseDocuments):
        return documents.counts[:, :topics].astype(np.int64)
    counts = np.zeros((len(documents.sizes), topics), np.int64)
    rows = np.repeat(np.arange(len(documents.sizes)), np.diff(documents.offsets))
    np.add.at(
        counts, (rows, documents.entries & ((1 << documents.topic_bits) - 1)), documents.entries >> documents.topic_bits
    )
    return counts


def dense_word_counts(words: Words, topics: int) -> NDArray[np.int64]:
    """n_wk as an array of shape (words of the shard, K)."""
    if isinstance(words, DenseWords):
        return words.counts[:, :topics].astype(np.int64)
    counts = np.zeros((len(words.sizes), topics), np.int64)
    for row, size in enumerate(words.sizes):
        used = slice(words.offsets[row], words.offsets[row] + size)
        counts[row, words.topics[used]] = words.counts[used]
    return counts
