"""Counting words in a hash map."""

from typing import Any

import numpy as np

import strads


def body(k, words, counts):
    """One word."""
    counts[words[k]] += 1


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Words are hashes of 64 bits, as frequent as by Zipf's law."""
    rng = np.random.default_rng(seed)
    n, vocabulary = int(10_000_000 * scale), int(200_000 * scale)
    names = rng.integers(0, 2**62, vocabulary)
    words = names[(vocabulary ** rng.random(n)).astype(int) - 1]
    keys = np.unique(words)
    return n, (strads.dvector(words, copy=False), strads.dmap(keys, np.zeros(len(keys), "i8")))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"most frequent: {arguments[1].table.to_numpy().max():,} times")
