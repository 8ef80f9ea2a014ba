"""Peak memory of training LDA, K = 1000, on the IMDB reviews, against tokens and sparse tables; and by number of nodes.

One process: the growth of the resident memory's peak over what it was with the corpus loaded and everything compiled,
against the bytes of tokens (document and topic of each) and of the sparse count tables: with all the places that they
reserve, and with those only that are in use after the first topics, and at the end. Logical nodes: bytes of tokens and
tables on the fullest node (supplement fig. 3). Usage:

    python benchmarks/lda_memory.py [--topics 1000]
"""

import argparse
import gc

import numpy as np
from _memory import reset_peak, resident
from _reviews import imdb_corpus
from lda import ALPHA, BETA, model_of

import strads
from strads.models.topics.priors import check_priors
from strads.models.topics.training import TopicTraining
from strads.schedule.nodes.workers import place_workers

WORKERS = 32


def nbytes(arrays: tuple) -> int:
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def tables(corpus, topics: int, nodes: int) -> list[int]:
    """Bytes of tokens and tables on each of so many logical nodes."""
    node_of = place_workers(WORKERS, nodes)
    with (
        strads.init("threads", nodes=nodes, threads=1),
        TopicTraining(
            corpus, check_priors(topics, ALPHA, BETA), sampler="auto", start="sequential", workers=WORKERS,
            synchronizations=None, seed=0, threads=None,
        ) as training,
    ):  # fmt: skip
        engine = training._engine
        parts = engine.each_worker(lambda program, part: nbytes((*part.tokens, *part.documents)))
        blocks = engine.each_shard(lambda program, block: nbytes(tuple(block.words)))
        return np.bincount(node_of, np.add(parts, blocks)).astype(int).tolist()


def used(corpus, topics: int, iterations: int) -> int:
    """Bytes of tokens, and of what is not zero in the tables (4 a document's topic, 6 a word's) in the end."""
    with TopicTraining(
        corpus, check_priors(topics, ALPHA, BETA), sampler="sparse", start="sequential", workers=None,
        synchronizations=None, seed=0, threads=None,
    ) as training:  # fmt: skip
        for _ in range(iterations):
            training.iterate()
        parts = training.parts()
        tokens = sum(nbytes((part.tokens.documents, part.tokens.topics)) for part in parts)
        return tokens + sum(4 * int(part.documents.sizes.sum()) for part in parts) + 6 * training.counts().by_word.nnz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1000)
    options = parser.parse_args()
    strads.init("threads", threads=2)
    corpus = imdb_corpus()
    model_of(options.topics, 2).fit(corpus.take(np.arange(200)))
    gc.collect()
    reset_peak()
    before = resident("VmRSS")
    model_of(options.topics, 3).fit(corpus)
    peak = resident("VmHWM") - before
    kept = tables(corpus, options.topics, 1)[0]
    print(f"K = {options.topics}: peak of fit {peak / 1e6:.0f} MB; tokens and tables {kept / 1e6:.0f} MB; "
          f"ratio {peak / kept:.2f} (target ≤ 1.5)")  # fmt: skip
    for iterations in (0, 3, 50):
        found = used(corpus, options.topics, iterations)
        print(f"  in use after {iterations} iterations: {found / 1e6:.0f} MB; ratio {peak / found:.2f}")
    for nodes in (2, 4, 8):
        most = max(tables(corpus, options.topics, nodes))
        print(f"{nodes} nodes: {most / 1e6:.1f} MB on the fullest, {most / kept:.2f} of one node's")


if __name__ == "__main__":
    main()
