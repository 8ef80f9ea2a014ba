"""Ratings generated from known factors, so that the best possible error is known."""

import numpy as np
from numpy.typing import NDArray

USERS, ITEMS = 20_000, 5_000
RANK = 8  # planted factors
NOISE = 0.3  # σ of the Gaussian noise on each score: the held-out RMSE of the planted model itself
_DRAWS = 3_100_000  # pairs of user and item; duplicates count once
_RECORD = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)
_MEAN = 3.5  # of all scores
_BIAS_SPREAD = 0.3  # standard deviation of the biases of users and items
_USER_SKEW = 0.25  # σ of the log-normal distribution of users' activity
_ITEM_EXPONENT = 0.6  # of the power law of the popularity of items


def planted_ratings(seed: int) -> NDArray[np.void]:
    """Records of user, item and score in random order; popularity falls as a power of the item's rank."""
    rng = np.random.default_rng(seed)
    pairs = _pairs(rng)
    users, items = pairs // ITEMS, pairs % ITEMS
    spread = RANK**-0.25  # so that the inner products have variance 1
    user_factors = rng.standard_normal((USERS, RANK), np.float32) * np.float32(spread)
    item_factors = rng.standard_normal((ITEMS, RANK), np.float32) * np.float32(spread)
    user_biases, item_biases = (
        rng.standard_normal(rows, np.float32) * np.float32(_BIAS_SPREAD) for rows in (USERS, ITEMS)
    )
    records = np.empty(len(pairs), _RECORD)
    records["user"], records["item"] = users, items
    scores = np.einsum("nf,nf->n", user_factors[users], item_factors[items])
    scores += _MEAN + user_biases[users] + item_biases[items]
    records["score"] = scores + np.float32(NOISE) * rng.standard_normal(len(pairs), np.float32)
    return records


def _pairs(rng: np.random.Generator) -> NDArray[np.int64]:
    activity = rng.lognormal(0.0, _USER_SKEW, USERS)
    # Popular items have any id.
    popularity = rng.permutation(np.arange(10, ITEMS + 10) ** -_ITEM_EXPONENT)
    pairs = _ids(rng, activity) * ITEMS + _ids(rng, popularity)
    # A sort and a comparison: twenty times as fast as numpy.unique on millions of integers.
    pairs.sort()
    return rng.permutation(pairs[np.append(True, pairs[1:] != pairs[:-1])])


def _ids(rng: np.random.Generator, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    counts = rng.multinomial(_DRAWS, weights / weights.sum())
    return rng.permutation(np.repeat(np.arange(len(weights)), counts))
