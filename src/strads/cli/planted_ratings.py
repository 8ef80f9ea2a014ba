"""Ratings generated from known factors, so that the best possible error is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RECORD = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)
_MEAN = 3.5  # of all scores
_BIAS_SPREAD = 0.3  # standard deviation of the biases of users and items
_USER_SKEW = 0.25  # σ of the log-normal distribution of users' activity
_ITEM_EXPONENT = 0.6  # of the power law of the popularity of items


@dataclass(frozen=True)
class PlantedRatings:
    """Sizes of the generated data.

    Parameters
    ----------
    users, items : int
        Ids are 0 … users − 1 and 0 … items − 1.
    draws : int
        Number of pairs of user and item that are drawn; duplicates count once.
    rank : int
        Number of planted factors.
    noise : float
        σ of the Gaussian noise on each score: the held-out RMSE of the planted model itself.
    """

    users: int = 20_000
    items: int = 5_000
    draws: int = 3_100_000
    rank: int = 8
    noise: float = 0.3

    def draw(self, seed: int) -> NDArray[np.void]:
        """Records of user, item and score in random order; popularity falls as a power of the item's rank."""
        rng = np.random.default_rng(seed)
        pairs = self._pairs(rng)
        users, items = pairs // self.items, pairs % self.items
        spread = self.rank**-0.25  # so that the inner products have variance 1
        user_factors = rng.standard_normal((self.users, self.rank), np.float32) * np.float32(spread)
        item_factors = rng.standard_normal((self.items, self.rank), np.float32) * np.float32(spread)
        user_biases, item_biases = (
            rng.standard_normal(rows, np.float32) * np.float32(_BIAS_SPREAD) for rows in (self.users, self.items)
        )
        records = np.empty(len(pairs), _RECORD)
        records["user"], records["item"] = users, items
        scores = np.einsum("nf,nf->n", user_factors[users], item_factors[items])
        scores += _MEAN + user_biases[users] + item_biases[items]
        records["score"] = scores + np.float32(self.noise) * rng.standard_normal(len(pairs), np.float32)
        return records

    def _pairs(self, rng: np.random.Generator) -> NDArray[np.int64]:
        activity = rng.lognormal(0.0, _USER_SKEW, self.users)
        # Popular items have any id.
        popularity = rng.permutation(np.arange(10, self.items + 10) ** -_ITEM_EXPONENT)
        pairs = self._ids(rng, activity) * self.items + self._ids(rng, popularity)
        # A sort and a comparison: twenty times as fast as numpy.unique on millions of integers.
        pairs.sort()
        return rng.permutation(pairs[np.append(True, pairs[1:] != pairs[:-1])])

    def _ids(self, rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        counts = rng.multinomial(self.draws, weights / weights.sum())
        return rng.permutation(np.repeat(np.arange(len(weights)), counts))
