"""Negatives drawn by `rng.near` beside uniform ones: accuracy and speed of Bayesian personalized ranking as a loop.

`near` runs as a rotation, and draws the other item from the block at hand; `all rows` is the same loop by one job,
which draws from all items; `plain` is the loop that Numba compiles, on one thread, which draws from all items, too. AUC
is that of held-out likes. A call that deals rows anew is timed apart. Usage:

    python benchmarks/near.py [--part movielens generated] [--epochs 80] [--scale 1.0] [--threads 2]
"""

import argparse
import statistics
import time
from math import exp

import bpr
import numpy as np
from numba import njit

import strads
from strads import cluster
from strads.models.ranking.evaluation import mean_auc
from strads.models.ranking.likes import Likes
from strads.models.ranking.training import RankingFactors
from strads.schedule.strategies.dealing import DEAL_EVERY

RANK, RATE, PENALTY = 32, 0.05, 0.01


def rank(k, likes, U, V, rng, rate, penalty):
    u, i = U[likes[k, 0]], V[likes[k, 1]]
    n = rng.near(V)
    if n != likes[k, 1]:
        j = V[n]
        difference = 0.0
        for f in range(len(u)):
            difference += u[f] * (i[f] - j[f])
        step = 1.0 / (1.0 + exp(difference))
        for f in range(len(u)):
            uf, gap = u[f], i[f] - j[f]
            u[f] += rate * (step * gap - penalty * uf)
            i[f] += rate * (step * uf - penalty * i[f])
            j[f] -= rate * (step * uf + penalty * j[f])


@njit(fastmath=True, error_model="numpy")
def plain(likes, U, V, rate, penalty):
    one = np.float32(1)
    for k in range(len(likes)):
        u, i = U[likes[k, 0]], V[likes[k, 1]]
        n = np.random.randint(len(V))  # noqa: NPY002 - the generator that Numba compiles
        if n != likes[k, 1]:
            j = V[n]
            difference = np.float32(0)
            for f in range(len(u)):
                difference += u[f] * (i[f] - j[f])
            step = one / (one + exp(difference))
            for f in range(len(u)):
                uf, gap = u[f], i[f] - j[f]
                u[f] += rate * (step * gap - penalty * uf)
                i[f] += rate * (step * uf - penalty * i[f])
                j[f] -= rate * (step * uf + penalty * j[f])


class Side:
    """One way to train; `seconds` are those of each epoch."""

    def __init__(self, name: str, likes: np.ndarray, shape: tuple[int, int], seed: int, threads: int):
        self.name, self.threads = name, threads
        self.U, self.V = (strads.dvector.normal((n, RANK), std=0.1, seed=2 * seed + t) for t, n in enumerate(shape))
        self.array = likes
        self.likes, self.rng = strads.dvector(likes), strads.random(seed)
        self.wall: list[float] = []
        self.cpu: list[float] = []
        if name == "plain":
            self.plain = self.U.to_numpy().copy(), self.V.to_numpy().copy()
            plain(likes[:1], *(a.copy() for a in self.plain), np.float32(RATE), np.float32(PENALTY))

    def epoch(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        if self.name == "plain":
            plain(self.array, *self.plain, np.float32(RATE), np.float32(PENALTY))
        else:
            strategy = "sequential" if self.name == "all rows" else "auto"
            table = self.likes, self.U, self.V, self.rng, RATE, PENALTY
            self.stats = strads.async_for(len(self.array), rank, *table, strategy=strategy, threads=self.threads)
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.plain if self.name == "plain" else (self.U.to_numpy(), self.V.to_numpy())

    def times(self, *, dealt: bool) -> tuple[float, float]:
        """Median of wall and CPU seconds of the epochs that deal rows anew, or of the others, after the first."""
        chosen = [e for e in range(1, len(self.wall)) if (e % DEAL_EVERY == 0) == dealt]
        return tuple(statistics.median(times[e] for e in chosen) for times in (self.wall, self.cpu))  # type: ignore[return-value]


def auc(users: np.ndarray, items: np.ndarray, train, held) -> float:
    factors = RankingFactors(users, items, np.zeros(len(items), np.float32))
    return mean_auc(factors, Likes.of_matrix(train), Likes.of_matrix(held), cluster.current().team())


def compare(name: str, train, held, epochs: int, seeds: int, threads: int) -> None:
    likes = np.stack(train.nonzero(), axis=1).astype(np.int32)
    likes = likes[np.random.default_rng(0).permutation(len(likes))]
    print(f"{name}: {len(likes):,} likes of {train.shape[0]:,} users and {train.shape[1]:,} items, {RANK} factors")
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        sides = [Side(side, likes, train.shape, seed, threads) for side in ("near", "all rows", "plain")]
        for _ in range(epochs):
            for side in sides:
                side.epoch()
        for side in sides:
            found.setdefault(side.name, []).append(auc(*side.factors(), train, held))
    base = sides[-1].times(dealt=False)
    for side in sides:
        wall, cpu = side.times(dealt=False)
        dealt = side.times(dealt=True)
        print(
            f"  {side.name:9} AUC {np.mean(found[side.name]):.4f}  an epoch {wall:.4f} s, {cpu:.4f} s of CPU time: "
            f"{base[0] / wall:.2f} × plain, {base[1] / cpu:.2f} by CPU; every {DEAL_EVERY}th {dealt[1] / cpu:.2f} × CPU"
        )
    print("  " + sides[0].stats.plan.explain().replace("\n", "\n  "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", default=["movielens", "generated"])
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if "movielens" in options.part:
        compare("MovieLens 100K", *bpr.movielens(), options.epochs, options.seeds, options.threads)
    if "generated" in options.part:
        compare("generated", *bpr.generated(options.scale), min(options.epochs, 13), 1, options.threads)


if __name__ == "__main__":
    main()
