"""Progress per sample of SGD matrix factorization, model-parallel against data-parallel (thesis fig. 3.8, 4.3 d–f).

Objective versus passes over the ratings for 1, 8, 64 logical workers, at the step that is best for one worker and at
smaller ones. Workers are logical, so the curves are those of a cluster of that size.

Usage:
    python experiments/mf_progress.py [--ratings ../shared/data/ml-100k/u.data.gz] [--workers 1 8 64] [--epochs 20]
"""

import argparse
import gzip
import math
from pathlib import Path

import numpy as np
from _factorizations import copied, rotated
from numpy.typing import NDArray

from strads import schmp

RANK, REGULARIZATION = 16, 0.05
STEPS = (0.02, 0.01, 0.005)
RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")])
MOVIELENS = Path(__file__).resolve().parents[2] / "shared" / "data" / "ml-100k" / "u.data.gz"


def movielens(path: Path) -> NDArray[np.void]:
    """Read MovieLens' tab-separated user, item, rating; scores less their mean, in random order."""
    with gzip.open(path, "rt") as file:
        raw = np.loadtxt(file, usecols=(0, 1, 2))
    ratings = np.empty(len(raw), RATING)
    ratings["user"], ratings["item"] = raw[:, 0] - 1, raw[:, 1] - 1
    ratings["score"] = raw[:, 2] - raw[:, 2].mean()
    return np.random.default_rng(0).permutation(ratings)


def curve(engine: schmp.StaticEngine, ratings: int, epochs: int) -> list[float]:
    """Training RMSE, each rating before its step, after every pass; inf once it diverges."""
    with engine:
        errors = []
        for _ in range(epochs):
            engine.iterate()
            loss = engine.each_node(lambda program: program.loss)[0]
            errors.append(math.sqrt(loss / ratings) if math.isfinite(loss) else math.inf)
    return errors


def main() -> None:
    """Print a table of curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=Path, default=MOVIELENS)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=float, nargs="+", default=STEPS)
    options = parser.parse_args()
    if not options.ratings.is_file():
        parser.error(f"{options.ratings}: no such file; name one with --ratings")
    ratings = movielens(options.ratings)
    rng = np.random.default_rng(1)
    W, H = (rng.normal(0, 0.1, (int(ratings[name].max()) + 1, RANK)).astype(np.float32) for name in ("user", "item"))
    shown = sorted({0, options.epochs // 4 - 1, options.epochs // 2 - 1, options.epochs - 1} - {-1})
    print(f"{'':36}" + "".join(f"epoch {epoch + 1:<6}" for epoch in shown))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in options.steps:
            for workers in options.workers:
                for name, start in (("rotation", rotated), ("copies, BSP", copied)):
                    engine = start(ratings, W, H, workers, step, REGULARIZATION)
                    errors = curve(engine, len(ratings), options.epochs)
                    label = f"step {step:<6} {name:<12} {workers:>3} workers"
                    print(f"{label:<36}" + "".join(f"{errors[epoch]:<12.4f}" for epoch in shown))


if __name__ == "__main__":
    main()
