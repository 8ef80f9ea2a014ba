"""Ranks and figures of link prediction against plain loops."""

from itertools import pairwise

import numpy as np
import pytest

from strads import cluster
from strads.models.kernels.aligned import padded
from strads.models.knowledge_graphs.ranking import KnownAnswers, RankingFigures, predict_links
from strads.models.knowledge_graphs.training import tail_shares

ENTITIES, RELATIONS, COLUMNS = 40, 3, 6


def small_graph(seed=0):
    """Vectors of small whole numbers, so that many distances are equal, and random triples."""
    rng = np.random.default_rng(seed)
    tables = []
    for rows in (ENTITIES, RELATIONS):
        table = np.zeros((rows, padded(COLUMNS)), np.float32)
        table[:, :COLUMNS] = rng.integers(0, 3, (rows, COLUMNS))
        tables.append(table)
    numbers = [rng.integers(0, most, 300) for most in (ENTITIES, RELATIONS, ENTITIES)]
    return tables, np.stack(numbers, 1).astype(np.int32)


def plain_ranks(tables, test, known, norm, *, filtered):
    """Ranks by loops: tails first, then heads."""
    entities, relations = tables
    everything = {tuple(triple) for triple in np.concatenate([test, known]).tolist()}
    ranks = []
    for side in (2, 0):
        for triple in test.tolist():
            scores = []
            for entity in range(ENTITIES):
                other = [*triple]
                other[side] = entity
                if filtered and entity != triple[side] and tuple(other) in everything:
                    continue
                difference = entities[other[0]] + relations[other[1]] - entities[other[2]]
                scores.append((entity, np.linalg.norm(difference.astype(float), norm)))
            own = dict(scores)[triple[side]]
            nearer = sum(score < own - 1e-6 for _, score in scores)
            ties = sum(abs(score - own) <= 1e-6 for _, score in scores) - 1
            ranks.append(1 + nearer + ties / 2)
    return np.array(ranks)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("threads", [1, 3])
def test_ranks_are_those_of_plain_loops(norm, threads):
    tables, triples = small_graph()
    test, known = triples[:50], triples[50:]
    found = predict_links(test, np.concatenate([test, known]), *tables, norm, cluster.current().team(threads))
    assert found.raw == RankingFigures.of(plain_ranks(tables, test, known, norm, filtered=False))
    assert found.filtered == RankingFigures.of(plain_ranks(tables, test, known, norm, filtered=True))
    assert found.filtered.mean_rank < found.raw.mean_rank


def test_figures_of_ranks():
    figures = RankingFigures.of(np.array([1.0, 2.0, 4.0, 20.0]))
    assert figures == RankingFigures((1 + 0.5 + 0.25 + 0.05) / 4, 6.75, 0.25, 0.5, 0.75)


def test_known_answers():
    triples = np.array([(0, 0, 1), (0, 0, 2), (0, 0, 2), (1, 0, 2), (0, 1, 5)], np.int32)
    offsets, known = KnownAnswers(triples, 2).of(triples, 0)
    of_queries = [sorted(known[low:high]) for low, high in pairwise(offsets)]
    assert of_queries == [[1, 2], [1, 2], [1, 2], [2], [5]]
    offsets, known = KnownAnswers(triples, 2).of(np.array([(7, 0, 2), (7, 1, 2)], np.int32), 2)
    assert (offsets.tolist(), sorted(known)) == ([0, 2, 2], [0, 1])


def test_the_end_with_fewer_alternatives_is_replaced_more_often():
    # Relation 0: one head, four tails. Relation 1: one to one. Relation 2: none.
    triples = np.array([(0, 0, tail) for tail in range(1, 5)] + [(0, 1, 1), (2, 1, 3)], np.int32)
    np.testing.assert_allclose(tail_shares(triples, 3), [1 / 5, 1 / 2, 1 / 2])
