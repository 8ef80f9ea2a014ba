"""What checkpoints cost: epochs of matrix factorization with a snapshot of each, beside the same without; restoring.

Runs of epochs with and without checkpoints alternate in one process, so that other load meets both. A snapshot copies
the factors between two epochs, and is written while the next one runs. Restoring, with its check, is compared with
reading as many bytes from a file by `read`, each from a cold page cache if the program may drop it (as root). Usage:

    python benchmarks/checkpoint.py [--ratings 10000000] [--ranks 40 128] [--epochs 10] [--rounds 4] [--folder DIR]
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


def train(data: np.ndarray, rank: int, epochs: int, folder: Path | None) -> tuple[float, str]:
    """Train for some epochs after two that plan and warm up; return seconds an epoch, and what became of the snapshots.

    The seconds end when the last snapshot is written: what is left to write counts.
    """
    ratings = strads.from_numpy(data, copy=False)
    W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
    loss = strads.accumulator(0.0)
    with contextlib.ExitStack() as stack:
        session = None if folder is None else stack.enter_context(strads.checkpoint(folder))
        for epoch in range(epochs + 2):
            if epoch == 2:
                start = time.perf_counter()
            strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
        if session is not None:
            session.finish()
        seconds = (time.perf_counter() - start) / epochs
        counted = "" if session is None else f"{session.counters.written} written, {session.counters.delayed} left out"
    return seconds, counted


def restore(data: np.ndarray, rank: int, epochs: int, folder: Path) -> tuple[float, float]:
    """Return bytes a second of restoring a program whose epochs are all skipped, and of reading a file."""
    ratings = strads.from_numpy(data, copy=False)
    W, H = (strads.from_numpy(array) for array in initial(rank, USERS, ITEMS))
    loss, size = strads.accumulator(0.0), W.nbytes + H.nbytes
    file = folder / "as much"
    file.write_bytes(np.random.default_rng(0).bytes(size))
    drop_caches()
    start = time.perf_counter()
    file.read_bytes()
    reading = time.perf_counter() - start
    file.unlink()
    drop_caches()
    with strads.checkpoint(folder):
        for _ in range(epochs + 1):
            strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
        start = time.perf_counter()
        strads.async_for(range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss)
        restoring = time.perf_counter() - start
    return size / restoring, size / reading


def drop_caches() -> None:
    """Write back and forget the page cache, if this is allowed."""
    os.sync()
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default that of temporary files")
    options = parser.parse_args()
    data = generate_ratings(options.ratings)
    for rank in options.ranks:
        plain, saved = [], []
        with tempfile.TemporaryDirectory(dir=options.folder) as root:
            for number in range(options.rounds):
                plain.append(train(data, rank, options.epochs, None)[0])
                seconds, counted = train(data, rank, options.epochs, Path(root) / str(number))
                saved.append(seconds)
            speeds = restore(data, rank, options.epochs, Path(root) / str(options.rounds - 1))
        ratios = [with_ / without for with_, without in zip(saved, plain, strict=True)]
        size = (USERS + ITEMS) * rank * 4
        print(
            f"rank {rank}: {statistics.median(plain) * 1e3:.0f} ms an epoch; with a snapshot of {size / 1e6:.0f} MB "
            f"{statistics.median(ratios):.3f} x ({', '.join(f'{ratio:.3f}' for ratio in ratios)}); {counted}\n"
            f"          restored at {speeds[0] / 1e9:.2f} GB/s, {speeds[0] / speeds[1]:.2f} x reading a file"
        )


if __name__ == "__main__":
    main()
