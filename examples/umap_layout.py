"""UMAP's layout of a k-nearest-neighbour graph as an ordinary loop: seeded, and parallel (McInnes et al. 2018, §4.2).

A point is pulled towards its neighbours in the graph and pushed away from random points. It moves itself only, and sees
others as they were when the epoch began (`strads.snapshot`): so all points move in parallel, and the picture depends on
the seed alone, not on the number of threads or nodes.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

import strads

PUSHES = 5  # for each pull
A, B = 1.577, 0.895  # of the curve 1 / (1 + a·d²ᵇ) for min_dist = 0.1


def move(i, position, before, edges, ends, rates, step, rng):
    """Move point i by each of its edges, with a probability that is the weight of the edge."""
    p, due = position[i], rng.random()
    for e in range(edges[i], edges[i + 1]):
        due += rates[e]
        if due < 1.0:
            continue
        due -= 1.0
        q = before[ends[e]]
        x, y = p[0] - q[0], p[1] - q[1]
        square = x * x + y * y + 1e-9
        power = A * square**B
        pull = -4.0 * B * power / (square * (1.0 + power))  # twice UMAP's, which moves both ends
        right, up = p[0] + step * min(max(pull * x, -4.0), 4.0), p[1] + step * min(max(pull * y, -4.0), 4.0)
        p[0], p[1] = right, up
        for _ in range(PUSHES):
            q = before[rng.integers(len(before))]
            x, y = right - q[0], up - q[1]
            square = x * x + y * y
            push = 2.0 * B / ((0.001 + square) * (1.0 + A * square**B))
            p[0] += step * min(max(push * x, -4.0), 4.0)
            p[1] += step * min(max(push * y, -4.0), 4.0)


def layout(graph: Any, start: NDArray[np.float32], epochs: int = 200, seed: int = 0) -> NDArray[np.float32]:
    """Lay out the points of a weighted graph, a sparse matrix of shape (n, n), from positions of shape (n, 2)."""
    graph = graph.tocsr()
    rates = (graph.data / graph.data.max()).astype(np.float32)
    position, rng = strads.dvector(start), strads.random(seed)
    # As tables: whether an array has changed, each call would have to find out.
    edges, ends, rates = map(strads.dvector, (graph.indptr, graph.indices, rates))
    for epoch in range(epochs):
        before, step = strads.snapshot(position), 1.0 - epoch / epochs
        strads.async_for(len(start), move, position, before, edges, ends, rates, step, rng)
    return position.to_numpy()


def neighbour_graph(points: NDArray[np.floating], k: int = 15) -> Any:
    """Return the k-nearest-neighbour graph with UMAP's weights (§3.1): Σ exp(−(d − ρ)/σ) = log₂ k for each point."""
    distances, ends = NearestNeighbors(n_neighbors=k).fit(points).kneighbors()
    nearest = distances[:, :1]
    low, high = np.zeros_like(nearest), np.full_like(nearest, distances.max() * 100)
    for _ in range(60):
        middle = (low + high) / 2
        too_many = np.exp((nearest - distances) / middle).sum(1, keepdims=True) > np.log2(k)
        low, high = np.where(too_many, low, middle), np.where(too_many, middle, high)
    weights = np.exp((nearest - distances) / high)
    rows = np.arange(0, ends.size + 1, k)
    graph = scipy.sparse.csr_array((weights.ravel(), ends.ravel(), rows), shape=(len(points), len(points)))
    return graph + graph.T - graph.multiply(graph.T)


def main() -> None:
    """Lay out 2,000 points in 12 blobs of 20 dimensions, and draw them."""
    points, blobs = make_blobs(2_000, 20, centers=12, cluster_std=2.5, random_state=0)
    start = PCA(2, random_state=0).fit_transform(points).astype(np.float32)
    found = layout(neighbour_graph(points), 10.0 * start / np.abs(start).max())
    print(f"trustworthiness {trustworthiness(points, found):.4f}, as of principal components: ", end="")
    print(f"{trustworthiness(points, start):.4f}")
    try:
        from matplotlib import pyplot
    except ImportError:
        print("for a picture: pip install matplotlib")
        return
    pyplot.figure(figsize=(8, 8))
    pyplot.scatter(*found.T, c=blobs, s=4, cmap="tab20")
    pyplot.axis("off")
    pyplot.savefig("umap_layout.png", dpi=120)
    print("umap_layout.png")


if __name__ == "__main__":
    main()
