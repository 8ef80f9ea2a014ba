"""Viterbi's algorithm: the likeliest states of hidden Markov models, a task a sequence (IEEE Trans. Inf. Th. 1967)."""

from typing import Any

import numpy as np

import strads


def body(k, observed, transition, emission, score, came_from, path):
    """One sequence: scores forward, then the best states backward."""
    states, steps = score.shape[1], observed.shape[1]
    for s in range(states):
        score[k, s] = emission[s, observed[k, 0]]
    reached = np.zeros(states)
    for t in range(1, steps):
        for s in range(states):
            best = 0
            for p in range(1, states):
                if score[k, p] + transition[p, s] > score[k, best] + transition[best, s]:
                    best = p
            came_from[k, t, s] = best
            reached[s] = score[k, best] + transition[best, s] + emission[s, observed[k, t]]
        for s in range(states):
            score[k, s] = reached[s]
    last = 0
    for s in range(1, states):
        if score[k, s] > score[k, last]:
            last = s
    path[k, steps - 1] = last
    for t in range(steps - 1, 0, -1):
        last = came_from[k, t, last]
        path[k, t - 1] = last


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Sequences of random symbols, 12 states."""
    rng = np.random.default_rng(seed)
    sequences, steps, states, symbols = int(60_000 * scale), 60, 12, 50
    observed = rng.integers(0, symbols, (sequences, steps), "i4")
    probabilities = [np.log(rng.dirichlet(np.ones(size), states)) for size in (states, symbols)]
    results = (
        strads.dvector.zeros((sequences, states)),
        strads.dvector.zeros((sequences, steps, states), "i1"),
        strads.dvector.zeros((sequences, steps), "i1"),
    )
    return sequences, (strads.dvector(observed, copy=False), *map(strads.dvector, probabilities), *results)


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments))
    print(f"states of the first sequence: {arguments[-1][0]}")
