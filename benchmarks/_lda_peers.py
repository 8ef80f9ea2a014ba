"""LDA by other libraries on a `Corpus`: tomotopy, gensim, scikit-learn, each with its state by iteration.

    pip install tomotopy==0.14.0 gensim==4.4.0

All take the same priors and 2 workers. Only training is timed: not the conversion of the corpus, not what is read of
the model between iterations.
"""

import logging
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from _topic_quality import TopicCounts, Trained
from numpy.typing import NDArray

from strads.models import Corpus

WORKERS = 2


class _Clock:
    """Seconds in the calls that it makes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def run(self, call: Callable[[], object]) -> None:
        start = time.perf_counter()
        call()
        self.seconds += time.perf_counter() - start


def tomotopy_lda(
    corpus: Corpus, topics: int, alpha: float, beta: float, iterations: int, *, every: int = 1, seed: int = 0
) -> Iterator[tuple[int, float, TopicCounts]]:
    """Collapsed Gibbs sampling by tomotopy; yields iterations, seconds, and counts, every so many iterations.

    The prior stays as it is (no `optim_interval`, no `burn_in`). The first yield is the random start.
    """
    import tomotopy

    warnings.filterwarnings("ignore", "The training result may differ", RuntimeWarning)
    model = tomotopy.LDAModel(k=topics, alpha=alpha, eta=beta, seed=seed)
    model.optim_interval = model.burn_in = 0
    words = np.repeat(corpus.words, corpus.counts)
    names = np.array([str(word) for word in range(corpus.n_words)], object)
    filled = np.flatnonzero(corpus.lengths)
    starts = np.cumsum(corpus.lengths)[:-1]
    for tokens in np.split(words, starts):
        if len(tokens):
            model.add_doc(names[tokens].tolist())
    clock = _Clock()
    model.train(0, workers=WORKERS)  # makes the random start
    yield 0, 0.0, _tomotopy_counts(model, filled, corpus, alpha, beta)
    for iteration in range(every, iterations + 1, every):
        clock.run(lambda: model.train(every, workers=WORKERS))
        yield iteration, clock.seconds, _tomotopy_counts(model, filled, corpus, alpha, beta)


def _tomotopy_counts(model, filled: NDArray[np.int64], corpus: Corpus, alpha: float, beta: float) -> TopicCounts:
    """Counts of the assignments, with the corpus's numbers of documents and words."""
    lengths, words, topics = [], [], []
    for document in model.docs:
        words.append(np.asarray(document.words))
        topics.append(np.asarray(document.topics))
        lengths.append(len(words[-1]))
    numbers = np.array([int(name) for name in model.vocabs])
    return TopicCounts.of_tokens(
        np.repeat(filled, lengths),
        numbers[np.concatenate(words)],
        np.concatenate(topics).astype(np.int64),
        (corpus.n_documents, corpus.n_words, model.k),
        alpha,
        beta,
    )


def gensim_lda(
    corpus: Corpus, topics: int, alpha: float, beta: float, passes: int, *, seed: int = 0
) -> Iterator[tuple[int, float, Trained]]:
    """Online variational Bayes by gensim's LdaMulticore; yields passes, seconds, and topics after each pass."""
    from gensim.models import LdaMulticore

    logging.getLogger("gensim").setLevel(logging.ERROR)
    bags = [
        list(zip(corpus.words[start:stop].tolist(), corpus.counts[start:stop].tolist(), strict=True))
        for start, stop in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)
    ]
    model = LdaMulticore(
        id2word={word: str(word) for word in range(corpus.n_words)},
        num_topics=topics,
        workers=WORKERS,
        alpha=np.full(topics, alpha),
        eta=beta,
        eval_every=None,
        random_state=seed,
    )
    clock = _Clock()
    for number in range(1, passes + 1):
        clock.run(lambda: model.update(bags))
        yield number, clock.seconds, _normalized(model.get_topics(), alpha)


def sklearn_lda(
    corpus: Corpus,
    topics: int,
    alpha: float,
    beta: float,
    passes: int,
    *,
    batch_size: int = 4096,
    seed: int = 0,
) -> Iterator[tuple[int, float, Trained]]:
    """Online variational Bayes by scikit-learn; yields passes, seconds, and topics after each pass.

    Online rather than batch learning, which improves more in a pass and can be continued.
    """
    from sklearn.base import clone
    from sklearn.decomposition import LatentDirichletAllocation

    counts = corpus.to_csr()
    model = LatentDirichletAllocation(
        topics,
        doc_topic_prior=alpha,
        topic_word_prior=beta,
        learning_method="online",
        batch_size=batch_size,
        total_samples=corpus.n_documents,
        n_jobs=WORKERS,
        random_state=seed,
    )
    clone(model).partial_fit(counts[: 8 * WORKERS])  # starts the worker processes, which stay
    clock = _Clock()
    for number in range(1, passes + 1):
        clock.run(lambda: model.partial_fit(counts))
        yield number, clock.seconds, _normalized(model.components_, alpha)


def _normalized(topics: NDArray[np.floating], alpha: float) -> Trained:
    phi = np.asarray(topics, float)
    return Trained(phi / phi.sum(1, keepdims=True), np.full(len(phi), alpha))
