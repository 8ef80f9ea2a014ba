"""Generated ratings, 48,000 × 17,700, skewed popularity, planted factors."""

import numpy as np
from numpy.typing import NDArray

USERS, ITEMS, PLANTED_RANK, NOISE = 48_000, 17_700, 10, 0.3
RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")], align=True)


def item_share(skew: float = 0.9, flat: float = 20.0) -> NDArray[np.float64]:
    """Share of the ratings that each item gets: a power law, flattened for the first few."""
    share = (np.arange(ITEMS) + flat) ** -skew
    return share / share.sum()


def generate_ratings(count: int, seed: int = 0, *, skew: float = 0.9, flat: float = 20.0) -> NDArray[np.void]:
    """Return `count` records of user, item, score = ⟨planted factors⟩ + noise of σ = 0.3."""
    rng = np.random.default_rng(seed)
    user_share = (np.arange(USERS) + 50.0) ** -0.6
    ratings = np.empty(count, RATING)
    for name, share in (("user", user_share), ("item", item_share(skew, flat))):
        names = rng.permutation(len(share)).astype(np.int32)
        ratings[name] = names[rng.choice(len(share), count, p=share / share.sum())]
    users = rng.normal(0, 0.5, (USERS, PLANTED_RANK)).astype(np.float32)
    items = rng.normal(0, 0.5, (ITEMS, PLANTED_RANK)).astype(np.float32)
    for part in np.array_split(np.arange(count), max(1, count // 500_000)):
        product = np.einsum("nf,nf->n", users[ratings["user"][part]], items[ratings["item"][part]])
        ratings["score"][part] = product + rng.normal(0, NOISE, len(part))
    return ratings
