"""Distances of entities from the goal of a relation, and the ranks of those that should be nearest."""

import numpy as np
from numba import njit

from strads.models.kernels import simd
from strads.models.kernels.translations import distance, translate

_TILE = 256  # entities that stay in the cache for all queries of a call


@njit(nogil=True, error_model="numpy", cache=True)
def all_distances(entities, relations, anchors, of_relations, directions, norm, lengths):  # type: ignore[no-untyped-def]
    """Distances of all entities from the goals of some queries.

    Parameters
    ----------
    entities, relations : float32 arrays of shape (entities, width), (relations, width)
        As in `translations.Rows`.
    anchors, of_relations : int arrays of shape (queries,)
        One end, and the relation.
    directions : float32 array of shape (queries,)
        1 if the anchor is the head, −1 if it is the tail.
    norm : int
        1 or 2.
    lengths : float32 array of shape (queries, entities)
        Set to the distances.
    """
    width = entities.shape[1]
    goals = np.empty((len(anchors), width), np.float32)
    for query in range(len(anchors)):
        anchor = simd.address(entities, anchors[query] * width)
        relation = simd.address(relations, of_relations[query] * width)
        translate(anchor, relation, directions[query], goals[query])
    for start in range(0, len(entities), _TILE):
        for query in range(len(anchors)):
            goal = goals[query]
            for entity in range(start, min(start + _TILE, len(entities))):
                lengths[query, entity] = distance(goal, simd.address(entities, entity * width), norm)


@njit(nogil=True, error_model="numpy", cache=True)
def pair_distances(entities, relations, triples, norm, lengths):  # type: ignore[no-untyped-def]
    """Write ‖head + relation − tail‖ of `triples`, an integer array of shape (n, 3), to `lengths` (float32, (n,)).

    `entities`, `relations` and `norm` are as in `all_distances`.
    """
    width = entities.shape[1]
    goal = np.empty(width, np.float32)
    for number in range(len(triples)):
        head = simd.address(entities, triples[number, 0] * width)
        relation = simd.address(relations, triples[number, 1] * width)
        tail = simd.address(entities, triples[number, 2] * width)
        translate(head, relation, np.float32(1.0), goal)
        lengths[number] = distance(goal, tail, norm)


@njit(nogil=True, error_model="numpy", cache=True)
def rank_answers(lengths, answers, offsets, known, raw, filtered):  # type: ignore[no-untyped-def]
    """Rank each query's answer among all entities, and among all but the other known answers; ties count half.

    Parameters
    ----------
    lengths : float32 array of shape (queries, entities)
        From `all_distances`.
    answers : int array of shape (queries,)
        The entity that should be nearest.
    offsets, known : int64 arrays
        Query q's known answers, with `answers[q]`, each once: `known[offsets[q]:offsets[q + 1]]`.
    raw, filtered : float64 arrays of shape (queries,)
        Set to the ranks, from 1.
    """
    for query in range(len(answers)):
        row = lengths[query]
        length = row[answers[query]]
        nearer, ties = 0, 0
        for entity in range(len(row)):
            nearer += row[entity] < length
            ties += row[entity] == length
        raw[query] = 1 + nearer + 0.5 * (ties - 1)
        for place in range(offsets[query], offsets[query + 1]):
            nearer -= row[known[place]] < length
            ties -= row[known[place]] == length
        filtered[query] = 1 + nearer + 0.5 * ties
