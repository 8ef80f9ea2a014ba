"""Sums over the nonzero counts, used by the likelihood and the estimation of the priors.

The term of a count n under a prior a is log Γ(n + a) − log Γ(a) = Σ_{i < n} log(i + a), or, its derivative in a,
ψ(n + a) − ψ(a) = Σ_{i < n} 1 / (i + a). Both are 0 at n = 0, so the stored entries of sparse tables suffice. Terms of
small counts, nearly all of them, are looked up in a table: `table[k, n]` is the term of the count n under the prior
`priors[k]`, or its derivative if `derivative` is True (both arrays are float64).
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.models.kernels.lda_tables import Documents, SparseDocuments, SparseWords, Words

_TABLE_SIZE = 1 << 19  # elements: it should stay in the L2 cache
_ASYMPTOTIC = 8.0  # from here on the error of the series below is under 1e-13


@njit(nogil=True, cache=True)
def digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x) for x > 0: by recurrence up to where the asymptotic series is accurate enough."""
    shift = 0.0
    while x < _ASYMPTOTIC:
        shift += 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760 - s / 12))))))
    return math.log(x) - 0.5 / x - series - shift


@njit(nogil=True, cache=True)
def term(count, prior, derivative):  # type: ignore[no-untyped-def]
    """The term of one count, or its derivative in the prior."""
    if derivative:
        return digamma(count + prior) - digamma(prior)
    return math.lgamma(count + prior) - math.lgamma(prior)


@njit(nogil=True, cache=True)
def _make_table(priors, columns, derivative):  # type: ignore[no-untyped-def]
    table = np.zeros((len(priors), columns))
    for k in range(len(priors)):
        for n in range(1, columns):
            x = n - 1 + priors[k]
            table[k, n] = table[k, n - 1] + (1.0 / x if derivative else math.log(x))
    return table


@njit(nogil=True, cache=True)
def _add_sparse_documents(documents, priors, table, derivative, sums):  # type: ignore[no-untyped-def]
    """Add the terms of `documents`, a `SparseDocuments`, to the `sums` of the topics, float64 of shape (K,).

    `priors` has one element for each topic; `table` and `derivative` are those of the module.
    """
    mask = np.uint32((1 << documents.topic_bits) - 1)
    shift = np.uint32(documents.topic_bits)
    for document in range(len(documents.sizes)):
        first = documents.offsets[document]
        for place in range(first, first + documents.sizes[document]):
            topic, count = documents.entries[place] & mask, documents.entries[place] >> shift
            small = count < table.shape[1]
            sums[topic] += table[topic, count] if small else term(float(count), priors[topic], derivative)


@njit(nogil=True, cache=True)
def _add_dense(counts, priors, table, derivative, sums):  # type: ignore[no-untyped-def]
    """Add the terms of dense `counts`, documents or words × topics (padded), to the `sums` of the topics.

    `priors` has one element for each topic, or a single one for all; `table` and `derivative` are those of the module.
    """
    shared = len(priors) == 1
    for row in range(len(counts)):
        for topic in range(len(sums)):
            count = counts[row, topic]
            if count > 0:
                k = 0 if shared else topic
                small = count < table.shape[1]
                sums[topic] += table[k, count] if small else term(float(count), priors[k], derivative)


@njit(nogil=True, cache=True)
def _add_sparse_words(words, beta, table, derivative, sums):  # type: ignore[no-untyped-def]
    """Add the terms of `words`, a `SparseWords`, to the `sums` of the topics, float64 of shape (K,).

    `beta` is the prior of all, so `table` has a single row; `derivative` as in the module.
    """
    for word in range(len(words.sizes)):
        first = words.offsets[word]
        for place in range(first, first + words.sizes[word]):
            count = words.counts[place]
            small = count < table.shape[1]
            sums[words.topics[place]] += table[0, count] if small else term(float(count), beta, derivative)


@njit(nogil=True, cache=True)
def _sum_lengths(lengths, prior, derivative):  # type: ignore[no-untyped-def]
    total = 0.0
    for n in lengths:
        total += term(float(n), prior, derivative)
    return total


def document_terms(documents: Documents, alpha: NDArray[np.float64], derivative: bool) -> NDArray[np.float64]:
    """Σ_d term(n_dk, α_k) of each topic: float64 of shape (K,)."""
    table = _make_table(alpha, max(4, min(1024, _TABLE_SIZE // len(alpha))), derivative)
    sums = np.zeros(len(alpha))
    if isinstance(documents, SparseDocuments):
        _add_sparse_documents(documents, alpha, table, derivative, sums)
    else:
        _add_dense(documents.counts, alpha, table, derivative, sums)
    return sums


def word_terms(words: Words, beta: float, topics: int, derivative: bool) -> NDArray[np.float64]:
    """Σ_w term(n_wk, β) of each topic over the words of a shard: float64 of shape (K,)."""
    priors = np.array([beta])
    table = _make_table(priors, 1024, derivative)
    sums = np.zeros(topics)
    if isinstance(words, SparseWords):
        _add_sparse_words(words, beta, table, derivative, sums)
    else:
        _add_dense(words.counts, priors, table, derivative, sums)
    return sums


def length_terms(lengths: NDArray[Any], prior: float, derivative: bool) -> float:
    """Σ_d term(n_d, Σα), or over topics Σ_k term(n_k, Vβ)."""
    return float(_sum_lengths(np.asarray(lengths), float(prior), derivative))
