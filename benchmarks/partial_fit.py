"""A batch on a large model against the same batch on a small one: a ratio near 1 says that only the batch counts.

Time is that of all threads together: the median of some batches after the first ones, which compile and grow.

Usage:
    python benchmarks/partial_fit.py [--only mf bpr lda word2vec] [--scale 1.0] [--batches 20]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from strads.models import BayesianPersonalizedRanking, LatentDirichletAllocation, MatrixFactorization, Word2Vec

SAMPLES = 1000
Batches = Callable[[], tuple[Any, ...]]


def ratings(rng: np.random.Generator, users: int, items: int) -> tuple[Any, Batches]:
    model = MatrixFactorization(32).partial_fit(([users - 1], [items - 1]), [3.0])
    pairs = lambda: (rng.integers(0, users, SAMPLES), rng.integers(0, items, SAMPLES))  # noqa: E731
    return model, lambda: (pairs(), rng.normal(3.0, 1.0, SAMPLES))


def likes(rng: np.random.Generator, users: int, items: int) -> tuple[Any, Batches]:
    model = BayesianPersonalizedRanking(32).partial_fit((np.arange(users), rng.integers(0, items, users)))
    return model, lambda: ((rng.integers(0, users, SAMPLES), rng.integers(0, items, SAMPLES)),)


def documents(rng: np.random.Generator, texts: int, words: int) -> tuple[Any, Batches]:
    def counts(number: int) -> scipy.sparse.csr_array:
        tokens = (rng.random(number * 100) ** 3 * words).astype(int)
        return scipy.sparse.csr_array(
            (np.ones(len(tokens), int), (np.arange(len(tokens)) // 100, tokens)), (number, words)
        )

    model = LatentDirichletAllocation(100, max_iter=10).partial_fit(counts(texts))
    return model, lambda: (counts(SAMPLES // 100),)


def sentences(rng: np.random.Generator, words: int, _: int) -> tuple[Any, Batches]:
    names = np.array([f"word{number}" for number in range(words)], object)
    model = Word2Vec(100, min_count=1).partial_fit(names.reshape(-1, 10).tolist())
    return model, lambda: (names[rng.integers(0, words, (SAMPLES // 20, 20))].tolist(),)


SIZES = {
    "mf": (ratings, (1_000, 100), (1_000_000, 100_000)),
    "bpr": (likes, (1_000, 100), (1_000_000, 100_000)),
    "lda": (documents, (100, 1_000), (20_000, 100_000)),
    "word2vec": (sentences, (1_000, 0), (100_000, 0)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--scale", type=float, default=1.0, help="of the large models")
    parser.add_argument("--batches", type=int, default=20)
    arguments = parser.parse_args()
    for name in arguments.only:
        make, small, large = SIZES[name]
        large = tuple(
            max(each, int(size * arguments.scale) // 10 * 10) for each, size in zip(small, large, strict=True)
        )
        sides = [make(np.random.default_rng(0), *size) for size in (small, large)]
        times: list[list[float]] = [[], []]
        for _ in range(arguments.batches + 3):
            for side, (model, batches) in enumerate(sides):
                batch = batches()
                start = time.process_time()
                model.partial_fit(*batch)
                times[side].append(1e3 * (time.process_time() - start))
        on_small, on_large = (float(np.median(each[3:])) for each in times)
        sizes = " and ".join(" × ".join(f"{each:,}" for each in size if each) for size in (small, large))
        print(
            f"{name}: {on_small:.1f} and {on_large:.1f} ms a batch on {sizes}: {on_large / on_small:.2f} ×", flush=True
        )


if __name__ == "__main__":
    main()
