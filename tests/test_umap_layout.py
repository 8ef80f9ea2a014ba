"""The example that lays out points as UMAP does: neighbours stay together, on any threads and nodes alike."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from loading import load
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

import strads


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load(Path(__file__).parents[1] / "examples" / "umap_layout.py")


def test_neighbours_stay_together_whatever_the_threads_and_nodes(example):
    points, _ = make_blobs(400, 12, centers=6, cluster_std=3.0, random_state=0)
    start = PCA(2, random_state=0).fit_transform(points).astype(np.float32)
    graph = example.neighbour_graph(points)
    found = []
    for where in ({"threads": 1}, {"threads": 3}, {"nodes": 2, "threads": 1}):
        with strads.init("threads", **where):
            found.append(example.layout(graph, start / np.abs(start).max() * 10, epochs=60, seed=1))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    assert trustworthiness(points, found[0]) > trustworthiness(points, start) + 0.01


def test_weights_of_the_neighbour_graph(example):
    points = np.random.default_rng(0).normal(size=(60, 3))
    graph = example.neighbour_graph(points, k=8).toarray()
    np.testing.assert_allclose(graph, graph.T)
    assert graph.max(1) == pytest.approx(1.0)  # of the nearest neighbour
    assert ((graph > 0).sum(1) >= 8).all()
