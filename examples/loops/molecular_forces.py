"""Lennard-Jones forces over half neighbour lists; both particles of a pair get theirs (Verlet, Phys. Rev. 1967)."""

from typing import Any

import numpy as np

import strads


def body(k, offsets, neighbours, position, force, cutoff):
    """One particle and its neighbours of higher number."""
    x, f = position[k], force[k]
    for p in range(offsets[k], offsets[k + 1]):
        y, g = position[neighbours[p]], force[neighbours[p]]
        dx, dy, dz = x[0] - y[0], x[1] - y[1], x[2] - y[2]
        r2 = dx * dx + dy * dy + dz * dz
        if r2 < cutoff * cutoff:
            s6 = 1.0 / (r2 * r2 * r2)
            strength = 24.0 * s6 * (2.0 * s6 - 1.0) / r2
            f[0] += strength * dx
            f[1] += strength * dy
            f[2] += strength * dz
            g[0] -= strength * dx
            g[1] -= strength * dy
            g[2] -= strength * dz


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """A shaken lattice, numbered along the lattice."""
    rng = np.random.default_rng(seed)
    side = max(6, round(130 * scale ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
    position = (1.1 * lattice + rng.normal(0, 0.08, lattice.shape)).astype("f4")
    steps = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    later = [s for s in steps[63:] if (s**2).sum() <= 4]  # steps to higher numbers
    near = lattice[:, None] + later
    there = ((near >= 0) & (near < side)).all(2)
    neighbours = (near @ [side * side, side, 1])[there].astype("i4")
    offsets = np.concatenate([[0], np.cumsum(there.sum(1))])
    tables = (strads.dvector(table) for table in (offsets, neighbours, position))
    return len(position), (*tables, strads.dvector.zeros(position.shape), 2.0)


def next_epoch(epoch: int, offsets: Any, neighbours: Any, position: Any, force: strads.dvector, *_: Any) -> None:
    """Forces start at zero."""
    force[:] = 0.0


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"sum of all forces: {arguments[3].to_numpy().sum(0, dtype='f8')}")
