"""Both ends of an edge move: two rows of one table in each task, which strads schedules as buckets."""

import numpy as np

import strads


def pull(k, edges, position, step, stress):
    """Move the two ends of an edge towards distance 1 from each other (stochastic gradient layout)."""
    e = edges[k]
    a, b = position[e[0]], position[e[1]]
    dx, dy = b[0] - a[0], b[1] - a[1]
    distance = (dx * dx + dy * dy) ** 0.5 + 1e-6
    move = step * (distance - 1.0) / distance
    a[0] += move * dx
    a[1] += move * dy
    b[0] -= move * dx
    b[1] -= move * dy
    stress.add((distance - 1.0) ** 2)


def main() -> None:
    """Lay out a ring with random chords."""
    rng = np.random.default_rng(0)
    nodes = 100_000
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], 1)
    edges = strads.dvector(np.concatenate([ring, rng.integers(0, nodes, (nodes, 2))]))
    position = strads.dvector.normal((nodes, 2), std=3.0, seed=0)
    for epoch in range(5):
        stress = strads.accumulator(0.0)
        stats = strads.async_for(len(edges), pull, edges, position, 0.3, stress)
        print(f"epoch {epoch + 1}: stress per edge {stress.value / len(edges):.4f} ({stats.strategy})")


if __name__ == "__main__":
    main()
