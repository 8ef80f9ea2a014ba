"""PageRank by pushing: a page hands what it has received to the pages it links to (Andersen et al., FOCS 2006)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, targets, rank, residual, damping, tolerance):
    """One page."""
    mass = residual[k]
    links = offsets[k + 1] - offsets[k]
    if mass > tolerance * links:
        rank[k] += (1.0 - damping) * mass
        residual[k] = 0.0
        for p in range(offsets[k], offsets[k + 1]):
            residual[targets[p]] += damping * mass / links


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A web whose pages are linked to by a power law."""
    rng = np.random.default_rng(seed)
    pages = int(8_000_000 * scale)
    links = rng.geometric(0.1, pages)
    offsets = np.concatenate([[0], np.cumsum(links)])
    targets = rng.permutation(pages)[(pages * rng.random(offsets[-1]) ** 3).astype(int)].astype("i4")
    rank, residual = strads.dvector.zeros(pages), strads.dvector.full(pages, 1.0 / pages, "f4")
    return pages, (strads.dvector(offsets), strads.dvector(targets), rank, residual, 0.85, 0.001 / pages)


def objective(offsets: Any, targets: Any, rank: Any, residual: strads.dvector, *_: Any) -> float:
    """Mass that is not settled yet."""
    return float(residual.to_numpy().sum(dtype="f8"))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"sweep {epoch + 1}: not settled {objective(*arguments):.6f}")
