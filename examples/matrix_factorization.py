"""The loop of the README: write the sequential body, run it in parallel."""

import numpy as np

import strads


def sgd(k, ratings, W, H, lr, reg, loss):
    """One rating: a step on one row of W and one row of H."""
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += lr * (err * h[f] - reg * wf)
        h[f] += lr * (err * wf - reg * h[f])
    loss.add(err * err)


def main() -> None:
    """Train on a million generated ratings."""
    rng = np.random.default_rng(0)
    n, n_users, n_items, rank = 1_000_000, 10_000, 3_000, 16
    users, items = rng.integers(0, n_users, n), rng.integers(0, n_items, n)
    U, V = rng.normal(0, 0.5, (n_users, 4)), rng.normal(0, 0.5, (n_items, 4))
    data = np.empty(n, [("user", "i4"), ("item", "i4"), ("score", "f4")])
    data["user"], data["item"] = users, items
    data["score"] = (U[users] * V[items]).sum(1) + rng.normal(0, 0.1, n)

    ratings = strads.from_numpy(data)
    W = strads.dvector.uniform((n_users, rank), low=-0.3, high=0.3, seed=0)
    H = strads.dvector.uniform((n_items, rank), low=-0.3, high=0.3, seed=1)
    for epoch in range(10):
        loss = strads.accumulator(0.0)
        stats = strads.async_for(range(len(ratings)), sgd, ratings, W, H, 0.03, 0.01, loss)
        speed = n / stats.execution_seconds / 1e6
        print(f"epoch {epoch + 1:2}: RMSE {(loss.value / n) ** 0.5:.4f}, {speed:.0f} M ratings/s")
    print(stats.plan.explain())


if __name__ == "__main__":
    main()
