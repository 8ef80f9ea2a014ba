"""`async_for` on MPI against DSGD written by hand with mpi4py and Numba (`_dsgd_mpi.py`; thesis §6.1.6).

Both train the same factors on the same ratings with the same update, each in MPI jobs of its own, in turn; a side's
figure is the median of all its epochs after the first of each job, which compiles and plans. Usage:

    python benchmarks/mpi_by_hand.py [--ratings 10000000] [--ranks 40 128] [--nodes 2] [--epochs 7] [--rounds 3]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _ratings import ITEMS, USERS, generate_ratings

LEARNING_RATE, REGULARIZATION = 0.01, 0.02
TARGET = 0.95
BLOCKS = {40: (8, 16), 128: (16, 16)}  # of items and of users for each process: the fastest of those we tried


def by_hand(
    ratings: np.ndarray, W: np.ndarray, H: np.ndarray, epochs: int, blocks: tuple[int, int]
) -> dict[str, Any] | None:
    import _dsgd_mpi

    result = _dsgd_mpi.train(ratings, W, H, LEARNING_RATE, REGULARIZATION, epochs, *blocks)
    return result if _dsgd_mpi.MPI.COMM_WORLD.Get_rank() == 0 else None


def by_strads(ratings: np.ndarray, W: np.ndarray, H: np.ndarray, epochs: int) -> dict[str, Any]:
    from backends import train

    import strads

    with strads.init("mpi", threads=1):
        return train(ratings, (W, H), epochs)


def child(options: argparse.Namespace) -> None:
    """Be one process of a job."""
    ratings, W, H = (np.load(os.path.join(options.folder, f"{name}.npy")) for name in ("ratings", "W", "H"))
    if options.side == "strads":
        result: dict[str, Any] | None = by_strads(ratings, W, H, options.epochs)
    else:
        result = by_hand(ratings, W, H, options.epochs, tuple(options.blocks))
    if result is not None:
        Path(options.folder, "result.json").write_text(json.dumps(result))


def run_job(side: str, folder: str, nodes: int, epochs: int, blocks: tuple[int, int]) -> dict[str, Any]:
    from _jobs import mpi_environment, mpiexec

    command = [*mpiexec(nodes), sys.executable, __file__, "--side", side, "--folder", folder]
    command += ["--epochs", str(epochs), "--blocks", *map(str, blocks)]
    subprocess.run(command, check=True, env=mpi_environment())
    return json.loads(Path(folder, "result.json").read_text())


def compare(ratings: np.ndarray, rank: int, options: argparse.Namespace) -> None:
    """Run both sides in turn and print the ratio of their medians."""
    rng = np.random.default_rng(0)
    blocks = tuple(options.blocks or BLOCKS.get(rank, BLOCKS[128]))
    found: dict[str, list[dict[str, Any]]] = {"hand": [], "strads": []}
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "ratings.npy"), ratings)
        for name, rows in (("W", USERS), ("H", ITEMS)):
            np.save(os.path.join(folder, f"{name}.npy"), rng.uniform(0, 0.1, (rows, rank)).astype(np.float32))
        for _ in range(options.rounds):
            for side, runs in found.items():
                runs.append(run_job(side, folder, options.nodes, options.epochs, blocks))
    report(len(ratings), rank, blocks, options, found)


def report(
    count: int,
    rank: int,
    blocks: tuple[int, int],
    options: argparse.Namespace,
    found: dict[str, list[dict[str, Any]]],
) -> None:
    print(
        f"\nrank {rank}, {count:,} ratings, {options.nodes} processes × 1 thread; "
        f"median of {options.epochs * options.rounds} epochs"
    )
    labels = {"hand": f"by hand, {blocks[0]} × {blocks[1]} blocks each", "strads": "async_for"}
    rotating = ITEMS * rank * 4
    medians = {}
    best = {side: min(second for run in runs for second in run["seconds"]) for side, runs in found.items()}
    for side, runs in found.items():
        medians[side] = statistics.median(second for run in runs for second in run["seconds"])
        sent = max(runs[-1]["bytes_sent"])
        print(
            f"  {labels[side]:32} {count / medians[side] / 1e6:7.1f} M ratings/s  "
            f"{medians[side]:.3f} s (best {best[side]:.3f} s)"
        )
        losses = runs[-1]["losses"]
        print(
            f"  {'':32} a node sends {sent / 1e6:.2f} MB an epoch, {sent / rotating:.2f} × the rotating table; "
            f"loss {losses[0]:.4f}, after {len(losses)} epochs {losses[-1]:.4f}"
        )
    rounds = [
        statistics.median(hand["seconds"]) / statistics.median(ours["seconds"])
        for hand, ours in zip(found["hand"], found["strads"], strict=True)
    ]
    print(
        f"  async_for / by hand  {medians['hand'] / medians['strads']:.2f} × the throughput (target ≥ {TARGET}); "
        f"by round: {', '.join(f'{ratio:.2f}' for ratio in rounds)}; of the best epochs "
        f"{best['hand'] / best['strads']:.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--blocks", type=int, nargs=2, metavar=("ITEMS", "USERS"), help="blocks of each process, by hand"
    )
    for name in ("--side", "--folder"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        child(options)
        return
    ratings = generate_ratings(options.ratings)
    for rank in options.ranks:
        compare(ratings, rank, options)


if __name__ == "__main__":
    main()
