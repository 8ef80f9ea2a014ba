"""Documents with known topics."""

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment


def planted_documents(documents=1500, words=200, topics=5, length=30, seed=0):
    """Draw documents of which samplers find the topics from any start.

    Returns counts, CSR of shape (documents, words), and the topics that they were drawn from, (topics, words).
    """
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(words, 0.1), topics)
    theta = rng.dirichlet(np.full(topics, 0.3), documents)
    lengths = rng.poisson(length, documents)
    rows = [rng.multinomial(n, mixture @ phi) for n, mixture in zip(lengths, theta, strict=True)]
    return scipy.sparse.csr_array(np.array(rows)), phi


def matched_cosines(found, planted):
    """Cosine of each planted topic with the one that the best matching gives it."""
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    planted = planted / np.linalg.norm(planted, axis=1, keepdims=True)
    cosines = planted @ found.T
    return cosines[linear_sum_assignment(-cosines)]
