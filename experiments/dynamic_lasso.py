"""Progress per sample of schedules for Lasso (thesis fig. 3.2, 3.4 and 5.4; EuroSys fig. 10).

Samples, in passes over X, until the objective is within a thousandth of the optimum, from w = 0; an update counts the
entries of its column once, and once more if the coefficient changes. "kkt violation" counts its looks at all columns
too, but not the one that finds the target reached, as the other schedules are looked at for nothing. On one node, so
each round sees what all before it have changed.

Usage:
    python experiments/dynamic_lasso.py [--concurrency 256] [--problems NAME …]
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import numpy as np
from _block_correlated import Lasso, block_correlated, samples_until

from strads.cluster import ThreadTeam
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.models import CoordinateDescent, WorkingSet
from strads.schedule.dynamic.dependencies import dense_dependencies
from strads.schedule.dynamic.schedules import CompiledSchedule, CyclicSchedule, PrioritySchedule, RandomSchedule

MOST = 150.0  # passes
PROBLEMS = {
    "463 × 200,004 in blocks of 12, λmax / 50": lambda: block_correlated(463, 200_004, 12, 0.02),
    "463 × 20,004 in blocks of 12, λmax / 50": lambda: block_correlated(463, 20_004, 12, 0.02),
    "463 × 20,004 in blocks of 12, λmax / 10": lambda: block_correlated(463, 20_004, 12, 0.1),
    "1000 × 24,000 in blocks of 12, λmax / 20": lambda: block_correlated(1000, 24_000, 12, 0.05),
    "1000 × 6,000 in blocks of 60, λmax / 10": lambda: block_correlated(1000, 6_000, 60, 0.1),
}
RANDOM, DYNAMIC, RESTING = "random (Shotgun)", "both (priority)", "both, resting"


def schedules(lasso: Lasso, concurrency: int) -> Iterator[tuple[str, Callable[[], CompiledSchedule]]]:
    """Return schedules by name."""
    parameters, scales = range(lasso.X.shape[1]), np.full(lasso.X.shape[1], math.sqrt(len(lasso.y)))

    def dynamic(**options) -> PrioritySchedule:
        dependencies = dense_dependencies(lasso.X, concurrency)
        return PrioritySchedule(parameters, concurrency, dependencies=dependencies, scales=scales, **options)

    yield RANDOM, lambda: RandomSchedule(parameters, concurrency)
    yield "cyclic", lambda: CyclicSchedule(parameters, concurrency)
    yield "prioritized, no check", lambda: dynamic(check_dependencies=False)
    yield "check, not prioritized", lambda: dynamic(prioritize=False)
    yield "both, pairs only", lambda: dynamic(crowding=math.inf)
    yield DYNAMIC, dynamic
    yield "both, pairs only, resting", lambda: dynamic(crowding=math.inf, rest=5)
    yield RESTING, lambda: dynamic(rest=5)


def optimum(lasso: Lasso) -> tuple[float, int]:
    """Return a thousandth more than the least objective, and how many coefficients are not 0 there."""
    solution = WorkingSet().minimize(lasso.problem(), tol=1e-9, max_iter=100)
    return 1.001 * (solution.progress.objective - solution.gap), int(np.count_nonzero(solution.coef))


def shown(passes: float, objective: float, target: float, most: float = MOST) -> str:
    """Say how it ended."""
    if objective <= target:
        return f"{passes:.1f}"
    return f"over {most:g}, at {objective / target * 1.001:.4f}" if passes > most else f"diverges ({passes:.1f})"


def violation(lasso: Lasso, concurrency: int, target: float) -> tuple[float, float]:
    """Return passes, looks counted but the last, and the objective then."""
    found: list[tuple[float, float]] = []

    def look(progress):
        found.append((progress.samples / lasso.X.size - 1.0, progress.objective))
        return progress.objective <= target

    CoordinateDescent("violation", concurrency).minimize(lasso.problem(), tol=1e-9, on_progress=look)
    return found[-1]


def compare(name: str, lasso: Lasso, concurrency: int, team: ThreadTeam) -> None:
    """Print a table of all schedules, and of the most important ones with more updates at once."""
    target, support = optimum(lasso)
    print(f"{name}: {support} coefficients not 0 at the optimum")
    print(f"  {concurrency} updates at once{'':13}{'passes':>20}   random needs   updates a round")
    base = math.nan
    for label, build in schedules(lasso, concurrency):
        passes, objective, size = samples_until(lasso, build(), target, MOST, team)
        if label == RANDOM and (objective <= target or passes > MOST):
            base = passes
        show(label, passes, objective, target, base, f"{size:12.0f}")
    show("violation", *violation(lasso, concurrency, target), target, base)
    row = [f"  {2 * concurrency} at once:"]
    for label, build in schedules(lasso, 2 * concurrency):
        if label.startswith((RANDOM, "both, ")):
            passes, objective, _ = samples_until(lasso, build(), target, MOST / 3, team)
            row.append(f"{label} {shown(passes, objective, target, MOST / 3)}")
    print("  ".join(row), flush=True)


def show(label: str, passes: float, objective: float, target: float, base: float, rest: str = "") -> None:
    """Print a row; `base` is what random takes, or NaN where it diverges."""
    times = f"{'over ' if base > MOST else ''}{base / passes:.1f} ×" if objective <= target and base > 0.0 else ""
    print(f"  {label:28} {shown(passes, objective, target):>20} {times:>14} {rest}", flush=True)


def by_correlation(concurrency: int, team: ThreadTeam) -> None:
    """Print passes as the columns of a block are more alike, of 1000 × 6,000 in blocks of 60 at λmax / 10."""
    print(f"1000 × 6,000 in blocks of 60, λmax / 10, {concurrency} updates at once, correlation")
    for correlation in (0.3, 0.5, 0.6, 0.7):
        lasso = block_correlated(1000, 6_000, 60, 0.1, correlation=correlation)
        target, _ = optimum(lasso)
        row = [f"  {correlation:4}:"]
        for label, build in schedules(lasso, concurrency):
            if label in (RANDOM, DYNAMIC, RESTING):
                passes, objective, _ = samples_until(lasso, build(), target, MOST, team)
                row.append(f"{label} {shown(passes, objective, target)}")
        print("  ".join(row), flush=True)


def rounds_per_second(concurrency: int, team: ThreadTeam) -> None:
    """Print how fast rounds are, of few updates: what scheduling costs then."""
    lasso, count = block_correlated(500, 1_000, 10, 0.1), 20_000
    print(f"500 × 1,000, {concurrency} updates at once, rounds a second")
    for label, build in schedules(lasso, concurrency):
        rounds = CoordinateRounds(build().state, lasso.model(), team)
        rounds.run(count // 10)
        start = time.perf_counter()
        rounds.run(count)
        print(f"  {label:28} {count / (time.perf_counter() - start):12,.0f}", flush=True)


def main() -> None:
    """Print a table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, help="by default all, and then the other tables")
    options = parser.parse_args()
    concurrency = options.concurrency
    with closing(ThreadTeam(2)) as team, np.errstate(over="ignore", invalid="ignore"):
        for name in options.problems or PROBLEMS:
            compare(name, PROBLEMS[name](), concurrency, team)
        if not options.problems:
            by_correlation(concurrency, team)
            rounds_per_second(8, team)


if __name__ == "__main__":
    main()
