"""What guards cost: a body whose rows values of its own tables choose, against the same body with rows proven fixed.

Both bodies read and write as much. The one reads its row numbers from a table that it writes, so each access is checked
in the run; the other reads them from a table that it only reads. Calls after the first, one of each in turn; a ratio is
that of the medians. Where the arrays lie in memory makes more of a difference than the guards and is decided once in a
process: the figure is the median of several processes, with the lowest and the highest. Usage:

    python benchmarks/guards.py [--tasks 2000000] [--seconds 2] [--threads 1 2] [--processes 5]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import strads

RATE = 0.01


def count_fixed(k, rows, copy, W):
    copy[k] = rows[k]
    W[rows[k]] += 1.0


def count_volatile(k, rows, copy, W):
    copy[k] = rows[k]
    W[copy[k]] += 1.0


def pull_fixed(k, rows, copy, W):
    copy[k] = rows[k]
    w = W[rows[k]]
    for f in range(len(w)):
        w[f] += RATE * (1.0 - w[f])


def pull_volatile(k, rows, copy, W):
    copy[k] = rows[k]
    w = W[copy[k]]
    for f in range(len(w)):
        w[f] += RATE * (1.0 - w[f])


def pair_fixed(k, users, items, copy, W, H):
    copy[k] = users[k]
    w, h = W[users[k]], H[items[k]]
    err = 1.0
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        w[f] += RATE * err * h[f]
        h[f] += RATE * err * w[f]


def pair_volatile(k, users, items, copy, W, H):
    copy[k] = users[k]
    w, h = W[copy[k]], H[items[k]]
    err = 1.0
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        w[f] += RATE * err * h[f]
        h[f] += RATE * err * w[f]


def problems(tasks: int) -> list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]]:
    """Name, the two bodies, and their arguments."""
    rng = np.random.default_rng(0)
    rows = strads.dvector(rng.integers(0, 50_000, tasks).astype(np.int32))
    items = strads.dvector(rng.integers(0, 20_000, tasks).astype(np.int32))
    copy = strads.dvector(rows.to_numpy())
    numbers = strads.dvector.zeros(50_000)
    W, H = (strads.dvector.uniform((n, 32), high=0.1, seed=n) for n in (50_000, 20_000))
    return [
        ("a number", count_fixed, count_volatile, (rows, copy, numbers)),
        ("a row of 32", pull_fixed, pull_volatile, (rows, copy, W)),
        ("two rows of 32", pair_fixed, pair_volatile, (rows, items, copy, W, H)),
    ]


def seconds_of(tasks: int, body: Callable[..., Any], arguments: tuple[Any, ...], threads: int) -> tuple[float, Any]:
    """Seconds of a call, and its statistics."""
    start = time.perf_counter()
    found = strads.async_for(tasks, body, *arguments, threads=threads)
    return time.perf_counter() - start, found


class Line(NamedTuple):
    """Seconds of a call of both bodies, and by which strategies they ran."""

    name: str
    threads: int
    fixed: float
    volatile: float
    strategies: str

    @property
    def ratio(self) -> float:
        return self.volatile / self.fixed


def measure(tasks: int, seconds: float, threads_of: list[int]) -> list[Line]:
    """A line for each pair of bodies and number of threads."""
    lines = []
    for name, fixed, volatile, arguments in problems(tasks):
        for threads in threads_of:
            times: dict[Any, list[float]] = {fixed: [], volatile: []}
            strategies = [seconds_of(tasks, body, arguments, threads)[1].strategy for body in times]
            start = time.perf_counter()
            while time.perf_counter() - start < seconds:
                for body, own in times.items():
                    own.append(seconds_of(tasks, body, arguments, threads)[0])
            medians = (statistics.median(own) for own in times.values())
            lines.append(Line(name, threads, *medians, ", ".join(strategies)))
    return lines


def main() -> None:
    """Print a line for each pair of bodies and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of calls of both bodies, for each line and process")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--processes", type=int, default=5, help="that measure, one after the other")
    options = parser.parse_args()
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = [
            pool.submit(measure, options.tasks, options.seconds, options.threads) for _ in range(options.processes)
        ]
        runs = [lines.result() for lines in found]
    print(f"{'touches':<16}{'threads':>8}{'fixed':>10}{'volatile':>10}{'ratio':>7}{'range':>14}  strategies")
    for same in zip(*runs, strict=True):
        line = sorted(same, key=lambda line: line.ratio)[len(same) // 2]
        ratios = [each.ratio for each in same]
        seconds = f"{line.fixed:>9.4f}s{line.volatile:>9.4f}s"
        between = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{line.name:<16}{line.threads:>8}{seconds}{line.ratio:>7.2f}{between:>14}  {line.strategies}")


if __name__ == "__main__":
    main()
