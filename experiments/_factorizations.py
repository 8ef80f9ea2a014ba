"""Matrix factorization by SGD with a constant step, model-parallel and data-parallel, as two SchMP programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads import schmp

Factors = NDArray[np.float32]


@njit(nogil=True, cache=True, fastmath=True)
def sgd(users, items, scores, order, W, H, rate, regularization):  # type: ignore[no-untyped-def]
    """Take a step on each rating of `order`; returns the sum of squared errors before them."""
    total = 0.0
    for place in order:
        user, item = users[place], items[place]
        error = scores[place]
        for f in range(W.shape[1]):
            error -= W[user, f] * H[item, f]
        for f in range(W.shape[1]):
            w = W[user, f]
            W[user, f] += rate * (error * H[item, f] - regularization * w)
            H[item, f] += rate * (error * w - regularization * H[item, f])
        total += error * error
    return total


@dataclass
class UserPart:
    """A worker's users: their ratings, grouped by block of items, and their factors."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]  # within their block if blocks rotate, of the whole table otherwise
    scores: Factors
    W: Factors
    blocks: list[NDArray[np.int64]]  # places of the ratings of each block, or of each share of a pass


class RotatedFactorization(schmp.Program):
    """Blocks of H go round, so no two workers ever change one row (thesis §4.1)."""

    def __init__(self, workers: int, rate: float, regularization: float):
        self.workers = workers
        self.rate, self.regularization = np.float32(rate), np.float32(regularization)
        self.loss = 0.0

    def schedule(self, iteration: int) -> schmp.Schedule:
        return schmp.static_rotation(self.workers)

    def update(self, job: schmp.Job, data: UserPart, *shards: Factors) -> float:
        (block,) = job.shards
        rest = data.blocks[block], data.W, shards[0], self.rate, self.regularization
        return float(sgd(data.users, data.items, data.scores, *rest))

    def aggregate(self, results: list[float]) -> None:
        self.loss = sum(results)


class CopiedFactorization(schmp.Program):
    """Every worker steps on a copy of H of its own; between passes the copies' changes are summed (thesis §3.1.5)."""

    def __init__(self, workers: int, rate: float, regularization: float, H: Factors, synchronizations: int):
        self.workers = workers
        self.rate, self.regularization = np.float32(rate), np.float32(regularization)
        self.H, self.synchronizations = H, synchronizations
        self.loss = 0.0

    def schedule(self, iteration: int) -> schmp.Schedule:
        self.loss = 0.0
        return schmp.round_robin(self.workers, range(self.synchronizations))

    def update(self, job: schmp.Job, data: UserPart, *shards: Factors) -> tuple[float, Factors]:
        H, order = self.H.copy(), data.blocks[job.parameters]
        error = sgd(data.users, data.items, data.scores, order, data.W, H, self.rate, self.regularization)
        return float(error), H - self.H

    def aggregate(self, results: list[tuple[float, Factors]]) -> None:
        self.loss += sum(error for error, _ in results)
        self.H = self.H + sum(change for _, change in results)


def rotated(
    ratings: NDArray[np.void], W: Factors, H: Factors, workers: int, rate: float, regularization: float
) -> schmp.StaticEngine:
    """Return an engine that steps on ratings (fields user, item, score) while H rotates."""
    cuts = np.linspace(0, len(H), workers + 1).astype(np.int64)
    block = (np.searchsorted(cuts, ratings["item"], "right") - 1).astype(np.int64)
    parts = []
    for mine, users, factors in _by_worker(ratings, W, workers):
        items = (ratings["item"][mine] - cuts[block[mine]]).astype(np.int32)
        places = [np.flatnonzero(block[mine] == number) for number in range(workers)]
        parts.append(UserPart(users, items, ratings["score"][mine], factors, places))
    shards = [H[cuts[number] : cuts[number + 1]].copy() for number in range(workers)]
    return schmp.StaticEngine(RotatedFactorization(workers, rate, regularization), parts, [shards])


def copied(
    ratings: NDArray[np.void], W: Factors, H: Factors, workers: int, rate: float, regularization: float, times: int = 1
) -> schmp.StaticEngine:
    """Return an engine that steps on ratings with copies of H, brought together so many times in a pass."""
    parts = []
    for mine, users, factors in _by_worker(ratings, W, workers):
        items = ratings["item"][mine].astype(np.int32)
        places = np.array_split(np.arange(len(items)), times)
        parts.append(UserPart(users, items, ratings["score"][mine], factors, places))
    return schmp.StaticEngine(CopiedFactorization(workers, rate, regularization, H.copy(), times), parts)


def _by_worker(
    ratings: NDArray[np.void], W: Factors, workers: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], Factors]]:
    """Yield each worker's ratings, their users from 0, and these users' factors."""
    cuts = np.linspace(0, len(W), workers + 1).astype(np.int64)
    for low, high in pairwise(cuts):
        mine = np.flatnonzero((ratings["user"] >= low) & (ratings["user"] < high))
        yield mine, (ratings["user"][mine] - low).astype(np.int32), W[low:high].copy()
