"""The logarithm of p(w, z | α, β), in terms that are summed over workers and shards.

With θ and φ integrated out (Griffiths & Steyvers 2004, eq. 2 and 3):

    log p(w | z, β) = Σ_k [log Γ(Vβ) − V log Γ(β) + Σ_w log Γ(n_wk + β) − log Γ(n_k + Vβ)]
    log p(z | α)    = Σ_d [log Γ(Σα) − Σ_k log Γ(α_k) + Σ_k log Γ(n_dk + α_k) − log Γ(n_d + Σα)]

Every term is written as log Γ(n + a) − log Γ(a), which is 0 for zero counts. The sum is `log_words` over all shards
+ `log_topics` of the summed totals + `log_documents` over all workers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.lda_tables import Documents, Words
from strads.models.kernels.lda_terms import document_terms, length_terms, word_terms


def log_words(words: Words, beta: float, topics: int) -> float:
    """Contribution of a shard to log p(w | z, β): Σ_k Σ_w [log Γ(n_wk + β) − log Γ(β)]."""
    return float(word_terms(words, beta, topics, derivative=False).sum())


def log_topics(totals: NDArray[Any], beta: float, vocabulary: int) -> float:
    """Contribution of the topic totals n_k of the corpus, (K,): Σ_k [log Γ(Vβ) − log Γ(n_k + Vβ)], added once."""
    return -length_terms(totals, beta * vocabulary, derivative=False)


def log_documents(documents: Documents, lengths: NDArray[Any], alpha: NDArray[np.float64]) -> float:
    """log p(z | α) of a worker's documents, with `lengths` (documents,) tokens; α has shape (K,)."""
    parts = document_terms(documents, alpha, derivative=False)
    return float(parts.sum()) - length_terms(lengths, float(alpha.sum()), derivative=False)
