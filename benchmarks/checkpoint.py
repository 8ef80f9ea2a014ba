"""What checkpoints cost: epochs of matrix factorization with a snapshot of each, beside the same without; restoring.

A snapshot copies the factors between two epochs, and is written while the next one runs. It is taken after every fourth
epoch: what that epoch and the one after it take longer than the two before is its cost. Neighbours in time are compared
because the same epoch takes several per cent more or less on other tables, or a minute later. Restoring, with its
check, is compared with reading as many bytes from a file by `read`, each from a cold page cache if the program may drop
it (as root). Usage:

    python benchmarks/checkpoint.py [--ratings 10000000] [--ranks 40 128] [--snapshots 200] [--folder DIR]
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from _ratings import ITEMS, USERS, generate_ratings
from backends import LEARNING_RATE, REGULARIZATION, initial, sgd

import strads


def train(data: np.ndarray, rank: int, snapshots: int, folder: Path) -> tuple[float, np.ndarray, str]:
    """Train with checkpoints.

    Returns
    -------
    epoch
        Seconds of an epoch without a snapshot, the median.
    costs
        Seconds that each snapshot costs.
    counted
        What became of the snapshots.
    """
    ratings = strads.from_numpy(data, copy=False)
    W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
    loss = strads.accumulator(0.0)

    def two_epochs() -> None:
        for _ in range(2):
            strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)

    plain, saved = np.empty(snapshots), np.empty(snapshots)
    two_epochs()
    with strads.checkpoint(folder, every=4) as session:
        two_epochs()  # which hash the ratings
        two_epochs()  # after which is the first snapshot
        session.finish()
        strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
        for number in range(snapshots):
            start = time.perf_counter()
            two_epochs()
            plain[number] = time.perf_counter() - start
            start = time.perf_counter()
            two_epochs()
            while session.counters.written < number + 2:  # what is left to write counts
                time.sleep(1e-4)
            saved[number] = time.perf_counter() - start
        counted = f"{session.counters.written} written, {session.counters.delayed} left out"
    return float(np.median(plain)) / 2, saved - plain, counted


def restore(data: np.ndarray, rank: int, folder: Path) -> tuple[float, float]:
    """Return bytes a second of restoring a program whose epochs are all skipped, and of reading a file."""

    def run() -> tuple[float, int]:
        """Run the program; return the seconds of its last epoch, and the bytes of its factors."""
        ratings = strads.from_numpy(data, copy=False)
        W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
        loss = strads.accumulator(0.0)
        with strads.checkpoint(folder / "program"):
            for _ in range(5):
                start = time.perf_counter()
                strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
            return time.perf_counter() - start, W.nbytes + H.nbytes

    _, size = run()
    file = folder / "as much"
    file.write_bytes(np.random.default_rng(0).bytes(size))
    speeds = []
    for _ in range(5):
        drop_caches()
        start = time.perf_counter()
        file.read_bytes()
        reading = time.perf_counter() - start
        drop_caches()
        speeds.append((size / run()[0], size / reading))
    restoring, reading = (statistics.median(column) for column in zip(*speeds, strict=True))
    return restoring, reading


def drop_caches() -> None:
    """Write back and forget the page cache, if this is allowed."""
    os.sync()
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--snapshots", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default that of temporary files")
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    for rank in options.ranks:
        with tempfile.TemporaryDirectory(dir=options.folder) as root:
            epoch, costs, counted = train(data, rank, options.snapshots, Path(root) / "training")
            speeds = restore(data, rank, Path(root))
        mean, error = np.mean(costs), np.std(costs) / len(costs) ** 0.5
        size = (USERS + ITEMS) * rank * 4 / 1e6
        print(
            f"rank {rank}: {epoch * 1e3:.0f} ms an epoch; with a snapshot of {size:.0f} MB {1 + mean / epoch:.3f} x: "
            f"{mean * 1e3:.1f} ± {error * 1e3:.1f} ms more (median {np.median(costs) * 1e3:.1f}); {counted}\n"
            f"          restored at {speeds[0] / 1e9:.2f} GB/s, {speeds[0] / speeds[1]:.2f} x reading a file"
        )


if __name__ == "__main__":
    main()
