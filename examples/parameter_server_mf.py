"""SGD matrix factorization on a parameter server, under every consistency model (ESSP, "SGD for Low Rank Matrix …").

Both factors are tables, and the ratings are dealt to the workers, so every worker reads and changes rows of all others.

Usage:
    python examples/parameter_server_mf.py [--ratings u.data.gz] [--workers 4] [--nodes 4] [--latency 0.002]

The file has lines of user, item and rating, ids from 1, as MovieLens; without it, ratings are generated.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

import strads
from strads import ps

RANK, STEP, REGULARIZATION = 16, 0.02, 0.05


class Ratings(NamedTuple):
    """Users, items and scores of some ratings: int32, int32 and float32 arrays of one length."""

    users: np.ndarray
    items: np.ndarray
    scores: np.ndarray


@njit(nogil=True, cache=True, fastmath=True)
def sgd(users, items, scores, W, H, step, regularization):
    """Take a step on each rating; returns the sum of squared errors before the steps."""
    total = 0.0
    for n in range(len(scores)):
        w, h = W[users[n]], H[items[n]]
        error = scores[n] - np.dot(w, h)
        for f in range(len(w)):
            before = w[f]
            w[f] += step * (error * h[f] - regularization * before)
            h[f] += step * (error * before - regularization * h[f])
        total += error * error
    return total


def factorize(
    worker: ps.Worker,
    W: ps.WorkerTable,
    H: ps.WorkerTable,
    epochs: int,
    clocks: int,
    step: float = STEP,
    regularization: float = REGULARIZATION,
    *,
    minibatches: int = 1,
    on_minibatch: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Be one worker: an epoch is a pass over its ratings, in so many clocks, each of so many minibatches.

    Within a minibatch it steps on copies; what has changed is what it adds to the tables. `on_minibatch` is called
    after each with the worker's number and the ratings of the minibatch.

    Returns
    -------
    The sum of squared errors of each epoch, every rating's as seen before its step.
    """
    rng, rates = np.random.default_rng(worker.number), (np.float32(step), np.float32(regularization))
    losses = []
    for _ in range(epochs):
        loss = 0.0
        for share in np.array_split(rng.permutation(len(worker.data.scores)), clocks):
            for batch in np.array_split(share, minibatches):
                loss += train_on(Ratings(*(array[batch] for array in worker.data)), W, H, *rates)
                if on_minibatch is not None:
                    on_minibatch(worker.number, len(batch))
            worker.clock()
        losses.append(loss)
    return losses


def train_on(
    batch: Ratings, W: ps.WorkerTable, H: ps.WorkerTable, step: np.float32, regularization: np.float32
) -> float:
    """Take the steps of a minibatch; returns the sum of squared errors before them."""
    users, user_of = np.unique(batch.users, return_inverse=True)
    items, item_of = np.unique(batch.items, return_inverse=True)
    old_w, old_h = W.get(users), H.get(items)
    w, h = old_w.copy(), old_h.copy()
    loss = sgd(user_of, item_of, batch.scores, w, h, step, regularization)
    W.inc(users, w - old_w)
    H.inc(items, h - old_h)
    return loss


def read_ratings(path: Path, seed: int = 0) -> Ratings:
    """Read a file of ratings, in random order; scores less their mean."""
    raw = np.loadtxt(path, usecols=(0, 1, 2))
    raw = np.random.default_rng(seed).permutation(raw)
    return Ratings(*(raw[:, :2].T - 1).astype(np.int32), (raw[:, 2] - raw[:, 2].mean()).astype(np.float32))


def planted_ratings(count: int = 100_000, users: int = 1_000, items: int = 1_500, seed: int = 0) -> Ratings:
    """Generate ratings of planted factors of rank 4, with noise of σ = 0.5."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(users, size=count, dtype=np.int32), rng.integers(items, size=count, dtype=np.int32)
    U, V = rng.normal(0, 0.7, (users, 4)), rng.normal(0, 0.7, (items, 4))
    return Ratings(user, item, ((U[user] * V[item]).sum(1) + rng.normal(0, 0.5, count)).astype(np.float32))


def deal(ratings: Ratings, workers: int) -> list[Ratings]:
    """Give each worker its share of the ratings."""
    return [Ratings(*(array[worker::workers] for array in ratings)) for worker in range(workers)]


def starting_factors(ratings: Ratings, rank: int = RANK, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Draw W and H, of a row for each user and item."""
    rng = np.random.default_rng(seed)
    rows = int(ratings.users.max()) + 1, int(ratings.items.max()) + 1
    return rng.normal(0, 0.1, (rows[0], rank)).astype("f4"), rng.normal(0, 0.1, (rows[1], rank)).astype("f4")


def rmse(ratings: Ratings, W: np.ndarray, H: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((ratings.scores - (W[ratings.users] * H[ratings.items]).sum(1)) ** 2)))


def main() -> None:
    """Train under every consistency model and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--clocks", type=int, default=10, help="of an epoch")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--latency", type=float, default=0.002, help="of messages between nodes, seconds")
    options = parser.parse_args()
    if options.ratings is not None and not options.ratings.is_file():
        parser.error(f"{options.ratings}: no such file")
    ratings = planted_ratings() if options.ratings is None else read_ratings(options.ratings)
    parts, (W0, H0) = deal(ratings, options.workers), starting_factors(ratings)
    with strads.init("threads", nodes=options.nodes, threads=1, latency=options.latency):
        W, H = ps.Table.from_numpy(W0), ps.Table.from_numpy(H0)
        for consistency in (ps.BSP(), ps.SSP(3), ps.ESSP(3), ps.ASP(), ps.VAP(10.0)):
            for table, start in ((W, W0), (H, H0)):
                table.consistency = consistency
                table.write(np.arange(len(table)), start)
            done = ps.run(factorize, W, H, options.epochs, options.clocks, workers=options.workers, data=parts)
            print(
                f"{consistency!r:24} RMSE {rmse(ratings, W.to_numpy(), H.to_numpy()):.4f}  "
                f"{len(ratings.scores) * options.epochs / done.seconds / 1e6:.2f} M ratings/s  "
                f"mean staleness {H.staleness.mean:+.2f}  "
                f"communicating {sum(done.communicating) / sum(done.communicating + done.computing):.0%}"
            )


if __name__ == "__main__":
    main()
