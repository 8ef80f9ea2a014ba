"""PageRank by Gauss-Seidel sweeps: a page gathers from the pages that link to it (Arasu et al., WWW 2002)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, sources, links, rank, damping):
    """One page."""
    total = 0.0
    for p in range(offsets[k], offsets[k + 1]):
        total += rank[sources[p]] / links[sources[p]]
    rank[k] = (1.0 - damping) / len(rank) + damping * total


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A web whose pages are linked to by a power law."""
    rng = np.random.default_rng(seed)
    pages, links = int(2_000_000 * scale), int(25_000_000 * scale)
    names = rng.permutation(pages)
    source = np.concatenate([np.arange(pages), rng.integers(0, pages, links - pages)])
    target = names[(pages * rng.random(links) ** 3).astype(int)]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=pages))])
    sources = source[np.argsort(target, kind="stable")].astype("i4")
    outgoing = np.bincount(source, minlength=pages)
    tables = (strads.dvector(table, copy=False) for table in (offsets, sources, outgoing))
    return pages, (*tables, strads.dvector.full(pages, 1.0 / pages), 0.85)


def objective(offsets, sources, links, rank, damping) -> float:
    """Sum of the errors of all pages' equations."""
    sources, rank = sources.to_numpy(), rank.to_numpy().astype("f8")
    targets = np.repeat(np.arange(len(rank)), np.diff(offsets.to_numpy()))
    gathered = np.bincount(targets, rank[sources] / links.to_numpy()[sources], len(rank))
    return float(np.abs((1 - damping) / len(rank) + damping * gathered - rank).sum())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"sweep {epoch + 1}: error {objective(*arguments):.6f}")
