"""The fewest coins for each amount, by dynamic programming (Wright, JACM 1975)."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, coins, fewest):
    """One amount."""
    best = fewest[k - 1] + 1
    for c in range(len(coins)):
        if coins[c] <= k and fewest[k - coins[c]] + 1 < best:
            best = fewest[k - coins[c]] + 1
    fewest[k] = best


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Eight coins from 50 to 20,000."""
    n = int(56_000_000 * scale)
    coins = np.sort(np.random.default_rng(seed).integers(50, 20_000, 8))
    return range(1, n + 1), (strads.dvector(coins), strads.dvector.zeros(n + 1, "i4"))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"{arguments[1][-1]} coins for {len(n)}")
