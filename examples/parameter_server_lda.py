"""LDA by collapsed Gibbs sampling on a parameter server, under every consistency model.

Documents and the topics of their tokens stay with the worker; the word-topic counts and the topics' totals are tables.
`ASP()` is YahooLDA's way (ESSP [1]), `SSP(s)` and `ESSP(s)` are Petuum's.

Usage:
    python examples/parameter_server_lda.py [--documents reviews.txt] [--topics 20] [--workers 4] [--nodes 4]

The file has one document a line; without it, documents are generated from planted topics.
"""

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

import strads
from strads import ps
from strads.models import Corpus

ALPHA, BETA = 0.1, 0.01


class Documents(NamedTuple):
    """Documents one behind the other: int64 offsets of shape (documents + 1,), int32 words of shape (tokens,)."""

    offsets: np.ndarray
    words: np.ndarray


@njit(nogil=True, cache=True, fastmath=True)
def gibbs(documents, words, topics, document_topics, word_topics, totals, vocabulary, alpha, beta, draws):
    """Draw each token's topic given all others (Griffiths & Steyvers 2004, eq. 5), with uniform numbers `draws`.

    Returns
    -------
    The sum of log p(word | document, all other tokens).
    """
    log_probability = 0.0
    running = np.empty(len(totals))
    for token in range(len(words)):
        n_d, n_w, topic = document_topics[documents[token]], word_topics[words[token]], topics[token]
        n_d[topic] -= 1
        n_w[topic] -= 1
        totals[topic] -= 1
        mass, length = 0.0, 0
        for k in range(len(totals)):
            mass += (n_d[k] + alpha) * (n_w[k] + beta) / (totals[k] + vocabulary * beta)
            length += n_d[k]
            running[k] = mass
        topic = np.searchsorted(running, draws[token] * mass)
        n_d[topic] += 1
        n_w[topic] += 1
        totals[topic] += 1
        topics[token] = topic
        log_probability += np.log(mass / (length + len(totals) * alpha))
    return log_probability


def sample_topics(
    worker: ps.Worker,
    word_topics: ps.WorkerTable,
    totals: ps.WorkerTable,
    iterations: int,
    clocks: int,
    on_minibatch: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Be one worker: an iteration is a pass over its documents, in so many minibatches, each of them a clock.

    Within a minibatch it samples on copies of the counts; where they have changed, it adds the difference.
    `on_minibatch` is called before each clock with the worker's number and the tokens of the minibatch.

    Returns
    -------
    The sum of log p(word | document, all other tokens) of each iteration, as seen when a token was sampled.
    """
    (vocabulary, count), (offsets, words) = word_topics.shape, worker.data
    rng = np.random.default_rng(worker.number)
    document_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    topics = rng.integers(count, size=len(words))
    document_topics = np.zeros((len(offsets) - 1, count), np.int32)
    np.add.at(document_topics, (document_of, topics), 1)
    rows, row_of = np.unique(words, return_inverse=True)
    counts = np.zeros((len(rows), count), np.int32)
    np.add.at(counts, (row_of, topics), 1)
    word_topics.inc(rows, counts)
    totals.inc(0, counts.sum(0)[None])
    worker.clock()
    cuts = offsets[np.linspace(0, len(offsets) - 1, clocks + 1).astype(int)]
    parts = [slice(*cut) for cut in pairwise(cuts)]
    found = [np.unique(words[part], return_inverse=True) for part in parts]
    log_probabilities = []
    for _ in range(iterations):
        log_probability = 0.0
        for part, (rows, row_of) in zip(parts, found, strict=True):
            old, old_totals = word_topics.get(rows), totals.get(0)
            new, new_totals, draws = old.copy(), old_totals.copy(), rng.random(len(row_of))
            log_probability += gibbs(
                document_of[part],
                row_of,
                topics[part],
                document_topics,
                new,
                new_totals,
                vocabulary,
                ALPHA,
                BETA,
                draws,
            )
            changed = np.flatnonzero((new != old).any(1))
            word_topics.inc(rows[changed], new[changed] - old[changed])
            totals.inc(0, (new_totals - old_totals)[None])
            if on_minibatch is not None:
                on_minibatch(worker.number, len(row_of))
            worker.clock()
        log_probabilities.append(log_probability)
    return log_probabilities


def make_tables(vocabulary: int, topics: int, consistency: ps.Consistency) -> tuple[ps.Table, ps.Table]:
    """Make tables of word-topic counts and totals.

    A worker must see its own tokens in the counts that it takes them out of, so it reads its writes.
    """
    options = {"consistency": consistency, "read_my_writes": True}
    return ps.Table(vocabulary, topics, np.int32, **options), ps.Table(1, topics, np.int64, **options)


def read_documents(path: Path) -> tuple[Documents, int]:
    """Read a file of documents, one per line; returns them and the size of the vocabulary."""
    corpus = Corpus.from_file(path, min_df=5, stop_words="english", token_pattern=r"\b[a-z]{2,}\b")
    words = np.repeat(corpus.words, corpus.counts)
    return Documents(np.concatenate(([0], np.cumsum(corpus.lengths))), words), corpus.n_words


def planted_documents(
    documents: int = 2_000, length: int = 100, vocabulary: int = 1_000, topics: int = 20, seed: int = 0
) -> tuple[Documents, int]:
    """Generate documents of a few topics each; a topic has words of its own and some of its neighbour's."""
    rng = np.random.default_rng(seed)
    width = vocabulary // topics
    mixtures = rng.dirichlet(np.full(topics, 0.1), documents)
    drawn = np.array([rng.choice(topics, length, p=mixture) for mixture in mixtures])
    words = (drawn * width + rng.integers(width + width // 4, size=drawn.shape)) % vocabulary
    return Documents(np.arange(documents + 1) * length, words.ravel().astype(np.int32)), vocabulary


def deal(documents: Documents, workers: int) -> list[Documents]:
    """Give each worker an equal number of documents."""
    cuts = np.linspace(0, len(documents.offsets) - 1, workers + 1).astype(int)
    parts = []
    for low, high in pairwise(cuts):
        offsets = documents.offsets[low : high + 1]
        parts.append(Documents(offsets - offsets[0], documents.words[offsets[0] : offsets[-1]]))
    return parts


def main() -> None:
    """Sample under every consistency model and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--clocks", type=int, default=4, help="of an iteration")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--latency", type=float, default=0.002, help="of messages between nodes, seconds")
    options = parser.parse_args()
    if options.documents is not None and not options.documents.is_file():
        parser.error(f"{options.documents}: no such file")
    documents, vocabulary = planted_documents() if options.documents is None else read_documents(options.documents)
    parts, tokens = deal(documents, options.workers), len(documents.words)
    with strads.init("threads", nodes=options.nodes, threads=1, latency=options.latency):
        for consistency in (ps.BSP(), ps.SSP(3), ps.ESSP(3), ps.ASP(), ps.VAP(10_000.0)):
            tables = make_tables(vocabulary, options.topics, consistency)
            done = ps.run(
                sample_topics, *tables, options.iterations, options.clocks, workers=options.workers, data=parts
            )
            curve = np.exp(-np.sum(done.values, axis=0) / tokens)
            print(
                f"{consistency!r:27} perplexity {curve[0]:.1f} → {curve[-1]:.1f}  "
                f"{tokens * options.iterations / done.seconds / 1e6:.2f} M tokens/s  "
                f"mean staleness {tables[0].staleness.mean:+.2f}  "
                f"communicating {sum(done.communicating) / sum(done.communicating + done.computing):.0%}"
            )


if __name__ == "__main__":
    main()
