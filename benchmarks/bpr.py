"""Bayesian personalized ranking: `BayesianPersonalizedRanking` against implicit, 2 threads each, equal parameters.

Samples are liked items visited; both sides skip those for which they draw another like. AUC is that of held-out likes,
by one formula from the factors of both. Neither side's time has compiling, reading or the evaluation in it. Part
`backends` needs no peer: 2 MPI processes with 1 thread each against 2 threads, and the SHA-256 of each model.

Usage, with the peer installed (pip install implicit==0.7.3):
    python benchmarks/bpr.py [--part movielens generated backends] [--rounds 3] [--scale 1.0]
"""

import argparse
import gzip
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse

import strads
from strads import cluster
from strads.models import BayesianPersonalizedRanking
from strads.models.ranking.evaluation import mean_auc
from strads.models.ranking.likes import Likes
from strads.models.ranking.training import RankingFactors

MOVIELENS = Path(__file__).resolve().parents[1] / "../shared/data/ml-100k/u.data.gz"
THREADS = 2


def split(users: np.ndarray, items: np.ndarray, share: float, seed: int = 0) -> tuple:
    """Return likes and held-out likes as sparse matrices of ones."""
    shape = int(users.max()) + 1, int(items.max()) + 1
    held = np.random.default_rng(seed).random(len(users)) < share
    found = []
    for some in (~held, held):
        matrix = scipy.sparse.csr_matrix((np.ones(some.sum(), np.float32), (users[some], items[some])), shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        found.append(matrix)
    return tuple(found)


def movielens() -> tuple:
    with gzip.open(MOVIELENS) as file:
        users, items, *_ = np.loadtxt(file, dtype=int).T - 1
    return split(users, items, 0.1)


def generated(scale: float, groups: int = 50) -> tuple:
    """Users take items of their own group with probability 0.6; items are popular by a power law."""
    rng = np.random.default_rng(1)
    n_users, n_items, count = int(60_000 * scale), int(20_000 * scale), int(4_000_000 * scale)
    users = (n_users * rng.random(count) ** 1.5).astype(int)
    places = (n_items * rng.random(count) ** 2.5).astype(int)  # by popularity
    own = rng.random(count) < 0.6
    places[own] = np.minimum(places[own] // groups * groups + users[own] % groups, n_items - 1)
    return split(rng.permutation(n_users)[users], rng.permutation(n_items)[places], 0.05)


def measure(likes: scipy.sparse.csr_matrix, rest: scipy.sparse.csr_matrix, rounds: int, **parameters: float) -> None:
    """Print AUC and samples a second of both sides, and the ratio."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking as Implicit

    known, held_out = Likes.of_matrix(likes), Likes.of_matrix(rest)
    samples = likes.nnz * parameters["iterations"]
    model = BayesianPersonalizedRanking(**parameters | {"iterations": 1}, n_jobs=THREADS)
    begin = time.perf_counter()
    model.fit(likes)
    print(f"{likes.nnz:,} likes, {parameters}; the first epoch with compiling {time.perf_counter() - begin:.1f} s")
    ratios, areas = [], []
    for seed in range(rounds):
        model = BayesianPersonalizedRanking(**parameters, random_state=seed, n_jobs=THREADS)
        begin = time.perf_counter()
        model.fit(likes)
        own = time.perf_counter() - begin
        peer = Implicit(**parameters, num_threads=THREADS, random_state=seed)
        begin = time.perf_counter()
        peer.fit(likes, show_progress=False)
        other = time.perf_counter() - begin
        tables = peer.user_factors[:, :-1], peer.item_factors[:, :-1], peer.item_factors[:, -1]
        factors = RankingFactors(*(np.ascontiguousarray(table) for table in tables))
        areas.append((model.auc(rest), mean_auc(factors, known, held_out, cluster.current().team())))
        ratios.append(other / own)
        print(f"  strads {samples / own / 1e6:6.1f} M samples/s, AUC {areas[-1][0]:.4f}; "
              f"implicit {samples / other / 1e6:6.1f}, {areas[-1][1]:.4f}", flush=True)  # fmt: skip
    difference = np.subtract(*np.mean(areas, axis=0))
    print(f"{np.median(ratios):.2f} × implicit's samples/s (target ≥ 1.5), AUC {difference:+.4f} (target ≥ -0.002)\n")


def train_here(scale: float) -> None:
    """Train on whatever `strads.init` finds; print samples a second and the SHA-256 of the model."""
    likes, _ = generated(scale)
    model = BayesianPersonalizedRanking(64, iterations=8)
    model.fit(likes)
    history = model.fit(likes).history_
    rate = (history[-1]["samples"] - history[0]["samples"]) / (history[-1]["seconds"] - history[0]["seconds"])
    tables = model.user_factors_, model.item_factors_, model.item_biases_
    print(rate, hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest())


def backends(rounds: int, scale: float) -> None:
    """Print the ratio of 2 MPI processes × 1 thread to 1 × 2 threads."""
    alone = [sys.executable, __file__, "--train", "2", "--scale", str(scale)]
    mpi = ["mpiexec", "--oversubscribe", "-n", "2", sys.executable, __file__, "--train", "1", "--scale", str(scale)]
    ratios, bits = [], set()
    for _ in range(rounds):
        found = [subprocess.run(command, capture_output=True, text=True, check=True) for command in (alone, mpi)]
        (here, *_), (there, *_) = (lines := [run.stdout.split() for run in found])
        bits |= {line[1] for line in lines}
        ratios.append(float(there) / float(here))
        print(f"  threads {float(here) / 1e6:.1f} M samples/s, MPI {float(there) / 1e6:.1f}", flush=True)
    print(f"2 MPI nodes × 1 thread: {np.median(ratios):.2f} × threads 1 × 2 (target ≥ 0.85); "
          f"{'the same bits' if len(bits) == 1 else 'DIFFERENT bits'}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["movielens", "generated", "backends"]
    parser.add_argument("--part", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the generated likes")
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train is not None:
        with strads.init(threads=given.train):
            train_here(given.scale)
        return
    with strads.init("threads", threads=THREADS):
        if "movielens" in given.part:
            for factors in (32, 100):
                measure(*movielens(), given.rounds, factors=factors, iterations=100)
        if "generated" in given.part:
            measure(*generated(given.scale), given.rounds, factors=64, iterations=20, learning_rate=0.05)
    if "backends" in given.part:
        backends(given.rounds, given.scale)


if __name__ == "__main__":
    main()
