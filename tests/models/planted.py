"""Documents with known topics, and sentences of words that belong together."""

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


def planted_sentences(sentences=4000, topics=8, words=20, length=12, seed=0):
    """Draw sentences of one topic each, with words "topic_number" of falling frequency, and some "common" ones."""
    rng = np.random.default_rng(seed)
    drawn = []
    for topic in rng.integers(topics, size=sentences):
        numbers = (words ** rng.random(length)).astype(int) - 1
        common = rng.random(length) < 0.2
        drawn.append([f"common_{n}" if c else f"{topic}_{n}" for n, c in zip(numbers, common, strict=True)])
    return drawn


def share_of_neighbours(model, topics=8, words=10):
    """Share of the three words most similar to each topic's word that are of its topic."""
    known = set(model.vocabulary_)
    found = [
        other.split("_")[0] == str(topic)
        for topic in range(topics)
        for number in range(words)
        if f"{topic}_{number}" in known
        for other, _ in model.most_similar(f"{topic}_{number}", topn=3)
    ]
    return np.mean(found)
