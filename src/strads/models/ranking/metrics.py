"""Metrics of a ranking of what users chose: precision, recall, NDCG, MAP at k, AUC; and what to hold out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from strads.errors import ArgumentError, InputError
from strads.models._parameters import check_share, check_whole_number
from strads.models.interactions.id_column import IdColumn
from strads.models.interactions.interactions import Interactions
from strads.models.ranking.evaluation import best_of_all, mean_auc
from strads.models.ranking.likes import Likes
from strads.models.ranking.neighbours import Neighbours, likes_of


@dataclass(frozen=True)
class RankingMetrics:
    """Means over the users who have held-out items.

    With the k best items that a user did not have in the training data, of which h are held out for a user with r
    held-out items:

    Attributes
    ----------
    k : int
    users : int
        Number of users that the means are over.
    pairs : int
        Number of their held-out items.
    left_out : int
        Number of held-out pairs that do not count, as the model does not know their user or item, or had them in the
        training data.
    precision : float
        h / k.
    recall : float
        h / r.
    ndcg : float
        Σ 1 / log₂(1 + place) over the hits, divided by that of the best order (Järvelin and Kekäläinen 2002).
    map : float
        Σ over the hits of the precision at their place, divided by min(k, r).
    auc : float
        Probability that a held-out item has a higher score than another one that the user did not have.
    """

    k: int
    users: int
    pairs: int
    left_out: int
    precision: float
    recall: float
    ndcg: float
    map: float
    auc: float


def evaluate_ranking(model: Neighbours, held_out: Any, k: int = 10) -> RankingMetrics:
    """Measure how a fitted `MatrixFactorization` or `BayesianPersonalizedRanking` ranks held-out items.

    Parameters
    ----------
    model
        It must remember what users had in the training data: their items are not recommended.
    held_out
        Pairs of user and item, in the formats of `fit`. Scores do not matter: leave out what users did not like.
    k
        Length of the list that is recommended.

    Raises
    ------
    ArgumentError, InputError
        For another k, other pairs, or if no pair is left.
    """
    check_whole_number("k", k)
    given = Interactions.of(held_out, what="weight")
    factors, known = model.ranking_factors(), model.known_likes()
    held = likes_of(model, given).without(known)
    users = np.flatnonzero(held.of_users)
    if not len(users):
        raise InputError(f"none of the {len(given):,} held-out pairs can be measured: the model knows none, or had all")
    most = min(int(k), known.n_items)
    found, _ = best_of_all(
        factors.users[users], factors.items, factors.biases, most, known.select(users), model._team()
    )
    figures = _at_k(found, held.select(users), int(k))
    return RankingMetrics(
        int(k),
        len(users),
        len(held.items),
        len(given) - len(held.items),
        **{name: float(values.mean()) for name, values in figures.items()},
        auc=mean_auc(factors, known, held, model._team()),
    )


def _at_k(found: NDArray[np.int64], held: Likes, k: int) -> dict[str, NDArray[np.float64]]:
    """Return the figures of users, given what is recommended to each, −1 where there are fewer, and their items."""
    owners = np.arange(len(found))[:, None] * held.n_items
    of_held = np.repeat(np.arange(held.n_users) * held.n_items, held.of_users) + held.items
    hits = np.isin(found + owners, of_held) & (found >= 0)
    places = np.arange(1, found.shape[1] + 1)
    gains = 1 / np.log2(1 + np.arange(1, k + 1))
    reachable = np.minimum(held.of_users, k)
    return {
        "precision": hits.sum(1) / k,
        "recall": hits.sum(1) / held.of_users,
        "ndcg": hits @ gains[: len(places)] / np.cumsum(gains)[reachable - 1],
        "map": (hits * np.cumsum(hits, 1) / places).sum(1) / reachable,
    }


def leave_one_out(users: Any, times: ArrayLike | None = None, *, random_state: int = 0) -> NDArray[np.bool_]:
    """Choose one row of each user who has more than one: the last by time, or one at random.

    Parameters
    ----------
    users : array-like of shape (n,)
        Ids.
    times : array-like of shape (n,), optional
        Numbers; of equal ones the later row is the last.
    random_state : int
        Seed, without times.

    Returns
    -------
    ndarray of shape (n,), bool
        Which rows to hold out.
    """
    codes, distinct = IdColumn.of("user", users).factorized()
    order = np.random.default_rng(random_state).random(len(codes)) if times is None else _times(times, len(codes))
    last = np.lexsort((np.arange(len(codes)), order, codes))
    ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
    several = np.diff(ends, prepend=0) > 1
    held = np.zeros(len(codes), bool)
    held[last[ends[several] - 1]] = True
    return held


def last_share(times: ArrayLike, share: float) -> NDArray[np.bool_]:
    """Choose the rows of the last `share` by time, so that a model learns from the past alone.

    Rows of equal times stay together: they are held out only if all of them are within the share.

    Parameters
    ----------
    times : array-like of shape (n,)
        Numbers.
    share : float
        Above 0, below 1.

    Returns
    -------
    ndarray of shape (n,), bool
        Which rows to hold out.
    """
    check_share("share", share)
    values = _times(times, None)
    first = int(np.ceil(len(values) * (1 - share)))
    held: NDArray[np.bool_] = values > np.sort(values)[first - 1] if first else values == values
    return held


def _times(times: ArrayLike, count: int | None) -> NDArray[np.float64]:
    values = np.asarray(times)
    if values.dtype.kind not in "fiuM" or values.ndim != 1 or not np.isfinite(values).all():  # NaT is not finite
        raise ArgumentError("times are a one-dimensional array of numbers or dates, without NaN or NaT")
    if values.dtype.kind == "M":
        values = values.astype("M8[us]").astype(np.int64)
    if count is not None and len(values) != count:
        raise InputError(f"{count} users, but {len(values)} times")
    return values.astype(np.float64)
