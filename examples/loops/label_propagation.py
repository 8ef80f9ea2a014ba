"""Label propagation: a vertex takes the most frequent label of its neighbours (Raghavan et al., Phys. Rev. E 2007)."""

from typing import Any

import numpy as np

import strads

LABELS = 16


def body(k, offsets, neighbours, labels):
    """One vertex; among equally frequent labels it keeps its own, or takes the first."""
    votes = np.zeros(LABELS, np.int32)
    for p in range(offsets[k], offsets[k + 1]):
        votes[labels[neighbours[p]]] += 1
    best = labels[k]
    for label in range(LABELS):
        if votes[label] > votes[best]:
            best = label
    labels[k] = best


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A graph with degrees by a power law, most of its edges within one of 16 communities."""
    rng = np.random.default_rng(seed)
    vertices, edges = int(2_000_000 * scale), int(15_000_000 * scale)
    one = (vertices * rng.random(edges) ** 2).astype(int)
    other = (vertices * rng.random(edges) ** 2).astype(int)
    other = np.where(rng.random(edges) < 0.7, other // LABELS * LABELS + one % LABELS, other) % vertices
    names = rng.permutation(vertices)
    ends, others = names[np.concatenate([one, other])], names[np.concatenate([other, one])]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=vertices))])
    neighbours = others[np.argsort(ends, kind="stable")].astype("i4")
    labels = rng.integers(0, LABELS, vertices)
    return vertices, tuple(strads.dvector(table, copy=False) for table in (offsets, neighbours, labels))


def objective(offsets, neighbours, labels) -> float:
    """Share of edges between different labels."""
    offsets, labels = offsets.to_numpy(), labels.to_numpy()
    return float(np.mean(np.repeat(labels, np.diff(offsets)) != labels[neighbours.to_numpy()]))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: cut edges {objective(*arguments):.4f}")
