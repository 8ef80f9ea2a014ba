"""Greedy graph colouring: a vertex takes the first colour that no neighbour has (Welsh and Powell 1967)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, neighbours, colours):
    """One vertex; -1 is no colour yet."""
    degree = offsets[k + 1] - offsets[k]
    taken = np.zeros(degree + 1, np.bool_)
    for p in range(offsets[k], offsets[k + 1]):
        colour = colours[neighbours[p]]
        if 0 <= colour <= degree:
            taken[colour] = True
    first = 0
    while taken[first]:
        first += 1
    colours[k] = first


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A graph without loops, its degrees by a power law."""
    rng = np.random.default_rng(seed)
    vertices, edges = int(4_000_000 * scale), int(24_000_000 * scale)
    pairs = rng.permutation(vertices)[(vertices * rng.random((2, edges)) ** 2).astype(int)]
    pairs = pairs[:, pairs[0] != pairs[1]]
    ends, others = np.concatenate(pairs), np.concatenate(pairs[::-1])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=vertices))])
    neighbours = others[np.argsort(ends, kind="stable")].astype("i4")
    colours = strads.dvector.full(vertices, -1, "i4")
    return vertices, (strads.dvector(offsets), strads.dvector(neighbours, copy=False), colours)


def next_epoch(epoch: int, offsets: Any, neighbours: Any, colours: strads.dvector) -> None:
    """Start anew."""
    colours[:] = -1


def objective(offsets: Any, neighbours: Any, colours: strads.dvector) -> float:
    """Number of colours."""
    return float(colours.to_numpy().max() + 1)


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"{objective(*arguments):.0f} colours")
