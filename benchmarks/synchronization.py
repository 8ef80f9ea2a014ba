"""Macro against micro synchronization, heaviest-first against first-come-first-served (thesis §4.3.5: 1.3 × each).

SGD matrix factorization on 2 logical nodes × 1 thread, which on 2 cores is real parallelism, over imitated networks.
All three variants train tables of their own, an epoch each in turn; a variant's figure is its median epoch. *Micro*
holds the nodes at a barrier after each of the plan's 32 stages; *FIFO* takes of the ready jobs that which has been
ready longest. The order of updates is the plan's in all three, so after equal samples the factors are the same bits.

Items are drawn from power laws. What a heavy item costs depends on its share of the work times the number of workers:
one that has 10% of the ratings is to 2 workers what one with 1% is to 20. Usage:

    python benchmarks/synchronization.py [--ratings 10000000] [--rank 40] [--epochs 7]
"""

import argparse
import statistics
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _ratings import generate_ratings, item_share
from backends import LEARNING_RATE, REGULARIZATION, initial, sgd

import strads

# Name → latency in seconds, bytes per second of a node.
NETWORKS: dict[str, tuple[float, float | None]] = {
    "memory": (0.0, None),
    "20 Gbit/s, 0.05 ms": (5e-5, 20e9 / 8),
    "1 Gbit/s, 0.1 ms": (1e-4, 1e9 / 8),
    "1 Gbit/s, 0.5 ms": (5e-4, 1e9 / 8),
    "1 Gbit/s, 1 ms": (1e-3, 1e9 / 8),
}
# Exponent and flattening of the items' power law: see `item_share`.
SKEWS = ((0.0, 1.0), (0.9, 20.0), (1.0, 1.0), (1.3, 1.0), (1.6, 1.0))
VARIANTS: dict[str, dict[str, Any]] = {"macro": {}, "micro": {"micro_sync": True}, "fifo": {"job_order": "fifo"}}


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

    def epoch(self, ratings: strads.dvector) -> None:
        """Train for an epoch."""
        loss = strads.accumulator(0.0)
        stats = strads.async_for(
            len(ratings), sgd, ratings, self.W, self.H, LEARNING_RATE, REGULARIZATION, loss, **self.options
        )
        self.seconds.append(stats.seconds)
        self.losses.append(loss.value / len(ratings))


def compare(data: np.ndarray, network: str, rank: int, epochs: int) -> dict[str, Run]:
    """Train all variants over one network, in turn."""
    latency, bandwidth = NETWORKS[network]
    with strads.init("threads", nodes=2, threads=1, latency=latency, bandwidth=bandwidth):
        ratings = strads.from_numpy(data, copy=False)
        runs = {
            name: Run(options, *(strads.from_numpy(array) for array in initial(rank)))
            for name, options in VARIANTS.items()
        }
        for _ in range(epochs + 1):
            for run in runs.values():
                run.epoch(ratings)
        for run in runs.values():
            run.same = run.equals(runs["macro"])
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--rank", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=7)
    options = parser.parse_args()
    print(f"{options.ratings:,} ratings, rank {options.rank}, 2 nodes × 1 thread; median of {options.epochs} epochs")
    print(f"{'heaviest item':>14}  {'network':18}  {'M ratings/s':>11}  macro/micro  heaviest/FIFO  loss at the end")
    for skew, flat in SKEWS:
        data = generate_ratings(options.ratings, skew=skew, flat=flat)
        for network in NETWORKS:
            runs = compare(data, network, options.rank, options.epochs)
            seconds = {name: statistics.median(run.seconds[1:]) for name, run in runs.items()}
            macro = runs["macro"]
            same = "same factors" if all(run.same for run in runs.values()) else "OTHER FACTORS"
            print(
                f"{item_share(skew, flat)[0]:14.2%}  {network:18}  {len(data) / seconds['macro'] / 1e6:11.1f}"
                f"  {seconds['micro'] / seconds['macro']:9.2f} ×  {seconds['fifo'] / seconds['macro']:11.2f} ×"
                f"  {macro.losses[-1]:.5f}, {same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
