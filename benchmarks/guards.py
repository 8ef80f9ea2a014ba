"""What guards cost: a body whose rows values of its own tables choose, against the same body with rows proven fixed.

Both bodies read and write as much. The one reads its row numbers from a table that it writes, so each access is checked
in the run; the other reads them from a table that it only reads. Calls after the first, one of each in turn; the figure
is the ratio of the medians. Usage:

    python benchmarks/guards.py [--tasks 2000000] [--calls 9] [--threads 1 2]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

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


def main() -> None:
    """Print a line for each body and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="of calls of both bodies, for each line")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    print(f"{'touches':<16}{'threads':>8}{'fixed':>10}{'volatile':>10}{'ratio':>7}  strategies")
    for name, fixed, volatile, arguments in problems(options.tasks):
        for threads in options.threads:
            times: dict[Any, list[float]] = {fixed: [], volatile: []}
            strategies = []
            for body in (fixed, volatile):
                strategies.append(seconds_of(options.tasks, body, arguments, threads)[1].strategy)
            start = time.perf_counter()
            while time.perf_counter() - start < options.seconds:
                for body, own in times.items():
                    own.append(seconds_of(options.tasks, body, arguments, threads)[0])
            one, other = (statistics.median(own) for own in times.values())
            print(f"{name:<16}{threads:>8}{one:>9.4f}s{other:>9.4f}s{other / one:>7.2f}  {', '.join(strategies)}")


if __name__ == "__main__":
    main()
