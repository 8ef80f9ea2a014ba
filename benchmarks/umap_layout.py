"""The layout epochs of UMAP: `examples/umap_layout.py` on 2 threads against seeded umap-learn, which uses one.

Both sides get umap-learn's graph and the same start (principal components); the time is that of the epochs alone,
compiling excluded. Trustworthiness is that of 15 neighbours (on 100,000 points, of a sample of 3,000 of them).

Usage, with the peer installed (pip install umap-learn==0.5.12):
    python benchmarks/umap_layout.py [--part isolet blobs] [--rounds 3] [--scale 1.0]
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import scipy.io
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

import strads

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from umap_layout import layout  # noqa: E402

K, SAMPLE, THREADS = 15, 3_000, 2


def trustworthiness(points: np.ndarray, found: np.ndarray) -> float:
    """Venna and Kaski 2001, equation 1, of a sample of the points."""
    n = len(points)
    sample = np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False)
    neighbours = NearestNeighbors(n_neighbors=K + 1).fit(found).kneighbors(found[sample], return_distance=False)
    total = 0
    for point, near in zip(sample, neighbours, strict=True):
        squares = np.square(points - points[point]).sum(1)
        ranks = [int((squares < squares[other]).sum()) for other in near if other != point][:K]
        total += sum(max(0, rank - K) for rank in ranks)
    return 1.0 - 2.0 * total / (len(sample) * K * (2 * n - 3 * K - 1))


def measure(name: str, points: np.ndarray, epochs: int, rounds: int) -> None:
    """Print seconds and trustworthiness of both sides, and their ratio."""
    import umap.umap_ as peer  # takes seconds, and `--help` does without

    points = points.astype(np.float32)
    graph, *_ = peer.fuzzy_simplicial_set(points, K, np.random.RandomState(0), "euclidean")
    graph = graph.tocsr()
    graph.data[graph.data < graph.data.max() / epochs] = 0.0
    graph.eliminate_zeros()
    edges = graph.tocoo()
    periods = peer.make_epochs_per_sample(edges.data, epochs)
    start = PCA(2, random_state=0).fit_transform(points)
    start = (10 * (start - start.min(0)) / (start.max(0) - start.min(0))).astype(np.float32)
    a, b = peer.find_ab_params(1.0, 0.1)

    def of_peer(seed: int, count: int) -> np.ndarray:
        found, state = start.copy(), np.random.RandomState(seed).randint(-(2**31), 2**31 - 1, 3).astype(np.int64)
        return peer.optimize_layout_euclidean(
            found, found, edges.row, edges.col, count, len(points), periods, a, b, state, move_other=True
        )

    def own(seed: int, count: int) -> np.ndarray:
        return layout(graph, start.copy(), count, seed)

    ratios, qualities = [], []
    of_peer(0, 2), own(0, 2)  # compile
    for seed in range(rounds):
        seconds, found = [], []
        for side in (own, of_peer):
            begin = time.perf_counter()
            found.append(side(seed, epochs))
            seconds.append(time.perf_counter() - begin)
        qualities.append([trustworthiness(points, each) for each in found])
        ratios.append(seconds[0] / seconds[1])
        print(f"  strads {seconds[0]:6.2f} s, trustworthiness {qualities[-1][0]:.4f}; "
              f"umap-learn {seconds[1]:6.2f} s, {qualities[-1][1]:.4f}", flush=True)  # fmt: skip
    difference = np.subtract(*np.mean(qualities, axis=0))
    print(f"{name}: {np.median(ratios):.2f} × umap-learn's time (target ≤ 0.6), "
          f"trustworthiness {difference:+.4f} (target ≥ -0.005)\n")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=["isolet", "blobs"], default=["isolet", "blobs"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of blobs' points")
    given = parser.parse_args()
    with strads.init("threads", threads=THREADS):
        if "isolet" in given.part:
            points = scipy.io.loadmat(ROOT / "../shared/data/isolet/isolet.mat")["fea"]
            measure("isolet", points, 500, given.rounds)
        if "blobs" in given.part:
            count = int(100_000 * given.scale)
            points, _ = make_blobs(count, 20, centers=50, cluster_std=2.5, random_state=0)
            measure(f"{count:,} points in blobs", points, 200, given.rounds)


if __name__ == "__main__":
    main()
