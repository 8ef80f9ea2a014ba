"""Macro against micro synchronization, heaviest-first against first-come-first-served (thesis §4.3.5: 1.3 × each).

*Micro* holds the nodes at a barrier after each stage of the plan; *FIFO* takes of the ready jobs that which has been
ready longest. The order of updates is the plan's in all variants, so after equal samples the factors are the same bits.
All variants have tables of their own and run an epoch each in turn; a variant's figure is its median epoch.

Part 1 computes: SGD matrix factorization on 2 logical nodes × 1 thread, which on 2 cores is real parallelism, over
imitated networks. Part 2 is a scale model of more workers than cores: a task sleeps for half a millisecond, as if a
core of its own were busy with some thousand ratings of an item. Items are drawn from power laws; what matters is the
heaviest item's share of all work, as a multiple of the share of a worker. Usage:

    python benchmarks/synchronization.py [--ratings 10000000] [--rank 40] [--epochs 7] [--part 1 2]
"""

import argparse
import ctypes
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _ratings import ITEMS, USERS, generate_ratings, item_share
from backends import LEARNING_RATE, REGULARIZATION, initial, sgd

import strads
from strads.loops.driver import run_loop
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.specs import LoopOptions

# Name → latency in seconds, bytes per second of a node.
NETWORKS: dict[str, tuple[float, float | None]] = {
    "memory": (0.0, None),
    "20 Gbit/s, 0.05 ms": (5e-5, 20e9 / 8),
    "1 Gbit/s, 0.1 ms": (1e-4, 1e9 / 8),
    "1 Gbit/s, 0.5 ms": (5e-4, 1e9 / 8),
    "1 Gbit/s, 1 ms": (1e-3, 1e9 / 8),
}
# Exponent and flattening of the items' power law: see `item_share`.
SKEWS = ((0.0, 1.0), (0.9, 20.0), (1.0, 1.0), (1.6, 1.0))
MODEL_SKEWS = ((0.9, 20.0), (0.9, 1.0), (1.0, 1.0), (1.1, 1.0))
MODEL_CLUSTERS = ((2, 4), (4, 4))  # nodes, threads of each
MODEL_NETWORK = "1 Gbit/s, 1 ms"
TASKS, TASK_MICROSECONDS = 2_000, 500  # for each worker of the scale model
VARIANTS: dict[str, dict[str, Any]] = {"macro": {}, "micro": {"micro_sync": True}, "fifo": {"job_order": "fifo"}}


usleep = ctypes.CDLL(None).usleep
usleep.argtypes, usleep.restype = (ctypes.c_uint,), ctypes.c_int


def pretend(k, ratings, W, H, microseconds):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    w[0] += h[0]
    h[0] += 1
    usleep(microseconds)


@dataclass
class Run:
    """One variant's tables, and what was seen."""

    options: dict[str, Any]
    W: strads.dvector
    H: strads.dvector
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    same: bool = False  # whether its factors are those of macro synchronization, bit by bit

    def equals(self, other: "Run") -> bool:
        """Whether the factors of two variants are the same bits."""
        return all(
            np.array_equal(mine.to_numpy(), others.to_numpy())
            for mine, others in ((self.W, other.W), (self.H, other.H))
        )

    def run(self, ratings: strads.dvector, body: Callable[..., None], *others: Any) -> strads.LoopStatistics:
        """Run a loop over ratings as `async_for` does, with options that it does not offer."""
        cluster = strads.cluster.current().cluster
        indices, arguments = LoopIndices.of(len(ratings)), (ratings, self.W, self.H, *others)
        return run_loop(cluster, body, arguments, indices, LoopOptions(**self.options), record_order=False)

    def train(self, ratings: strads.dvector) -> None:
        """Compute an epoch."""
        loss = strads.accumulator(0.0)
        stats = self.run(ratings, sgd, LEARNING_RATE, REGULARIZATION, loss)
        self.seconds.append(stats.seconds)
        self.losses.append(loss.value / len(ratings))

    def sleep(self, ratings: strads.dvector) -> None:
        """Pretend to compute an epoch."""
        stats = self.run(ratings, pretend, TASK_MICROSECONDS)
        self.seconds.append(stats.seconds)


def compare(
    data: np.ndarray,
    factors: tuple[np.ndarray, np.ndarray],
    cluster: tuple[int, int],
    network: str,
    epochs: int,
    epoch: Callable[[Run, strads.dvector], None],
) -> dict[str, Run]:
    """Run an epoch of each variant in turn."""
    latency, bandwidth = NETWORKS[network]
    with strads.init("threads", nodes=cluster[0], threads=cluster[1], latency=latency, bandwidth=bandwidth):
        ratings = strads.from_numpy(data, copy=False)
        runs = {
            name: Run(options, *(strads.from_numpy(array) for array in factors)) for name, options in VARIANTS.items()
        }
        for _ in range(epochs + 1):  # the first compiles and plans
            for run in runs.values():
                epoch(run, ratings)
        for run in runs.values():
            run.same = run.equals(runs["macro"])
    return runs


def ratios(runs: dict[str, Run]) -> tuple[float, str]:
    """Median epoch of macro synchronization, and what the others take in comparison."""
    seconds = {name: statistics.median(run.seconds[1:]) for name, run in runs.items()}
    macro = seconds["macro"]
    same = "same factors" if all(run.same for run in runs.values()) else "OTHER FACTORS"
    return macro, f"{seconds['micro'] / macro:9.2f} ×  {seconds['fifo'] / macro:11.2f} ×  {same}"


def computing(count: int, rank: int, epochs: int) -> None:
    """Part 1."""
    print(f"\n{count:,} ratings, rank {rank}, 2 nodes × 1 thread; median of {epochs} epochs")
    print(f"{'heaviest item':>13}  {'network':18}  {'M ratings/s':>11}  micro/macro  FIFO/heaviest")
    for skew, flat in SKEWS:
        data = generate_ratings(count, skew=skew, flat=flat)
        for network in NETWORKS:
            runs = compare(data, initial(rank), (2, 1), network, epochs, Run.train)
            seconds, others = ratios(runs)
            share, losses = item_share(skew, flat)[0] * 2, [run.losses[-1] for run in runs.values()]
            print(
                f"{share:11.3f} ×  {network:18}  {count / seconds / 1e6:11.1f}  {others}, "
                f"losses {', '.join(f'{loss:.5f}' for loss in losses)}",
                flush=True,
            )


def scale_model(rank: int, epochs: int) -> None:
    """Part 2."""
    task = f"{TASKS:,} tasks of {TASK_MICROSECONDS / 1000} ms a worker"
    print(f"\nscale model, {task}, network {MODEL_NETWORK}; median of {epochs} epochs")
    print(f"{'nodes':>5}  {'heaviest item':>13}  {'seconds':>7}  micro/macro  FIFO/heaviest")
    factors = tuple(np.zeros((rows, rank), np.float32) for rows in (USERS, ITEMS))
    for nodes, threads in MODEL_CLUSTERS:
        workers = nodes * threads
        for skew, flat in MODEL_SKEWS:
            data = generate_ratings(TASKS * workers, skew=skew, flat=flat)
            runs = compare(data, factors, (nodes, threads), MODEL_NETWORK, epochs, Run.sleep)
            seconds, others = ratios(runs)
            share = item_share(skew, flat)[0] * workers
            print(f"{nodes:2} × {threads:1}  {share:11.3f} ×  {seconds:7.2f}  {others}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--rank", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--part", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    options = parser.parse_args()
    print("heaviest item: its share of the work, as a multiple of a worker's")
    if 1 in options.part:
        computing(options.ratings, options.rank, options.epochs)
    if 2 in options.part:
        scale_model(options.rank, min(options.epochs, 3))


if __name__ == "__main__":
    main()
