"""Greedy maximal matching: an edge is taken if both of its ends are still free (Blelloch et al., SPAA 2012)."""

from typing import Any

import numpy as np

import strads


def body(k, edges, mate):
    """One edge."""
    e = edges[k]
    a, b = e[0], e[1]
    if a != b and mate[a] < 0 and mate[b] < 0:
        mate[a] = b
        mate[b] = a


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A graph with degrees by a power law, its edges in random order."""
    rng = np.random.default_rng(seed)
    vertices, count = int(8_000_000 * scale), int(60_000_000 * scale)
    names = rng.permutation(vertices).astype(np.int32)
    edges = names[(vertices * rng.random((count, 2)) ** 2).astype(np.int32)]
    return count, (strads.dvector(edges, copy=False), strads.dvector.full(vertices, -1, "i4"))


def next_epoch(epoch: int, edges: strads.dvector, mate: strads.dvector) -> None:
    """Start anew."""
    mate[:] = -1


def objective(edges: strads.dvector, mate: strads.dvector) -> float:
    """Share of the vertices that stay free."""
    return float(np.mean(mate.to_numpy() < 0))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"free vertices: {objective(*arguments):.4f}")
