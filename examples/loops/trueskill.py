"""TrueSkill ratings of players in games of two without draws, in order of time (Herbrich et al., NIPS 2006)."""

from math import erfc, exp, pi, sqrt
from typing import Any

import numpy as np

import strads

ORDER_MATTERS = True


def body(k, games, mean, variance, beta, drift):
    """One game."""
    winner, loser = games[k, 0], games[k, 1]
    variance[winner] += drift
    variance[loser] += drift
    c = sqrt(2.0 * beta * beta + variance[winner] + variance[loser])
    t = (mean[winner] - mean[loser]) / c
    v = exp(-0.5 * t * t) / sqrt(2.0 * pi) / max(0.5 * erfc(-t / sqrt(2.0)), 1e-300)
    shrink = v * (v + t)
    mean[winner] += variance[winner] / c * v
    mean[loser] -= variance[loser] / c * v
    variance[winner] *= 1.0 - variance[winner] / (c * c) * shrink
    variance[loser] *= 1.0 - variance[loser] / (c * c) * shrink


def make(scale: float = 1.0, seed: int = 0) -> tuple[Any, tuple[Any, ...]]:
    """Games of players who play as often as by a power law, against others of near strength."""
    rng = np.random.default_rng(seed)
    n, players = int(18_000_000 * scale), int(300_000 * scale)
    strength = np.sort(rng.normal(25, 8, players))
    first = rng.permutation(players)[(players * rng.random(n) ** 2).astype(int)]
    second = np.abs(first + rng.normal(0, players / 50, n).astype(int)) % players
    second = np.where(second == first, (first + 1) % players, second)
    wins = strength[first] + rng.normal(0, 6, n) > strength[second]
    games = np.where(wins[:, None], np.stack([first, second], 1), np.stack([second, first], 1))
    tables = (strads.dvector(games, dtype="i4"), strads.dvector.full(players, 25.0), strads.dvector.full(players, 69.0))
    return n, (*tables, 4.17, 0.007)


def objective(games: strads.dvector, mean: strads.dvector, *_: Any) -> float:
    """Share of games that the player with the lower mean has won."""
    g, m = games.to_numpy(), mean.to_numpy()
    return float(np.mean(m[g[:, 0]] < m[g[:, 1]]))


if __name__ == "__main__":
    n, arguments = make()
    print(strads.async_for(n, body, *arguments, order="sequential"))
    print(f"upsets: {objective(*arguments):.4f}")
