"""Coherence of topics: whether their best words occur in the same documents."""

from itertools import pairwise

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.models.corpora.corpus import Corpus


def npmi_coherence(best: list[NDArray[np.integer]], corpus: Corpus) -> NDArray[np.float64]:
    """Mean normalized pointwise mutual information of the pairs of each topic's words (Bouma 2009; Röder et al. 2015).

    NPMI(v, w) = ln(p(v, w) / (p(v) p(w))) / −ln p(v, w), with p the shares of documents that have the word or both
    words; −1 for two words that are in no document together, 1 for two that are in the same ones. In all documents
    both would be 0/0: 1 then, too.

    Parameters
    ----------
    best : list of integer ndarrays
        Words of each topic, numbers in the corpus.

    Returns
    -------
    ndarray of shape (topics,)
        NaN for topics of fewer than two words that occur.
    """
    ones = np.ones(len(corpus.words), np.int32)
    documents = scipy.sparse.csr_array((ones, corpus.words, corpus.offsets), shape=(len(corpus), corpus.n_words))
    chosen = np.unique(np.concatenate(best))
    columns = documents.tocsc()[:, chosen]
    joint = (columns.T @ columns).tocsr()
    ends = np.concatenate([[0], np.cumsum([len(words) for words in best])])
    places = np.searchsorted(chosen, np.concatenate(best))
    return np.array([_mean_npmi(joint[places[a:b]][:, places[a:b]].toarray() / len(corpus)) for a, b in pairwise(ends)])


def _mean_npmi(joint: NDArray[np.float64]) -> float:
    """Return the mean over pairs of words, given the shares of documents that have both."""
    occurs = np.diag(joint) > 0
    joint = joint[occurs][:, occurs]
    first, second = np.triu_indices(len(joint), 1)
    if not len(first):
        return float("nan")
    both, alone = joint[first, second], np.diag(joint)
    values = np.full(len(first), -1.0)
    values[both == 1] = 1.0
    usual = (both > 0) & (both < 1)
    p = both[usual]
    values[usual] = np.log(p / (alone[first] * alone[second])[usual]) / -np.log(p)
    return float(values.mean())
