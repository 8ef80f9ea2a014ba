"""A SchMP program of one's own: matrix factorization whose item factors rotate over the workers (thesis §4.1)."""

import numpy as np
from numba import njit

from strads import schmp

WORKERS, USERS, ITEMS, RANK = 8, 40_000, 8_000, 16


@njit(nogil=True, fastmath=True)
def sgd(users, items, scores, W, H, rate):
    """Pass over some ratings; returns their summed squared error."""
    total = 0.0
    for n in range(len(scores)):
        u, i = users[n], items[n]
        error = scores[n] - np.dot(W[u], H[i])
        for f in range(RANK):
            w = W[u, f]
            W[u, f] += rate * error * H[i, f]
            H[i, f] += rate * error * w
        total += error * error
    return total


class Factorization(schmp.Program):
    """Workers keep users with their ratings; blocks of items go round."""

    workers = WORKERS

    def schedule(self, iteration):
        return schmp.static_rotation(WORKERS)

    def update(self, job, data, H):
        ratings, W = data
        return sgd(*ratings[job.shards[0]], W, H, np.float32(0.05))

    def aggregate(self, results):
        self.loss = sum(results)


def ratings_of(worker):
    """Make a worker's ratings, grouped by block of items, and the factors of its users; on the worker's node."""
    rng, rows, block = np.random.default_rng(worker), USERS // WORKERS, ITEMS // WORKERS
    taste = np.random.default_rng(99).normal(size=(ITEMS, 2)).astype("f4")
    W, true = rng.uniform(0, 0.3, (rows, RANK)).astype("f4"), rng.normal(size=(rows, 2)).astype("f4")
    pairs = [(rng.integers(rows, size=30_000), rng.integers(block, size=30_000)) for _ in range(WORKERS)]
    return [(u, i, (true[u] * taste[b * block + i]).sum(1)) for b, (u, i) in enumerate(pairs)], W


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    blocks = [rng.uniform(0, 0.3, (ITEMS // WORKERS, RANK)).astype("f4") for _ in range(WORKERS)]
    with schmp.StaticEngine(Factorization(), ratings_of, [blocks]) as engine:
        for _ in range(10):
            seconds = engine.iterate().seconds
            print(f"squared error a rating {engine.program.loss / (WORKERS**2 * 30_000):.4f}  ({seconds:.2f} s)")
