"""Topics of unseen documents, and the prediction of their words."""

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.models.corpora.corpus import Corpus
from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.lda_inference import fill_phi, infer_documents, log_of_words
from strads.models.kernels.lda_random import job_key
from strads.models.kernels.lda_tables import Prior, make_prior
from strads.models.topics.counts import TopicCounts
from strads.models.topics.priors import Priors

_SWEEPS, _BURN_IN = 30, 10  # sweeps over a document, and how many of the first ones are not averaged
_CHUNK = 256  # documents that a thread takes at a time


def _phi_of(corpus: Corpus, counts: TopicCounts, prior: Prior) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return φ_kw of the words of a corpus, float32 of shape (words, K padded), and the row of each entry's word."""
    words, rows = np.unique(corpus.words, return_inverse=True)
    phi: NDArray[np.float32] = aligned_zeros((len(words), padded(len(counts.totals))), np.float32)
    fill_phi(counts.rows_of(words), counts.totals, prior, np.arange(len(words)), phi)
    return phi, rows.astype(np.int64)


def infer_topics(
    corpus: Corpus, counts: TopicCounts, priors: Priors, seed: int, team: ThreadTeam
) -> NDArray[np.float32]:
    """Return the mean of θ over draws of the documents' topics, shape (documents, K), float32.

    Every document has a random stream of its own, by its words: the result is the same for any number of threads, and
    does not depend on the other documents.
    """
    prior = make_prior(priors.alpha, priors.beta, counts.by_word.shape[0])
    phi, rows = _phi_of(corpus, counts, prior)
    mixtures = np.empty((len(corpus), len(counts.totals)), np.float32)
    key = job_key(seed, 0, 0, 0)

    def work(chunk: int) -> None:
        first = chunk * _CHUNK
        last = min(first + _CHUNK, len(corpus))
        documents = corpus.offsets, rows, corpus.counts, corpus.words
        infer_documents(*documents, first, last, phi, prior, _SWEEPS, _BURN_IN, key, mixtures)

    team.for_each(work, -(-len(corpus) // _CHUNK))
    return mixtures


def completion(corpus: Corpus, counts: TopicCounts, priors: Priors, seed: int, team: ThreadTeam) -> tuple[float, int]:
    """Predict one half of each document's tokens from the other (Wallach et al. 2009, document completion).

    Returns
    -------
    Σ log Σ_k θ_dk φ_kw over the predicted tokens, in nats, and the number of these tokens.
    """
    observed, scored = corpus.split_tokens(0.5, seed)
    mixtures = infer_topics(observed, counts, priors, seed, team)
    phi, rows = _phi_of(scored, counts, make_prior(priors.alpha, priors.beta, counts.by_word.shape[0]))
    sums = np.zeros(-(-len(scored) // _CHUNK))

    def work(chunk: int) -> None:
        first = chunk * _CHUNK
        last = min(first + _CHUNK, len(scored))
        sums[chunk] = log_of_words(scored.offsets, rows, scored.counts, first, last, mixtures, phi)

    team.for_each(work, len(sums))
    return float(sums.sum()), scored.n_tokens
