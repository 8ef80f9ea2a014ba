"""`async_for` on SGD matrix factorization against hand-written Numba: the same schedule, and the plain loop.

All variants run in one process, one epoch each in turn, so that drifts of the machine's speed hit all alike; a
variant's figure is its median epoch. Usage:

    python benchmarks/async_for_mf.py [--ratings 10000000] [--ranks 40 128] [--epochs 7]
"""

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _memory import reset_peak, resident
from _ratings import ITEMS, USERS, generate_ratings
from backends import LEARNING_RATE, REGULARIZATION, sgd
from numba import njit

import strads

BLOCKS = 32


@njit(nogil=True, fastmath=True)
def sgd_range(first, last, ratings, W, H, lr, reg):
    loss = 0.0
    for k in range(first, last):
        r = ratings[k]
        w, h = W[r.user], H[r.item]
        err = r.score
        for f in range(len(w)):
            err -= w[f] * h[f]
        for f in range(len(w)):
            wf = w[f]
            w[f] += lr * (err * h[f] - reg * wf)
            h[f] += lr * (err * wf - reg * h[f])
        loss += err * err
    return loss


@njit(nogil=True, fastmath=True)
def sgd_diagonal(rows, stage, offsets, ratings, W, H, lr, reg):
    loss = 0.0
    for row in rows:
        block = row * BLOCKS + (row + stage) % BLOCKS
        loss += sgd_range(offsets[block], offsets[block + 1], ratings, W, H, lr, reg)
    return loss


class HandWritten:
    """What an expert writes for one machine: blocks of equal work, data sorted by block, a barrier a diagonal."""

    def __init__(self, ratings: np.ndarray, threads: int):
        self.threads = threads
        blocks = [self._blocks(ratings[name], rows) for name, rows in (("user", USERS), ("item", ITEMS))]
        key = blocks[0] * BLOCKS + blocks[1]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=BLOCKS**2))])
        self.ratings = ratings[np.argsort(key, kind="stable")]

    @staticmethod
    def _blocks(ids: np.ndarray, rows: int) -> np.ndarray:
        work = np.cumsum(np.bincount(ids, minlength=rows))
        return np.minimum(work * BLOCKS // work[-1], BLOCKS - 1)[ids]

    def epoch(self, W: np.ndarray, H: np.ndarray, lr: np.float32, reg: np.float32) -> None:
        barrier = threading.Barrier(self.threads)

        def work(thread: int) -> None:
            rows = np.arange(thread, BLOCKS, self.threads)
            for stage in range(BLOCKS):
                sgd_diagonal(rows, stage, self.offsets, self.ratings, W, H, lr, reg)
                barrier.wait()

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def initial(rank: int) -> tuple[strads.dvector, strads.dvector]:
    return (
        strads.dvector.uniform((USERS, rank), high=0.1, seed=0),
        strads.dvector.uniform((ITEMS, rank), high=0.1, seed=1),
    )


def compare(data: np.ndarray, rank: int, epochs: int) -> None:
    threads = 2
    ratings = strads.from_numpy(data, copy=False)
    hand = HandWritten(data, threads)
    lr, reg = np.float32(LEARNING_RATE), np.float32(REGULARIZATION)
    tables = {name: initial(rank) for name in ("hand", "plain", "one", "two")}
    first: dict[str, Any] = {}

    def strads_epoch(name: str, threads: int) -> None:
        loss = strads.accumulator(0.0)
        stats = strads.async_for(
            range(len(ratings)),
            sgd,
            ratings,
            *tables[name],
            LEARNING_RATE,
            REGULARIZATION,
            loss,
            threads=threads,
        )
        first.setdefault(name, stats)

    def arrays(name: str) -> list[np.ndarray]:
        return [table.storage for table in tables[name]]

    variants: dict[str, Callable[[], None]] = {
        "hand": lambda: hand.epoch(*arrays("hand"), lr, reg),
        "plain": lambda: sgd_range(0, len(data), data, *arrays("plain"), lr, reg),
        "one": lambda: strads_epoch("one", 1),
        "two": lambda: strads_epoch("two", threads),
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    plannings: list[list[float]] = []
    for epoch in range(epochs + 1):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            if epoch > 0:  # the first compiles and plans
                times[name].append(time.perf_counter() - start)
    for _ in range(epochs):  # as after a change of the ratings
        ratings.mark_written()
        loss = strads.accumulator(0.0)
        stats = strads.async_for(
            range(len(ratings)), sgd, ratings, *tables["two"], LEARNING_RATE, REGULARIZATION, loss, threads=threads
        )
        plannings.append([stats.reconnaissance_seconds, stats.planning_seconds])
        del stats  # who keeps the old plan has the next one written to fresh memory
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    report(len(data), rank, medians, first["one"], plannings)


def report(
    count: int,
    rank: int,
    seconds: dict[str, float],
    first: strads.LoopStatistics,
    plannings: list[list[float]],
) -> None:
    labels = {
        "plain": "plain Numba loop, data order, 1 thread",
        "hand": "hand-written Numba, same blocks, 2 threads",
        "one": "async_for, 1 thread",
        "two": "async_for, 2 threads",
    }
    print(f"\nrank {rank}, {count:,} ratings; median epoch")
    for name, label in labels.items():
        print(f"  {label:45} {count / seconds[name] / 1e6:7.1f} M ratings/s  {seconds[name]:.3f} s")
    two = seconds["two"]
    print(f"  async_for 2 threads / hand-written  {seconds['hand'] / two:5.2f} ×   (target ≥ 0.95)")
    print(f"  async_for 2 threads / plain loop    {seconds['plain'] / two:5.2f} ×   (target ≥ 2.0)")
    print(f"  async_for 2 threads / 1 thread      {seconds['one'] / two:5.2f} ×   (target ≥ 1.8)")
    recorded, planned = (statistics.median(part) for part in zip(*plannings, strict=True))
    print(
        f"  reconnaissance {recorded:.3f} s + planning and the copy in plan order {planned:.3f} s = "
        f"{(recorded + planned) / two:.2f} epochs (target ≤ 1)"
    )
    print(
        f"  first call: {first.seconds:.1f} s, of which compiling {first.compile_seconds:.1f} s, reconnaissance "
        f"{first.reconnaissance_seconds:.2f} s, planning {first.planning_seconds:.2f} s",
        flush=True,
    )


# -- memory ------------------------------------------------------------------------------------------------------


def measure_memory(count: int, rank: int) -> None:
    """Print the peak of a first call over what was resident before any data, against the data's sizes."""
    warm = strads.from_numpy(generate_ratings(1000), copy=False)
    strads.async_for(1000, sgd, warm, *initial(rank), LEARNING_RATE, REGULARIZATION, strads.accumulator(0.0))
    del warm
    gc.collect()
    before = resident("VmRSS")
    with tempfile.TemporaryFile() as file:  # frees what the generator leaves behind
        np.save(file, generate_ratings(count))
        gc.collect()
        file.seek(0)
        data = np.load(file)
    W, H = initial(rank)
    sizes = 2 * data.nbytes + W.nbytes + H.nbytes
    reset_peak()
    ratings = strads.from_numpy(data, copy=False)
    loss = strads.accumulator(0.0)
    for _ in range(2):
        strads.async_for(len(ratings), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
    peak = resident("VmHWM") - before
    print(
        f"  peak memory {peak / 2**20:.0f} MiB = {peak / sizes:.2f} × (data + its plan-ordered copy + model, "
        f"{sizes / 2**20:.0f} MiB; target ≤ 1.30)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--memory-of-rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of_rank:
        measure_memory(options.ratings, options.memory_of_rank)
        return
    data = generate_ratings(options.ratings)
    for rank in options.ranks:
        compare(data.copy(), rank, options.epochs)
        command = [sys.executable, __file__, "--ratings", str(options.ratings), "--memory-of-rank", str(rank)]
        subprocess.run(command, check=True)  # a process of its own: memory peaks do not go away


if __name__ == "__main__":
    main()
