"""Online k-means: a point moves the nearest centre towards itself (MacQueen 1967)."""

from typing import Any

import numpy as np

import strads


def body(k, points, centres, counts):
    """One point."""
    x = points[k]
    best, nearest = 0, np.inf
    for c in range(len(centres)):
        distance = 0.0
        for f in range(len(x)):
            distance += (x[f] - centres[c, f]) ** 2
        if distance < nearest:
            best, nearest = c, distance
    counts[best] += 1
    centre = centres[best]
    for f in range(len(x)):
        centre[f] += (x[f] - centre[f]) / counts[best]


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Points around 64 planted centres; the first points are where the centres start."""
    rng = np.random.default_rng(seed)
    n, k, d = int(3_000_000 * scale), 64, 16
    planted = rng.normal(0, 2, (k, d)).astype("f4")
    points = planted[rng.integers(0, k, n)] + rng.normal(0, 1, (n, d)).astype("f4")
    return n, (strads.dvector(points), strads.dvector(points[:k]), strads.dvector.zeros(k, "i4"))


def objective(points: strads.dvector, centres: strads.dvector, counts: Any) -> float:
    """Mean squared distance of the first 100,000 points to the nearest centre."""
    x, c = points.to_numpy()[:100_000], centres.to_numpy()
    squares = (x**2).sum(1)[:, None] - 2 * x @ c.T + (c**2).sum(1)
    return float(squares.min(1).mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: mean squared distance {objective(*arguments):.4f}")
