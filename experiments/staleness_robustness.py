"""What staleness does to SGD matrix factorization under SSP and ESSP (ESSP, "Robustness to Staleness", fig. 2).

At a step that all withstand: epochs until the training RMSE is down to a target, for several values of staleness. At
larger steps: where the factorization diverges. 8 logical workers, two on a node, over an imitated network; an epoch is
over when together they have been through as many ratings as there are; the RMSE is that of what the shards then hold.

Usage:
    python experiments/staleness_robustness.py [--staleness 1 3 5 10 20] [--step 0.01] [--large 0.02 0.03] [--seeds 3]
"""

import argparse
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from _parameter_server import Point, Setting, ratings_of, train

from strads import ps


def epochs_to(curve: list[Point], target: float, ratings: int) -> float:
    """Return when a curve is down to a target, between two points by interpolation; inf if it never is."""
    for before, after in pairwise(curve):
        if after.rmse <= target < before.rmse:
            share = (before.rmse - target) / (before.rmse - after.rmse)
            return (before.samples + share * (after.samples - before.samples)) / ratings
    return math.inf


def at_one_step(setting: Setting, staleness: list[int], step: float, target: float, seeds: int) -> None:
    """Print epochs to the target and the RMSE at the end, of every model, by seed."""
    print(f"step {step}: epochs to RMSE {target} (each seed), and RMSE after {setting.epochs} epochs, mean and spread")
    for consistency in (ps.BSP(), *(model(s) for s in staleness for model in (ps.SSP, ps.ESSP))):
        curves = [train(setting, consistency, step, looks=4, seed=seed).curve for seed in range(seeds)]
        epochs = [epochs_to(curve, target, len(setting.ratings.scores)) for curve in curves]
        last = [curve[-1].rmse for curve in curves]
        each = " ".join(f"{value:6.2f}" for value in epochs)
        print(
            f"  {consistency!r:20} {np.mean(epochs):6.2f} ({each})   {np.mean(last):.4f} ± {np.std(last):.4f}",
            flush=True,
        )


def at_large_steps(setting: Setting, staleness: list[int], steps: list[float]) -> None:
    """Print the RMSE at the end by step and model."""
    print(f"\nRMSE after {setting.epochs} epochs, by step (inf: diverged)")
    print(f"  {'':20}" + "".join(f"{step:>10}" for step in steps))
    for consistency in (ps.BSP(), *(model(s) for s in staleness for model in (ps.SSP, ps.ESSP))):
        print(f"  {consistency!r:20}", end="")
        for step in steps:
            print(f"{train(setting, consistency, step).curve[-1].rmse:10.4f}", end="", flush=True)
        print()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--staleness", type=int, nargs="+", default=[1, 3, 5, 10, 20])
    parser.add_argument("--step", type=float, default=0.01)
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--large", type=float, nargs="*", default=[0.02, 0.03])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clock-seconds", type=float, default=0.1, help="imitated computing time")
    options = parser.parse_args()
    if options.ratings is not None and not options.ratings.is_file():
        parser.error(f"{options.ratings}: no such file")
    setting = Setting(
        ratings_of(options.ratings),
        options.workers,
        epochs=options.epochs,
        clock_seconds=options.clock_seconds,
        nodes=options.workers // 2,
    )
    if options.seeds:
        at_one_step(setting, options.staleness, options.step, options.target, options.seeds)
    if options.large:
        at_large_steps(setting, options.staleness, options.large)


if __name__ == "__main__":
    main()
