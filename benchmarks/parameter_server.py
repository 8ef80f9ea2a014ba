"""`get` and `inc` of the parameter server, batches of 1,000 rows of 64 float32, against Ray actors and torch's RPC.

- process: a worker reads rows that its node has read before, and adds to rows, which are sent by a clock every 100
  batches;
- mpi: a worker on one node, all rows on the other, and no cache: each `get` fetches its rows, after each `inc` a clock
  sends them. With 4 workers, four batches are in flight at a time; with 2 × 2, both nodes use the other's rows;
- ray: an actor that indexes a NumPy array, called from the driver; one call at a time, and 8 in flight;
- torch: a process that indexes a tensor, called by torch.distributed.rpc, in the same way; --torch names a Python that
  has torch and NumPy. Without it, these are left out.

A time ends when all rows have come, or all updates are in the table. Each side runs in processes of its own, in turn.

Usage:
    python benchmarks/parameter_server.py [--only process mpi ray torch] [--torch venv/bin/python] [--rounds 3]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _jobs import mpi_environment, mpiexec

import strads
from strads import ps

ROWS, COLUMNS, BATCH, BATCHES, WINDOW = 100_000, 64, 1_000, 32, 8
NEVER_WAITS = ps.SSP(1 << 30)
TARGETS = {"process get": 5e6, "process inc": 5e6, "mpi get": 1e6, "mpi inc": 1e6}
Figures = dict[str, float]  # rows a second of each variant


def batches(of: int = ROWS, first: int = 0, step: int = 1) -> list[np.ndarray]:
    """Return batches of different rows, of those from `first` in steps."""
    rng = np.random.default_rng(first)
    return [rng.choice(of // step, BATCH, replace=False) * step + first for _ in range(BATCHES)]


def ones() -> np.ndarray:
    return np.ones((BATCH, COLUMNS), np.float32)


# -- strads ----------------------------------------------------------------------------------------------------


def reads(worker: ps.Worker, table: ps.WorkerTable, count: int) -> float:
    """Read batches; returns seconds."""
    if worker.data is None:
        return 0.0
    out = np.empty((BATCH, COLUMNS), np.float32)
    for rows in worker.data:
        table.get(rows, out)
    start = time.perf_counter()
    for number in range(count):
        table.get(worker.data[number % BATCHES], out)
    return time.perf_counter() - start


def adds(worker: ps.Worker, table: ps.WorkerTable, count: int, clock_every: int) -> float:
    """Add to batches; returns seconds until all is in the table."""
    if worker.data is None:
        return 0.0
    deltas = ones()
    for number in range(-BATCHES, count):
        if number == 0:
            table.get(worker.data[0][:1])  # answered after all updates before it
            start = time.perf_counter()
        table.inc(worker.data[number % BATCHES], deltas)
        if number % clock_every == 0:
            worker.clock()
    worker.clock()
    table.get(worker.data[0][:1])
    return time.perf_counter() - start


def rate(program: Callable[..., float], table: ps.Table, data: list[Any], *arguments: Any) -> float:
    """Return rows a second of all workers that have data together."""
    seconds = ps.run(program, table, *arguments, workers=len(data), data=data).values
    count = arguments[0] * sum(part is not None for part in data)
    return count * BATCH / max(seconds)


def process(count: int) -> Figures:
    with strads.init("threads", nodes=1, threads=1):
        table = ps.Table(ROWS, COLUMNS, consistency=NEVER_WAITS)
        found = {"get": rate(reads, table, [batches()], 10 * count)}
        uncached = ps.Table(ROWS, COLUMNS, consistency=NEVER_WAITS, cache_bytes=0)
        found["inc"] = rate(adds, uncached, [batches()], 10 * count, 100)
    values, out, rows = np.zeros((ROWS, COLUMNS), np.float32), np.empty((BATCH, COLUMNS), np.float32), batches()
    start = time.perf_counter()
    for number in range(10 * count):
        np.take(values, rows[number % BATCHES], axis=0, out=out)
    found["np.take"] = 10 * count * BATCH / (time.perf_counter() - start)
    return found


def mpi(count: int) -> Figures | None:
    with strads.init("mpi", threads=1):
        table = ps.Table(ROWS, COLUMNS, consistency=NEVER_WAITS, cache_bytes=0)
        other = [batches(first=1, step=2), batches(first=0, step=2)]  # rows of the other node, by node
        found = {}
        for name, data in (
            ("", [other[0], None]),
            (", 4 workers", [other[0]] * 4 + [None] * 4),
            (", 2 × 2 workers", [other[0]] * 2 + [other[1]] * 2),
        ):
            found[f"get{name}"] = rate(reads, table, data, count)
            found[f"inc{name}"] = rate(adds, table, data, count, 1)
        return found


# -- Ray -------------------------------------------------------------------------------------------------------


class Holder:
    """An actor with a table."""

    def __init__(self) -> None:
        self.values = np.zeros((ROWS, COLUMNS), np.float32)

    def get(self, rows: np.ndarray) -> np.ndarray:
        return self.values[rows]

    def add(self, rows: np.ndarray, deltas: np.ndarray) -> None:
        self.values[rows] += deltas  # rows are different


def ray(count: int) -> Figures:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    holder = ray.remote(Holder).remote()
    rows, deltas = batches(), ones()

    def timed(call: Callable[[np.ndarray], Any], window: int) -> float:
        flying: deque[Any] = deque()
        start = time.perf_counter()
        for number in range(count):
            if len(flying) == window:
                ray.get(flying.popleft())
            flying.append(call(rows[number % BATCHES]))
        while flying:
            ray.get(flying.popleft())
        return count * BATCH / (time.perf_counter() - start)

    calls = {"get": holder.get.remote, "inc": lambda chosen: holder.add.remote(chosen, deltas)}
    found = {}
    for window in (1, WINDOW):
        for name, call in calls.items():
            found[name if window == 1 else f"{name}, {window} in flight"] = [timed(call, window) for _ in range(2)][1]
    ray.shutdown()
    return found


# -- the comparison --------------------------------------------------------------------------------------------


def run_side(side: str, options: argparse.Namespace) -> Figures:
    """Start the processes of a side and return its figures, the last line they print."""
    command = [sys.executable, __file__, "--side", side, "--count", str(options.count)]
    if side == "mpi":
        command = [*mpiexec(2), *command]
    if side == "torch":
        beside = str(Path(__file__).with_name("_torch_rpc.py"))
        command = [options.torch, beside, "--count", str(options.count), "--rows", str(ROWS)]
        command += ["--columns", str(COLUMNS), "--batch", str(BATCH), "--window", str(WINDOW)]
    environment = mpi_environment() | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(found: dict[str, list[Figures]]) -> None:
    """Print medians, and strads' ratio to each peer's best."""
    medians = {
        side: {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
        for side, rounds in found.items()
    }
    for side, figures in medians.items():
        for name, value in figures.items():
            target = TARGETS.get(f"{side} {name}")
            wanted = "" if target is None else f"   (target ≥ {target / 1e6:g})"
            print(f"  {side:8} {name:22} {value / 1e6:8.2f} M rows/s{wanted}")
    for peer in ("ray", "torch"):
        if peer in medians and "mpi" in medians:
            for kind in ("get", "inc"):
                alone = medians["mpi"][kind] / medians[peer][kind]
                best = max(value for name, value in medians["mpi"].items() if kind in name)
                most = max(value for name, value in medians[peer].items() if kind in name)
                print(f"  strads / {peer:6} {kind}: {alone:.2f} one at a time, {best / most:.2f} the best of each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sides: dict[str, Callable[[int], Figures | None]] = {"process": process, "mpi": mpi, "ray": ray}
    parser.add_argument("--only", nargs="+", choices=[*sides, "torch"], default=[*sides, "torch"])
    parser.add_argument("--count", type=int, default=1_000, help="batches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", help="a Python with torch and NumPy")
    parser.add_argument("--side", choices=sides, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        figures = sides[options.side](options.count)
        if figures is not None:
            print(json.dumps(figures), flush=True)
        return
    chosen = [side for side in options.only if side != "torch" or options.torch]
    found: dict[str, list[Figures]] = {side: [] for side in chosen}
    for _ in range(options.rounds):
        for side, rounds in found.items():
            rounds.append(run_side(side, options))
    load = os.getloadavg()[0]
    print(f"batches of {BATCH:,} rows × {COLUMNS} float32; medians of {options.rounds} rounds; load {load:.1f}")
    report(found)


if __name__ == "__main__":
    main()
