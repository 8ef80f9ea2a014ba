"""The 0/1 knapsack by dynamic programming: a task is one item, the table keeps two rows (Bellman 1957)."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, weights, values, best):
    """The best value of the first k + 1 items within each weight."""
    before, now = best[k % 2], best[(k + 1) % 2]
    weight, value = weights[k], values[k]
    for w in range(len(now)):
        now[w] = before[w]
        if w >= weight and before[w - weight] + value > now[w]:
            now[w] = before[w - weight] + value


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """20,000 items, their values near their weights."""
    rng = np.random.default_rng(seed)
    items, width = int(20_000 * scale), 90_001
    weights = rng.integers(1, width // 30, items)
    values = weights + rng.integers(0, 100, items)
    best = strads.dvector.zeros((2, width), "i4")
    return items, (strads.dvector(weights), strads.dvector(values), best)


def objective(weights: Any, values: Any, best: strads.dvector) -> float:
    """Minus the value of the fullest knapsack."""
    return -float(best.to_numpy()[len(weights) % 2, -1])


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"value: {-objective(*arguments):.0f}")
