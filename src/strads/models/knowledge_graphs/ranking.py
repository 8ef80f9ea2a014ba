"""Evaluation of knowledge-graph models: ranks of the right answers to (head, relation, ?) and (?, relation, tail)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.cluster import ThreadTeam
from strads.models.kernels.triple_ranking import all_distances, rank_answers

_QUERIES = 16  # that a thread answers at a time
_HEAD, _TAIL = 0, 2  # columns of triples


@dataclass(frozen=True)
class RankingFigures:
    """How far ahead the right answers are.

    Attributes
    ----------
    mrr : float
        Mean of 1 / rank.
    mean_rank : float
    hits_at_1, hits_at_3, hits_at_10 : float
        Share of ranks up to 1, 3 and 10.
    """

    mrr: float
    mean_rank: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float

    @classmethod
    def of(cls, ranks: NDArray[np.float64]) -> Self:
        """Compute the figures of ranks."""
        hits = (float((ranks <= most).mean()) for most in (1, 3, 10))
        return cls(float((1 / ranks).mean()), float(ranks.mean()), *hits)


@dataclass(frozen=True)
class LinkPrediction:
    """Figures of the ranks of heads and tails of test triples (Bordes et al. 2013, §4.2).

    Attributes
    ----------
    raw : RankingFigures
        Ranks among all entities.
    filtered : RankingFigures
        Ranks among those entities that do not make another known triple.
    """

    raw: RankingFigures
    filtered: RankingFigures


class KnownAnswers:
    """The answers that known triples give to queries.

    Parameters
    ----------
    triples : int32 ndarray of shape (n, 3)
        Head, relation, tail; duplicates do not matter.
    relations : int
        Number of relations.
    """

    def __init__(self, triples: NDArray[np.int32], relations: int):
        self._relations = relations
        unique = np.unique(triples, axis=0)
        self._keys, self._answers = {}, {}
        for anchor, answer in ((_HEAD, _TAIL), (_TAIL, _HEAD)):
            keys = self._key(unique[:, anchor], unique[:, 1])
            order = np.argsort(keys, kind="stable")
            self._keys[anchor], self._answers[anchor] = keys[order], unique[order, answer].astype(np.int64)

    def _key(self, anchors: NDArray[np.integer], relations: NDArray[np.integer]) -> NDArray[np.int64]:
        return anchors.astype(np.int64) * self._relations + relations

    def of(self, queries: NDArray[np.int32], anchor: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the known answers to the queries of triples.

        Parameters
        ----------
        queries : int32 ndarray of shape (n, 3)
        anchor : int
            Column of the end that is given: 0 for heads, 2 for tails.

        Returns
        -------
        offsets : int64 ndarray of shape (n + 1,)
        known : int64 ndarray
            Query q's answers are `known[offsets[q]:offsets[q + 1]]`.
        """
        keys = self._key(queries[:, anchor], queries[:, 1])
        low, high = (np.searchsorted(self._keys[anchor], keys, side) for side in ("left", "right"))
        offsets = np.concatenate([[0], np.cumsum(high - low)])
        places = np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], high - low)
        return offsets, self._answers[anchor][places]


def predict_links(
    test: NDArray[np.int32],
    known: NDArray[np.int32],
    entities: NDArray[np.float32],
    relations: NDArray[np.float32],
    norm: int,
    team: ThreadTeam,
) -> LinkPrediction:
    """Rank the tail and the head of each test triple among all entities; equal distances count half.

    Parameters
    ----------
    test, known : int32 ndarrays of shape (n, 3)
        Head, relation, tail; the known triples include those of the test.
    entities, relations : float32 ndarrays, padded as in `Rows`
    """
    answers = KnownAnswers(known, len(relations))
    raw, filtered = np.empty((2, len(test))), np.empty((2, len(test)))
    sides = [(answers.of(test, anchor), anchor, direction) for anchor, direction in ((_HEAD, 1), (_TAIL, -1))]
    chunks = -(-len(test) // _QUERIES)

    def work(number: int) -> None:
        side, chunk = divmod(number, chunks)
        (offsets, found), anchor, direction = sides[side]
        part = slice(chunk * _QUERIES, min((chunk + 1) * _QUERIES, len(test)))
        queries = test[part]
        lengths = np.empty((len(queries), len(entities)), np.float32)
        directions = np.full(len(queries), direction, np.float32)
        of_relations = np.ascontiguousarray(queries[:, 1])
        anchors, right = (np.ascontiguousarray(queries[:, place]) for place in (anchor, _TAIL - anchor))
        all_distances(entities, relations, anchors, of_relations, directions, norm, lengths)
        own = offsets[part.start : part.stop + 1]
        rank_answers(lengths, right, own, found, raw[side, part], filtered[side, part])

    team.for_each(work, 2 * chunks)
    return LinkPrediction(RankingFigures.of(raw.ravel()), RankingFigures.of(filtered.ravel()))
