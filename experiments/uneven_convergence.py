"""How many updates coefficients need until they have converged (thesis fig. 3.3), on a gene-expression problem.

Cyclic coordinate descent, one update at a time; a coefficient has converged after the last update that moved it by more
than a thousandth of the largest coefficient.

Usage:
    python experiments/uneven_convergence.py [--genes ../shared/data/genes/ALLAML.mat]
"""

import argparse
from contextlib import closing
from pathlib import Path

import numpy as np
import scipy.io
from _block_correlated import Lasso
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.engine.dynamic.coordinate_rounds import CoordinateRounds
from strads.schedule.dynamic.schedules import CyclicSchedule

GENES = Path(__file__).resolve().parents[2] / "shared" / "data" / "genes" / "ALLAML.mat"
SHARES = (0.5, 0.1, 0.02)  # of the largest λ
SWEEPS, WIDTH = 300, 50
BINS = (1, 2, 3, 4, 5, 10, 20, 50, 100, SWEEPS)


def genes(path: Path) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Read standardized expressions, and the diagnosis as ±1, less its mean."""
    file = scipy.io.loadmat(path)
    X = np.asarray(file["fea"], np.float64)
    X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-12)
    y = np.where(file["gnd"].ravel() == 1, 1.0, -1.0)
    return np.asfortranarray(X, np.float32), y - y.mean()


def updates_until_converged(lasso: Lasso) -> NDArray[np.int64]:
    """Return for each coefficient the number of its last update that moved it noticeably; 1 if none did."""
    model, features = lasso.model(), lasso.X.shape[1]
    coef = model.coefficients.coef
    history = [coef.copy()]
    with closing(ThreadTeam(1)) as team:
        rounds = CoordinateRounds(CyclicSchedule(range(features), 1).state, model, team)
        for _ in range(SWEEPS):
            rounds.run(features)
            history.append(coef.copy())
    moved = np.abs(np.diff(history, axis=0)) > 1e-3 * np.abs(coef).max()
    last = np.where(moved.any(0), SWEEPS - np.argmax(moved[::-1], axis=0), 0)
    return np.maximum(last, 1)


def main() -> None:
    """Print a histogram for each λ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--genes", type=Path, default=GENES)
    options = parser.parse_args()
    if not options.genes.is_file():
        parser.error(f"{options.genes}: no such file; name one with --genes")
    X, y = genes(options.genes)
    largest = float(np.abs(y @ X).max())
    for share in SHARES:
        updates = updates_until_converged(Lasso(X, y, share * largest))
        print(f"λ = {share:g} λmax: {np.mean(updates <= 5):.1%} of {len(updates)} converged within 5 updates")
        low = 0
        for high in BINS:
            part = np.mean((updates > low) & (updates <= high))
            label = f"{high}" if high == low + 1 else f"{low + 1}–{high}"
            print(f"  {label:>8} {part:7.2%} {'█' * round(WIDTH * part)}")
            low = high


if __name__ == "__main__":
    main()
