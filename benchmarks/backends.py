"""The same matrix factorization on every backend: threads 1 × 2, threads 2 × 1, MPI 2 × 1, Ray 2 × 1 (nodes × threads).

Each variant runs in processes of its own, one after the other, several rounds; a variant's figure is the median of
all its epochs after the first of a process. Usage:

    python benchmarks/backends.py [--ratings 10000000] [--ranks 40 128] [--epochs 7] [--rounds 2] [--only VARIANT …]
"""

import argparse
import os
import statistics
import tempfile
from typing import Any

import numpy as np
from _jobs import BASE, VARIANTS, add_job_options, finish, run_variants, started
from _ratings import ITEMS, USERS, generate_ratings

import strads

LEARNING_RATE, REGULARIZATION = 0.01, 0.02
TARGETS = {"mpi 2 x 1": 0.9, "ray 2 x 1": 0.8}


def sgd(k, ratings, W, H, lr, reg, loss):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += lr * (err * h[f] - reg * wf)
        h[f] += lr * (err * wf - reg * h[f])
    loss.add(err * err)


def initial(rank: int, users: int = USERS, items: int = ITEMS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple(rng.uniform(0, 0.1, (rows, rank)).astype(np.float32) for rows in (users, items))


def train(data: np.ndarray, factors: tuple[np.ndarray, np.ndarray], epochs: int, **options: Any) -> dict[str, Any]:
    """Train for some epochs after a first one; return their seconds, the last one's traffic, and the losses of all."""
    ratings = strads.from_numpy(data, copy=False)
    W, H = (strads.from_numpy(array) for array in factors)
    seconds, losses = [], []
    for _ in range(epochs + 1):
        loss = strads.accumulator(0.0)
        stats = strads.async_for(
            range(len(ratings)), sgd, ratings, W, H, LEARNING_RATE, REGULARIZATION, loss, **options
        )
        seconds.append(stats.seconds)
        losses.append(loss.value / len(data))
        if len(seconds) == 1:
            first = stats
    return {
        "seconds": seconds[1:],
        "losses": losses,
        "bytes_sent": [node.bytes_sent for node in stats.nodes],
        "messages_sent": [node.messages_sent for node in stats.nodes],
        "compute_seconds": [node.compute_seconds for node in stats.nodes],
        "wait_seconds": [node.wait_seconds for node in stats.nodes],
        "execution_seconds": stats.execution_seconds,
        "rotating_bytes": H.nbytes,
        "first": first.seconds,
        "first_compiling": first.compile_seconds,
    }


def child(options: argparse.Namespace) -> None:
    """Run one variant in this process (of a job); the driver writes the result."""
    with started(options):
        data = np.load(options.data)
        finish(options, train(data, initial(options.rank), options.epochs))


def compare(count: int, rank: int, epochs: int, rounds: int, chosen: list[str]) -> None:
    """Run all variants and print their ratios to one process with two threads."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "ratings.npy")
        np.save(data, generate_ratings(count))
        found = run_variants(__file__, chosen, rounds, ["--data", data, "--rank", rank, "--epochs", epochs])
    print(f"\nrank {rank}, {count:,} ratings; median of {epochs * rounds} epochs")
    medians = {name: statistics.median(s for run in runs for s in run["seconds"]) for name, runs in found.items()}
    best = {name: min(s for run in runs for s in run["seconds"]) for name, runs in found.items()}
    for name, runs in found.items():
        last = runs[-1]
        target = f" (target ≥ {TARGETS[name]})" if name in TARGETS else ""
        ratio, of_best = medians[BASE] / medians[name], best[BASE] / best[name]
        print(
            f"  {name:14} {count / medians[name] / 1e6:7.1f} M ratings/s  {medians[name]:.3f} s "
            f"(best {best[name]:.3f} s)  {ratio:.2f} × {BASE}, by the best epochs {of_best:.2f}{target}"
        )
        if len(last["bytes_sent"]) > 1:
            sent, same = max(last["bytes_sent"]), last["losses"] == found[BASE][-1]["losses"]
            print(
                f"  {'':14} a node sends {sent / 1e6:.2f} MB in {max(last['messages_sent'])} messages an epoch: "
                f"{sent / last['rotating_bytes']:.2f} × the rotating table (target ≤ 3.1, in 5 passes)"
            )
            around = last["seconds"][-1] - last["execution_seconds"]
            print(
                f"  {'':14} computes {max(last['compute_seconds']):.3f} s, waits {max(last['wait_seconds']):.3f} s; "
                f"{around:.3f} s before and after; same losses as {BASE}: {same}"
            )
        print(
            f"  {'':14} first call {last['first']:.1f} s, of which compiling {last['first_compiling']:.1f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[40, 128])
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    add_job_options(parser)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        child(options)
        return
    for rank in options.ranks:
        compare(options.ratings, rank, options.epochs, options.rounds, options.only)


if __name__ == "__main__":
    main()
