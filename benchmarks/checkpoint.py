"""What checkpoints cost: epochs of matrix factorization with a snapshot of each, beside the same without; restoring.

Runs of epochs with and without checkpoints alternate on the same tables, so that other load meets both. A snapshot
copies the factors between two epochs, and is written while the next one runs. Restoring, with its check, is compared
with reading as many bytes from a file by `read`, each from a cold page cache if the program may drop it (as root).
Usage:

    python benchmarks/checkpoint.py [--ratings 10000000] [--ranks 40 128] [--epochs 20] [--rounds 10] [--folder DIR]
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


def train(data: np.ndarray, rank: int, epochs: int, folders: list[Path]) -> tuple[list[float], list[float], str]:
    """Train without and with checkpoints in turn, on the same tables, whose place in memory changes an epoch by more.

    Returns
    -------
    plain, saved
        Seconds of an epoch, for each folder. Those with checkpoints end when the last snapshot is written: what is
        left to write counts. Two epochs before, which hash the ratings and write the first snapshot, do not.
    counted
        What became of the snapshots.
    """
    ratings = strads.from_numpy(data, copy=False)
    W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
    loss = strads.accumulator(0.0)

    def run(count: int) -> None:
        for _ in range(count):
            strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)

    plain, saved = [], []
    run(2)
    for folder in folders:
        start = time.perf_counter()
        run(epochs)
        plain.append((time.perf_counter() - start) / epochs)
        with strads.checkpoint(folder) as session:
            run(2)
            session.finish()
            start = time.perf_counter()
            run(epochs)
            session.finish()
            saved.append((time.perf_counter() - start) / epochs)
            counted = f"{session.counters.written} written, {session.counters.delayed} left out"
    return plain, saved, counted


def restore(data: np.ndarray, rank: int, epochs: int, folder: Path) -> tuple[float, float]:
    """Return bytes a second of restoring a program whose epochs are all skipped, and of reading a file."""

    def run() -> tuple[float, int]:
        """Run the program; return the seconds of its last epoch, and the bytes of its factors."""
        ratings = strads.from_numpy(data, copy=False)
        W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
        loss = strads.accumulator(0.0)
        with strads.checkpoint(folder / "program"):
            for _ in range(epochs):
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
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default that of temporary files")
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    for rank in options.ranks:
        with tempfile.TemporaryDirectory(dir=options.folder) as root:
            folders = [Path(root) / str(number) for number in range(options.rounds)]
            plain, saved, counted = train(data, rank, options.epochs, folders)
            speeds = restore(data, rank, options.epochs, Path(root))
        ratios = [with_ / without for with_, without in zip(saved, plain, strict=True)]
        size = (USERS + ITEMS) * rank * 4
        print(
            f"rank {rank}: {statistics.median(plain) * 1e3:.0f} ms an epoch; with a snapshot of {size / 1e6:.0f} MB "
            f"{statistics.median(ratios):.3f} x ({', '.join(f'{ratio:.3f}' for ratio in ratios)}); {counted}\n"
            f"          restored at {speeds[0] / 1e9:.2f} GB/s, {speeds[0] / speeds[1]:.2f} x reading a file"
        )


if __name__ == "__main__":
    main()
