"""How good topics are, by one measure for every library: likelihood of assignments, perplexity of unseen words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from strads.models import Corpus


@dataclass(frozen=True)
class Trained:
    """What perplexity needs of a model.

    Parameters
    ----------
    phi : (topics, words)
        p(word | topic); rows sum to 1, and no entry is 0.
    alpha : (topics,)
        Prior of a document's topics.
    """

    phi: NDArray[np.float64]
    alpha: NDArray[np.float64]


@dataclass(frozen=True)
class TopicCounts:
    """Counts of a Gibbs sampler's assignments of topics to tokens.

    Parameters
    ----------
    word_topic : (words, topics), ndarray or SciPy sparse
        How many tokens of the word have the topic.
    document_topic : (documents, topics), ndarray or SciPy sparse
        How many tokens of the document have the topic.
    alpha : float or (topics,)
        Prior of documents' topics.
    beta : float
        Prior of topics' words.
    """

    word_topic: Any
    document_topic: Any
    alpha: ArrayLike
    beta: float

    @classmethod
    def of_tokens(
        cls,
        documents: NDArray[np.integer],
        words: NDArray[np.integer],
        topics: NDArray[np.integer],
        shape: tuple[int, int, int],
        alpha: ArrayLike,
        beta: float,
    ) -> "TopicCounts":
        """Count tokens, each with its document, word and topic; `shape` is (documents, words, topics)."""
        ones = np.ones(len(topics), np.int32)
        n_documents, n_words, n_topics = shape
        tables = (
            scipy.sparse.coo_array((ones, (rows, topics)), shape=(size, n_topics)).tocsr()
            for rows, size in ((words, n_words), (documents, n_documents))
        )
        return cls(*tables, alpha, beta)

    @property
    def alphas(self) -> NDArray[np.float64]:
        """The prior of each topic, shape (topics,)."""
        return np.broadcast_to(np.asarray(self.alpha, float), self.word_topic.shape[1])

    def log_likelihood(self) -> float:
        """Joint log-likelihood of words and topics, a token: ln p(w, z | α, β) / N.

        p(w | z) and p(z) are those of Griffiths & Steyvers 2004, equations 2 and 3, with nothing left out, and
        with an α for each topic.
        """
        n_words = self.word_topic.shape[0]
        lengths = _sums(self.document_topic, 1)
        alphas, beta, total = self.alphas, self.beta, self.alphas.sum()
        words = _rises(self.word_topic, np.full(len(alphas), beta))
        words += (gammaln(n_words * beta) - gammaln(_sums(self.word_topic, 0) + n_words * beta)).sum()
        topics = _rises(self.document_topic, alphas) + (gammaln(total) - gammaln(lengths + total)).sum()
        return float((words + topics) / lengths.sum())

    def trained(self) -> Trained:
        """The expected words of each topic, given the assignments."""
        counts = self.word_topic.toarray() if scipy.sparse.issparse(self.word_topic) else np.asarray(self.word_topic)
        phi = counts.T + self.beta
        return Trained(phi / phi.sum(1, keepdims=True), np.array(self.alphas))


def _rises(counts: Any, prior: NDArray[np.float64]) -> float:
    """Σ ln Γ(n + prior) − ln Γ(prior), for which entries of 0 add nothing; `prior` is that of each column."""
    entries = scipy.sparse.coo_array(counts)
    own = prior[entries.col]
    return float((gammaln(entries.data + own) - gammaln(own)).sum())


def _sums(counts: Any, axis: int) -> NDArray[np.float64]:
    return np.asarray(counts.sum(axis=axis), float).ravel()


def completion_perplexity(trained: Trained, observed: Corpus, scored: Corpus, iterations: int = 50) -> float:
    """Perplexity of one part of each unseen document, whose topics are estimated from the other.

    Parameters
    ----------
    trained : Trained
        The same estimator serves every library: `iterations` of EM on φ for each document,
        θ_k ∝ α_k + Σ_w n_w θ_k φ_kw / Σ_j θ_j φ_jw, from α.
    observed, scored : Corpus
        The two parts, as `Corpus.split_tokens` makes them.

    Returns
    -------
    exp(−Σ ln Σ_k θ_k φ_kw / N) over the N scored tokens.
    """
    by_word = np.ascontiguousarray(trained.phi.T)
    total = _completion(
        *(by_word, np.asarray(trained.alpha, float), iterations),
        *(observed.offsets, observed.words, observed.counts),
        *(scored.offsets, scored.words, scored.counts),
    )
    return float(np.exp(-total / scored.n_tokens))


@njit(nogil=True, cache=True, fastmath=True)
def _completion(phi, alpha, iterations, offsets, words, counts, scored_offsets, scored_words, scored_counts):
    """Sum of ln p of the scored tokens; phi has shape (words, topics)."""
    topics = len(alpha)
    theta, next_theta = np.empty(topics), np.empty(topics)
    total = 0.0
    for document in range(len(offsets) - 1):
        theta[:] = alpha / alpha.sum()
        for _ in range(iterations):
            next_theta[:] = alpha
            for entry in range(offsets[document], offsets[document + 1]):
                row = phi[words[entry]]
                p = 0.0
                for k in range(topics):
                    p += theta[k] * row[k]
                share = counts[entry] / p
                for k in range(topics):
                    next_theta[k] += share * theta[k] * row[k]
            theta[:] = next_theta / next_theta.sum()
        for entry in range(scored_offsets[document], scored_offsets[document + 1]):
            total += scored_counts[entry] * np.log((theta * phi[scored_words[entry]]).sum())
    return total
