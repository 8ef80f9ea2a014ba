"""TransE in parallel: `transe_serial.py`, with tables of strads and its loop (thesis fig. 6.1 and 6.4)."""

import numpy as np

import strads


def step(k, triples, others, E, R, rate, margin, loss):
    """Compare a triple with the same with another tail."""
    t = triples[k]
    h, r, tail, other = E[t[0]], R[t[1]], E[t[2]], E[others[k]]
    near, far = 0.0, 0.0
    for f in range(len(h)):
        near += (h[f] + r[f] - tail[f]) ** 2
        far += (h[f] + r[f] - other[f]) ** 2
    violation = margin + near - far
    if violation > 0.0:
        loss.add(violation)
        for f in range(len(h)):
            towards = h[f] + r[f] - tail[f]
            away = h[f] + r[f] - other[f]
            h[f] -= rate * (towards - away)
            r[f] -= rate * (towards - away)
            tail[f] += rate * towards
            other[f] -= rate * away


def make_triples(elements):
    """Entities are sets; relation k leads from each set without element k to the same set with it."""
    members, element = np.meshgrid(np.arange(1 << elements), np.arange(elements))
    head, relation = members[members >> element & 1 == 0], element[members >> element & 1 == 0]
    return np.stack([head, relation, head | 1 << relation], 1)


def main(elements=7, epochs=20, rank=16):
    """Train on all triples; return the mean loss of each epoch."""
    rng = np.random.default_rng(0)
    triples = strads.dvector(rng.permutation(make_triples(elements)))
    E = strads.dvector(rng.normal(0, 0.3, (1 << elements, rank)))
    R = strads.dvector(rng.normal(0, 0.3, (elements, rank)))
    losses = []
    for epoch in range(epochs):
        others = strads.dvector(rng.integers(0, 1 << elements, len(triples)))
        loss = strads.accumulator(0.0)
        strads.async_for(range(len(triples)), step, triples, others, E, R, 0.05, 1.0, loss)
        losses.append(loss.value / len(triples))
        print(f"epoch {epoch + 1:2}: loss {losses[-1]:.4f}")
    return losses


if __name__ == "__main__":
    main()
