"""CP factorization of a sparse tensor of three ways by SGD (Beutel et al., SDM 2014)."""

from typing import Any

import numpy as np

import strads


def body(k, entries, A, B, C, rate, penalty):
    """One entry."""
    e = entries[k]
    a, b, c = A[e.i], B[e.j], C[e.l]
    err = e.value
    for f in range(len(a)):
        err -= a[f] * b[f] * c[f]
    for f in range(len(a)):
        af, bf, cf = a[f], b[f], c[f]
        a[f] += rate * (err * bf * cf - penalty * af)
        b[f] += rate * (err * af * cf - penalty * bf)
        c[f] += rate * (err * af * bf - penalty * cf)


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Users, items, and weeks, popular by power laws; planted factors."""
    rng = np.random.default_rng(seed)
    n, rank, ways = int(40_000_000 * scale), 16, (int(60_000 * scale), int(15_000 * scale), 200)
    entries = np.empty(n, [("i", "i4"), ("j", "i4"), ("l", "i4"), ("value", "f4")])
    for name, size in zip("ijl", ways, strict=True):
        entries[name] = rng.permutation(size)[(size * rng.random(n) ** 2).astype(int)]
    planted = [rng.uniform(0.2, 1, (size, 3)).astype("f4") for size in ways]
    entries["value"] = rng.normal(0, 0.1, n)
    for f in range(3):
        entries["value"] += planted[0][entries["i"], f] * planted[1][entries["j"], f] * planted[2][entries["l"], f]
    factors = (strads.dvector.uniform((size, rank), 0.1, 0.5, seed=s) for s, size in enumerate(ways))
    return n, (strads.dvector(entries, copy=False), *factors, 0.01, 0.001)


def objective(entries, A, B, C, rate, penalty) -> float:
    """Root mean squared error of the first million entries."""
    e = entries.to_numpy()[:1_000_000]
    products = (A.to_numpy()[e["i"]] * B.to_numpy()[e["j"]] * C.to_numpy()[e["l"]]).sum(1)
    return float(np.sqrt(np.mean((e["value"] - products) ** 2)))


if __name__ == "__main__":
    n, arguments = make()
    for epoch in range(5):
        strads.async_for(n, body, *arguments)
        print(f"epoch {epoch + 1}: RMSE {objective(*arguments):.4f}")
