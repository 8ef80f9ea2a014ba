"""A step of TransE against the gradient as the papers write it."""

import numpy as np
import pytest

from strads.models.kernels.aligned import padded
from strads.models.kernels.transe import LOGISTIC, MARGIN, Objective, _draw, train_bucket
from strads.models.kernels.translations import BALL, FREE, SPHERE, Rows, constrain_all
from strads.rng.philox import mixed_key

DIMENSIONS, NEGATIVES = 20, 5
HUGE = np.float32(1e8)  # summed squares so large that a step is the gradient times rate / 1e4
RATE = np.float32(10.0)


def rows(count, seed, scale=1.0):
    vectors = np.zeros((count, padded(DIMENSIONS)), np.float32)
    vectors[:, :DIMENSIONS] = np.random.default_rng(seed).normal(0, scale, (count, DIMENSIONS))
    return Rows(vectors, np.full(count, HUGE))


def distance_and_unit(goal, x, norm):
    difference = goal - x
    if norm == 1:
        return np.abs(difference).sum(), np.sign(difference)
    length = np.linalg.norm(difference)
    return length, difference / length


def gradient(entities, relations, fact, others, from_head, loss, norm, margin, temperature):
    """Loss and derivatives for one fact, with the weights held fixed."""
    head, relation, tail = fact
    anchor, end, direction = (head, tail, 1) if from_head else (tail, head, -1)
    goal = entities[anchor] + direction * relations[relation]
    d, unit = distance_and_unit(goal, entities[end], norm)
    found = [distance_and_unit(goal, entities[other], norm) for other in others]
    lengths = np.array([np.inf if other == end else length for other, (length, _) in zip(others, found, strict=True)])
    weights = np.exp(temperature * (lengths.min() - lengths))
    weights[weights < 0.01] = 0
    weights /= weights.sum()
    if loss == MARGIN:
        active = weights * (margin + d > lengths)
        value, pull, push = (active * (margin + d - np.minimum(lengths, 1e9))).sum(), active.sum(), active
    else:
        push = weights / (1 + np.exp(lengths - margin))
        pull = 1 / (1 + np.exp(margin - d))
        finite = np.minimum(lengths, 1e9)
        value = np.log1p(np.exp(d - margin)) + (weights * np.log1p(np.exp(margin - finite))).sum()
    of_entities, of_relations = np.zeros_like(entities), np.zeros_like(relations)
    of_goal = pull * unit
    of_entities[end] -= pull * unit
    for other, weight, (_, away) in zip(others, push, found, strict=True):
        if weight:
            of_goal = of_goal - weight * away
            of_entities[other] += weight * away
    of_entities[anchor] += of_goal
    of_relations[relation] += direction * of_goal
    return value, of_entities, of_relations


@pytest.mark.parametrize("from_head", [True, False])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("loss", "margin"), [(MARGIN, 8.0), (LOGISTIC, 6.0)])
def test_a_step_follows_the_gradient(from_head, norm, loss, margin):
    first, second, relations = rows(4, 0), rows(5, 1), rows(2, 2)
    fact, key = (6, 1, 2), np.uint64(mixed_key(np.uint64(0), np.uint64(0), np.uint64(norm)))
    others = np.empty(NEGATIVES, np.int64)
    _draw(key, 0, 9, others)
    before = np.concatenate([first.vectors, second.vectors]).astype(float), relations.vectors.astype(float)
    expected = gradient(*before, fact, others, from_head, loss, norm, margin, 0.5)
    objective = Objective(loss, norm, np.float32(margin), np.float32(0.5), FREE, np.float32(1 / DIMENSIONS))
    shares = np.full(2, 1.0 if from_head else 0.0, np.float32)
    facts = np.array([fact], np.int32)
    found = train_bucket(facts, first, second, relations, shares, objective, NEGATIVES, (RATE, RATE), key)
    assert found == pytest.approx(expected[0], rel=1e-4)
    moved = np.concatenate([first.vectors, second.vectors]) - before[0], relations.vectors - before[1]
    for change, slope in zip(moved, expected[1:], strict=True):
        np.testing.assert_allclose(change * 1e4 / RATE, -slope, atol=2e-3)
    assert (first.vectors[:, DIMENSIONS:] == 0).all()


def test_steps_shrink_by_row_as_those_of_adagrad():
    first, second, relations = rows(4, 0), rows(5, 1), rows(2, 2)
    first.squares[:], second.squares[:], relations.squares[:] = 1e-6, 1e-6, 1e-6
    objective = Objective(MARGIN, 2, np.float32(8.0), np.float32(1.0), FREE, np.float32(1 / DIMENSIONS))
    facts = np.array([(6, 1, 2)] * 50, np.int32)
    shares = np.full(2, 0.5, np.float32)
    steps = np.float32(0.1), np.float32(0.1)
    before = relations.vectors.copy()
    train_bucket(facts, first, second, relations, shares, objective, NEGATIVES, steps, np.uint64(1))
    assert relations.squares[0] == np.float32(1e-6)
    assert relations.squares[1] > 0.1
    assert (relations.vectors[0] == before[0]).all()
    assert 0.01 < np.abs(relations.vectors[1] - before[1]).max() < 1.5


def test_more_steps_make_the_loss_small():
    first, second, relations = rows(4, 0, 0.1), rows(5, 1, 0.1), rows(2, 2, 0.1)
    for each in (first, second, relations):
        each.squares[:] = 1e-6
    objective = Objective(MARGIN, 2, np.float32(1.0), np.float32(1.0), FREE, np.float32(1 / DIMENSIONS))
    facts = np.array([(0, 0, 5), (1, 0, 6), (2, 1, 7), (8, 1, 3)], np.int32)
    shares = np.full(2, 0.5, np.float32)
    steps = np.float32(0.1), np.float32(0.1)
    losses = [
        train_bucket(facts, first, second, relations, shares, objective, NEGATIVES, steps, np.uint64(epoch))
        for epoch in range(60)
    ]
    assert np.mean(losses[:3]) > 1
    assert np.mean(losses[-10:]) < 0.05


@pytest.mark.parametrize("constraint", [SPHERE, BALL])
def test_norms_are_kept(constraint):
    first, second, relations = rows(4, 0), rows(5, 1, 0.01), rows(2, 2)
    for each in (first, second):
        constrain_all(each.vectors, constraint)
        each.squares[:] = 1e-6
    facts = np.array([(6, 1, 2), (0, 0, 7)] * 20, np.int32)
    objective = Objective(MARGIN, 2, np.float32(2.0), np.float32(1.0), constraint, np.float32(1 / DIMENSIONS))
    steps = np.float32(0.1), np.float32(0.1)
    train_bucket(facts, first, second, relations, np.full(2, 0.5, np.float32), objective, 3, steps, np.uint64(1))
    norms = np.linalg.norm(np.concatenate([first.vectors, second.vectors]), axis=1)
    if constraint == SPHERE:
        np.testing.assert_allclose(norms, 1, rtol=1e-5)
    else:
        assert (norms < 1 + 1e-5).all()
        assert norms.min() < 0.9
