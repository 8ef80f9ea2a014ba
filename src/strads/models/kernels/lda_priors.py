"""Priors learned from the counts: Minka's fixed point (Estimating a Dirichlet distribution, 2000, eq. 55).

    α_k ← α_k · Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + Σα) − ψ(Σα)]

The sums are added over workers (or shards), then the same step is taken once everywhere. Each step increases the
likelihood of the assignments.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.lda_tables import Documents, Words
from strads.models.kernels.lda_terms import document_terms, length_terms, word_terms

_SMALLEST = 1e-7  # a topic without tokens would get a prior of 0, and could never be drawn again


def document_prior_sums(
    documents: Documents, lengths: NDArray[Any], alpha: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """A worker's part of the sums: Σ_d [ψ(n_dk + α_k) − ψ(α_k)] of shape (K,), and Σ_d [ψ(n_d + Σα) − ψ(Σα)]."""
    total = float(alpha.sum())
    return document_terms(documents, alpha, derivative=True), length_terms(lengths, total, derivative=True)


def better_alpha(
    alpha: NDArray[np.float64], sums: NDArray[np.float64], length_sum: float, symmetric: bool = False
) -> NDArray[np.float64]:
    """One step for α of shape (K,), from the sums over all workers; `symmetric` keeps one value for all topics."""
    if length_sum <= 0.0:  # no document has a token
        return alpha
    if symmetric:
        sums = np.full(len(alpha), sums.mean())
    better: NDArray[np.float64] = np.maximum(alpha * sums / length_sum, _SMALLEST)
    return better


def word_prior_sum(words: Words, beta: float, topics: int) -> float:
    """A shard's part of Σ_k Σ_w [ψ(n_wk + β) − ψ(β)]."""
    return float(word_terms(words, beta, topics, derivative=True).sum())


def better_beta(beta: float, word_sum: float, totals: NDArray[Any], vocabulary: int) -> float:
    """One step for a β that is the same for all words, from the sum over all shards and the corpus's totals n_k."""
    topic_sum = length_terms(totals, beta * vocabulary, derivative=True)
    return beta if topic_sum <= 0.0 else max(beta * word_sum / (vocabulary * topic_sum), _SMALLEST)
