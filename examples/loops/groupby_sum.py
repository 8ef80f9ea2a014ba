"""Sums and counts of values by group."""

from typing import Any

import numpy as np

import strads


def body(k, groups, values, sums, counts):
    """One value."""
    sums[groups[k]] += values[k]
    counts[groups[k]] += 1


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Groups that are large by a power law."""
    rng = np.random.default_rng(seed)
    n, number = int(40_000_000 * scale), int(2_000_000 * scale)
    groups = rng.permutation(number).astype("i4")[(number * rng.random(n) ** 2).astype("i4")]
    tables = (strads.dvector(groups, copy=False), strads.dvector(rng.random(n, "f4"), copy=False))
    return n, (*tables, strads.dvector.zeros(number, "f8"), strads.dvector.zeros(number, "i8"))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"largest group: {arguments[3].to_numpy().max():,} values")
