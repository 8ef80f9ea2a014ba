"""What ids cost: `MatrixFactorization` on ids of MovieLens, random 64-bit numbers and texts, against 0, 1, 2, ….

Ratings, order and model are the same, so only the mapping of ids differs. Prints the CPU time of a fit of 20 epochs per
rating, and ratios to dense ids, medians of interleaved runs.

    python benchmarks/ids.py [--scale 0.1]
"""

import argparse
import statistics
import time
from typing import Any

import numpy as np

from strads.models import MatrixFactorization

SIZES = {"latest-small": (100_836, 610, 9_724, 193_610), "25 M / 5": (5_000_000, 32_500, 59_047, 209_172)}


def inputs(ratings: int, users: int, items: int, largest: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return pairs of users and items under ids of several kinds, and scores."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(users), rng.integers(0, users, ratings - users)])
    columns = np.concatenate([np.arange(items), (rng.random(ratings - items) ** 3 * items).astype(np.int64)])
    order = rng.permutation(ratings)
    rows, columns = rows[order], rng.permutation(columns)
    sparse = np.sort(rng.choice(np.arange(1, largest), items, replace=False))
    large_users, large_items = (np.sort(rng.integers(-(2**62), 2**62, count)) for count in (users, items))
    texts = [
        np.array(sorted(f"{kind}-{number:x}" for number in range(n)), object)
        for kind, n in (("u", users), ("i", items))
    ]
    kinds = {
        "dense": (rows, columns),
        "as in MovieLens": (rows + 1, sparse[columns]),
        "64-bit numbers": (large_users[rows], large_items[columns]),
        "texts": (texts[0][rows], texts[1][columns]),
    }
    return kinds, rng.integers(1, 11, ratings) / 2


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of ratings")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for name, (ratings, users, items, largest) in SIZES.items():
        kinds, scores = inputs(max(int(ratings * options.scale), users + items), users, items, largest)
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for repeat in range(options.repeats + 1):  # the first compiles
            for kind, pairs in kinds.items():
                begin = time.process_time()
                MatrixFactorization(32, max_iter=20, n_jobs=1, remember_ratings=False).fit(pairs, scores)
                if repeat:
                    times[kind].append(time.process_time() - begin)
        dense = statistics.median(times["dense"])
        for kind, seconds in times.items():
            median = statistics.median(seconds)
            per_rating = median / len(scores) / 20 * 1e9
            print(
                f"{name:14} {kind:16} {per_rating:6.1f} ns a rating and epoch, {median / dense:5.2f} x dense",
                flush=True,
            )


if __name__ == "__main__":
    main()
