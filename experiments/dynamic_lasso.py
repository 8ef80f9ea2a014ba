"""Progress per sample of schedules for Lasso (thesis fig. 3.2, 3.4 and 5.4; EuroSys fig. 10).

Samples, in passes over X, until the objective is within a thousandth of the optimum, from w = 0; an update counts the
entries of its column once, and once more if the coefficient changes. "kkt violation" counts its looks at all columns
too. On one node, so each round sees what all before it have changed.

Usage:
    python experiments/dynamic_lasso.py [--concurrency 256]
"""

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
from _block_correlated import Lasso, block_correlated, samples_until

from strads.cluster import ThreadTeam
from strads.models.regression.scheduled import solve_scheduled
from strads.models.regression.working_set import solve
from strads.schedule.dependencies import dense_dependencies
from strads.schedule.dynamic import CompiledSchedule, CyclicSchedule, DynamicRegression, RandomSchedule

MOST = 150.0  # passes
PROBLEMS = {
    "blocks of 12": lambda: block_correlated(1000, 24_000, 12, 0.05),
    "blocks of 60": lambda: block_correlated(1000, 6_000, 60, 0.1),
}


def schedules(lasso: Lasso, concurrency: int) -> Iterator[tuple[str, Callable[[], CompiledSchedule]]]:
    """Return schedules by name."""
    parameters, scales = range(lasso.X.shape[1]), np.full(lasso.X.shape[1], math.sqrt(len(lasso.y)))

    def dynamic(**options) -> DynamicRegression:
        dependencies = dense_dependencies(lasso.X, concurrency)
        return DynamicRegression(parameters, concurrency, dependencies=dependencies, scales=scales, **options)

    yield "random (Shotgun)", lambda: RandomSchedule(parameters, concurrency)
    yield "cyclic", lambda: CyclicSchedule(parameters, concurrency)
    yield "prioritized, no check", lambda: dynamic(check_dependencies=False)
    yield "check, not prioritized", lambda: dynamic(prioritize=False)
    yield "both, pairs only", lambda: dynamic(crowding=math.inf)
    yield "both (dynamic_regression)", dynamic


def shown(passes: float, objective: float, target: float) -> str:
    """Say how it ended."""
    if objective <= target:
        return f"{passes:9.2f}"
    return f"stalls at {objective / target * 1.001:.3g}" if passes > MOST else f"diverges ({passes:.1f})"


def kkt_violation(lasso: Lasso, concurrency: int, target: float) -> tuple[float, float]:
    """Return passes, looks counted, and the objective then."""
    found: list[tuple[float, float]] = []

    def look(progress):
        found.append((progress.samples / lasso.X.size, progress.objective))
        return progress.objective <= target

    solve_scheduled(lasso.problem(), "kkt_violation", concurrency=concurrency, tol=1e-9, on_progress=look)
    return found[-1]


def by_width(concurrency: int, team: ThreadTeam) -> None:
    """Print passes of random and of dynamic updates as blocks grow, of 1000 × 6,000 at λmax / 10."""
    print(f"{concurrency} updates at once, blocks of")
    for block in (24, 40, 50, 60, 75, 100):
        lasso = block_correlated(1000, 6_000, block, 0.1)
        solution = solve(lasso.problem(), tol=1e-8, max_iter=100)
        target = 1.001 * (solution.objective - solution.gap)
        row = [f"  {block:5}:"]
        for label, build in schedules(lasso, concurrency):
            if label.startswith(("random", "both (")):
                passes, objective, _ = samples_until(lasso, build(), target, MOST, team)
                row.append(f"{label} {shown(passes, objective, target).strip()}")
        print("  ".join(row), flush=True)


def main() -> None:
    """Print a table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", type=int, default=256)
    concurrency = parser.parse_args().concurrency
    with closing(ThreadTeam(2)) as team, np.errstate(over="ignore", invalid="ignore"):
        for name, make in PROBLEMS.items():
            lasso = make()
            solution = solve_scheduled(lasso.problem(), "kkt_violation", concurrency=32, tol=1e-8)
            target = 1.001 * (solution.objective - solution.gap)
            print(f"{name}: X {lasso.X.shape}, {np.count_nonzero(solution.coef)} coefficients not 0 at the optimum")
            print(f"  {concurrency} updates at once{'':13}passes   updates a round")
            for label, build in schedules(lasso, concurrency):
                passes, objective, size = samples_until(lasso, build(), target, MOST, team)
                print(f"  {label:28} {shown(passes, objective, target):>16} {size:8.0f}", flush=True)
            print(f"  {'kkt_violation':28} {shown(*kkt_violation(lasso, concurrency, target), target):>16}", flush=True)
            for at_once in (16, 64, 512, 1024):
                row = [f"  {at_once:5} at once:"]
                for label, build in schedules(lasso, at_once):
                    if label.startswith(("random", "both (")):
                        passes, objective, _ = samples_until(lasso, build(), target, MOST / 3, team)
                        row.append(f"{label} {shown(passes, objective, target).strip()}")
                print("  ".join(row), flush=True)
        by_width(concurrency, team)


if __name__ == "__main__":
    main()
