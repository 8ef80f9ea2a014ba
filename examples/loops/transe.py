"""TransE: a fact's tail lies where the relation leads from its head (Bordes et al., NIPS 2013)."""

from typing import Any

import numpy as np

import strads


def body(k, triples, corrupted, E, R, rate, margin):
    """One fact against the same with another tail."""
    t = triples[k]
    h, r, tail, other = E[t.head], R[t.relation], E[t.tail], E[corrupted[k]]
    near, far = 0.0, 0.0
    for f in range(len(h)):
        near += (h[f] + r[f] - tail[f]) ** 2
        far += (h[f] + r[f] - other[f]) ** 2
    if margin + near - far > 0.0:
        for f in range(len(h)):
            towards = h[f] + r[f] - tail[f]
            away = h[f] + r[f] - other[f]
            h[f] -= rate * (towards - away)
            r[f] -= rate * (towards - away)
            tail[f] += rate * towards
            other[f] -= rate * away


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Facts of 200 relations; entities and relations are as frequent as by a power law."""
    rng = np.random.default_rng(seed)
    n, entities, relations, rank = int(7_000_000 * scale), int(200_000 * scale), 200, 32
    triples = np.empty(n, [("head", "i4"), ("relation", "i4"), ("tail", "i4")])
    triples["head"] = (entities * rng.random(n) ** 2).astype(int)
    triples["relation"] = (relations * rng.random(n) ** 3).astype(int)
    shift = rng.integers(0, entities, relations)
    triples["tail"] = (triples["head"] + shift[triples["relation"]] + rng.integers(0, 20, n)) % entities
    names = rng.permutation(entities)
    triples["head"], triples["tail"] = names[triples["head"]], names[triples["tail"]]
    E = strads.dvector.normal((entities, rank), std=rank**-0.5, seed=seed)
    R = strads.dvector.normal((relations, rank), std=rank**-0.5, seed=seed + 1)
    return n, (strads.dvector(triples), strads.dvector(rng.integers(0, entities, n)), E, R, 0.02, 1.0)


def objective(triples, corrupted, E, R, rate, margin) -> float:
    """Mean margin loss of the first 300,000 facts."""
    t, other, E = triples.to_numpy()[:300_000], corrupted.to_numpy()[:300_000], E.to_numpy()
    goal = E[t["head"]] + R.to_numpy()[t["relation"]]
    near, far = ((goal - E[t["tail"]]) ** 2).sum(1), ((goal - E[other]) ** 2).sum(1)
    return float(np.maximum(0, margin + near - far).mean())


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: loss {objective(*arguments):.4f}")
