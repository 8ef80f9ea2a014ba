"""Elo ratings of players, their games in order of time (Elo 1978)."""

from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, games, rating, gain):
    """One game; the score is 1 when the first player wins."""
    g = games[k]
    expected = 1.0 / (1.0 + 10.0 ** ((rating[g.second] - rating[g.first]) / 400.0))
    change = gain * (g.score - expected)
    rating[g.first] += change
    rating[g.second] -= change


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Games of players who play as often as by a power law, against others of near strength."""
    rng = np.random.default_rng(seed)
    n, players = int(60_000_000 * scale), int(600_000 * scale)
    strength = np.sort(rng.normal(1500, 300, players))
    games = np.empty(n, [("first", "i4"), ("second", "i4"), ("score", "f8")])
    first = rng.permutation(players)[(players * rng.random(n) ** 2).astype(int)]
    second = np.abs(first + rng.normal(0, players / 50, n).astype(int)) % players
    second = np.where(second == first, (first + 1) % players, second)
    games["first"], games["second"] = first, second
    games["score"] = rng.random(n) < 1 / (1 + 10 ** ((strength[second] - strength[first]) / 400))
    return n, (strads.dvector(games, copy=False), strads.dvector.full(players, 1500.0), 16.0)


def objective(games: strads.dvector, rating: strads.dvector, gain: float) -> float:
    """Mean logistic loss of the games."""
    g, r = games.to_numpy(), rating.to_numpy()
    margin = (r[g["first"]] - r[g["second"]]) / 400 * np.log(10)
    return float(np.mean(np.logaddexp(0, margin) - g["score"] * margin))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"loss: {objective(*arguments):.4f}")
