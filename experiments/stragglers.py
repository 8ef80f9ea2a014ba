"""What a slow worker costs under BSP, SSP, ESSP and ASP: throughput, and RMSE by ratings and by time.

Matrix factorization by 8 logical workers, two on a node, over an imitated network, for some seconds under each model.
The straggler computes five times as long as the others: one worker all the time, or, as with other users' jobs on a
cluster, a worker now and then (each clock of each worker with probability 1/8).

Usage:
    python experiments/stragglers.py [--seconds 25] [--staleness 3] [--slowdown 5]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _parameter_server import Outcome, Point, Setting, ratings_of, train

from strads import ps

STEP = 0.02
FOREVER = 1_000_000


def one_worker(workers: int, times: float) -> Callable[[int, int], float]:
    """Slow down worker 0."""
    return lambda worker, clock: times if worker == 0 else 1.0


def now_and_then(workers: int, times: float) -> Callable[[int, int], float]:
    """Slow down each worker in one of so many clocks as there are workers, at random."""
    return lambda worker, clock: times if np.random.default_rng((worker, clock)).random() < 1 / workers else 1.0


def nobody(workers: int, times: float) -> Callable[[int, int], float]:
    """Slow down nobody."""
    return lambda worker, clock: 1.0


def last_before(curve: list[Point], *, seconds: float = np.inf, samples: float = np.inf) -> float:
    """Return the RMSE at the last point within limits."""
    return [point.rmse for point in curve if point.seconds <= seconds and point.samples <= samples][-1]


def report(name: str, outcome: Outcome, seconds: float, fewest: int, ratings: int) -> str:
    """Return a line of the table."""
    curve = outcome.curve
    return (
        f"  {name:20} {curve[-1].samples / curve[-1].seconds / 1e3:10.1f} {curve[-1].samples / ratings:8.1f} "
        f"{last_before(curve, seconds=seconds / 2):10.4f} {last_before(curve, seconds=seconds):10.4f} "
        f"{last_before(curve, samples=fewest):12.4f} {outcome.staleness.mean:10.2f}"
    )


def main() -> None:
    """Print a table for each straggler."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--staleness", type=int, default=3)
    parser.add_argument("--slowdown", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=25.0, help="of each run")
    parser.add_argument("--clock-seconds", type=float, default=0.2, help="imitated computing time")
    options = parser.parse_args()
    if options.ratings is not None and not options.ratings.is_file():
        parser.error(f"{options.ratings}: no such file")
    setting = Setting(
        ratings_of(options.ratings),
        options.workers,
        epochs=FOREVER,
        clock_seconds=options.clock_seconds,
        nodes=options.workers // 2,
    )
    ratings, s = len(setting.ratings.scores), options.staleness
    for straggler in (nobody, one_worker, now_and_then):
        outcomes = {}
        for consistency in (ps.BSP(), ps.SSP(s), ps.ESSP(s), ps.ASP()):
            slowdown = straggler(options.workers, options.slowdown)
            outcomes[repr(consistency)] = train(
                setting, consistency, STEP, slowdown=slowdown, looks=10, limit=options.seconds
            )
        fewest = min(outcome.curve[-1].samples for outcome in outcomes.values())
        print(f"\nslowed down {options.slowdown:g} ×: {straggler.__name__.replace('_', ' ')}")
        print(f"  {'':20} 1,000 rat-   epochs   RMSE after             after {fewest / ratings:4.1f}       mean")
        print(
            f"  {'':20}     ings/s          {options.seconds / 2:9.0f} s {options.seconds:8.0f} s"
            "       epochs  staleness"
        )
        for name, outcome in outcomes.items():
            print(report(name, outcome, options.seconds, fewest, ratings), flush=True)


if __name__ == "__main__":
    main()
