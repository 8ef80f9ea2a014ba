"""Training of TransE on the facts between two blocks of entities (Bordes et al. 2013; blocks: Lerer et al. 2019).

Each fact is compared with others, in which an entity of the two blocks replaces its head or its tail. With d the
distance of the fact, dᵢ those of the others and weights pᵢ that sum to 1, the loss is

    margin:    Σ pᵢ max(0, γ + d − dᵢ)                        (Bordes et al. 2013, eq. 1)
    logistic:  −log σ(γ − d) − Σ pᵢ log σ(dᵢ − γ)             (Sun et al. 2019, eq. 5)

where pᵢ ∝ exp(−α dᵢ) stresses the hardest (Sun et al. 2019, eq. 4); α = 0 weighs all alike.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from strads.models.kernels.translations import approach, descend, distance, squared_length, translate
from strads.rng.philox import below, philox4x32, random_words

MARGIN, LOGISTIC = 0, 1
_inlined = njit(nogil=True, error_model="numpy", forceinline=True)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ORDER = np.uint64(1 << 62)  # stream of the order of facts; streams of facts are their numbers
_ONE_WORD = np.uint64(1)
_NOTHING = np.float32(1e-7)  # weights below this are left out
_LEAST = np.float32(math.log(0.01))
_FAR = np.float32(1e30)  # distance of an entity that does not count
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Objective(NamedTuple):
    """What is minimized.

    Attributes
    ----------
    loss : int
        `MARGIN` or `LOGISTIC`.
    norm : int
        1 or 2: which norm distances are.
    margin : float32
        γ.
    temperature : float32
        α.
    constraint : int
        `FREE`, `SPHERE` or `BALL`: norms of entities.
    share : float32
        1 / n_components.
    """

    loss: int
    norm: int
    margin: np.float32
    temperature: np.float32
    constraint: int
    share: np.float32


@njit(nogil=True, error_model="numpy", cache=True)
def train_bucket(facts, first, second, relations, tail_shares, objective, negatives, steps, key):  # type: ignore[no-untyped-def]
    """One gradient step for each fact of a bucket, in random order.

    Parameters
    ----------
    facts : int32 array of shape (facts, 3)
        Head, relation, tail; entities are rows of `first`, and from len(first) on those of `second`.
    first, second : Rows
        Two blocks of entities; modified.
    relations : Rows
        Modified.
    tail_shares : float32 array of shape (relations,)
        How likely it is that the tail is replaced rather than the head.
    objective : Objective
    negatives : int
        Number of others, n.
    steps : tuple of two float32
        Step sizes of entities and of relations.
    key : uint64
        From `mixed_key`, of the job.

    Returns
    -------
    loss : float
        Sum of the losses, each as before its step.
    """
    width = relations.vectors.shape[1]
    n_entities = len(first.vectors) + len(second.vectors)
    goal = np.zeros(width, np.float32)
    gradient = np.zeros((1, width), np.float32)
    others = np.empty(negatives, np.int64)
    lengths = np.empty(negatives, np.float32)
    weights = np.empty(negatives, np.float32)
    order = _random_order(len(facts), key)
    total = 0.0
    for place in range(len(facts)):
        number = order[place]
        head, relation, tail = np.int64(facts[number, 0]), np.int64(facts[number, 1]), np.int64(facts[number, 2])
        from_head = _draw(key, number, n_entities, others) < tail_shares[relation]
        anchor, end = (head, tail) if from_head else (tail, head)
        direction = _ONE if from_head else -_ONE
        _goal_of(first, second, anchor, relations, relation, direction, goal)
        length = _distance(goal, first, second, end, objective.norm)
        nearest = _distances(goal, first, second, end, others, objective.norm, lengths)
        pull, loss = _slopes(objective, length, nearest, lengths, weights)
        total += loss
        if pull <= _NOTHING:
            continue
        gradient[:] = _ZERO
        _approach(goal, first, second, end, pull, length, objective, steps[0], gradient)
        for i in range(negatives):
            if weights[i] > _NOTHING:
                _approach(goal, first, second, others[i], -weights[i], lengths[i], objective, steps[0], gradient)
        square = squared_length(gradient, 0) * objective.share
        _descend(first, second, anchor, gradient, square, steps[0], objective.constraint)
        descend(relations, relation, gradient, square, direction, steps[1], 0)
    return total


@_inlined
def _random_order(count, key):  # type: ignore[no-untyped-def]
    """A random permutation of 0 … count − 1 (Fisher and Yates)."""
    order = np.arange(count)
    for last in range(count - 1, 0, -1):
        other = below(random_words(key, _ORDER, np.uint64(last))[0], last + 1)
        order[last], order[other] = order[other], order[last]
    return order


@_inlined
def _draw(key, number, n_entities, others):  # type: ignore[no-untyped-def]
    """Draw the entities that replace an end of a fact; returns a number in [0, 1) that decides which end."""
    bound = np.uint64(n_entities)
    stream = np.uint64(number)
    low, high = key & _LOW, key >> _HALF
    zero = np.uint64(0)
    for start in range(0, len(others), 4):
        words = philox4x32(np.uint64(start), zero, stream & _LOW, stream >> _HALF, low, high)
        for i in range(min(4, len(others) - start)):
            others[start + i] = np.int64((words[i] * bound) >> _HALF)
    side = philox4x32(zero, _ONE_WORD, stream & _LOW, stream >> _HALF, low, high)[0]
    return np.float32(np.int64(side >> np.uint64(8))) * np.float32(2.0**-24)


@_inlined
def _goal_of(first, second, anchor, relations, relation, direction, goal):  # type: ignore[no-untyped-def]
    split = len(first.vectors)
    if anchor < split:
        translate(first.vectors, anchor, relations.vectors, relation, direction, goal)
    else:
        translate(second.vectors, anchor - split, relations.vectors, relation, direction, goal)


@_inlined
def _distance(goal, first, second, entity, norm):  # type: ignore[no-untyped-def]
    split = len(first.vectors)
    if entity < split:
        return distance(goal, first.vectors, entity, norm)
    return distance(goal, second.vectors, entity - split, norm)


@_inlined
def _approach(goal, first, second, entity, weight, length, objective, step, gradient):  # type: ignore[no-untyped-def]
    split = len(first.vectors)
    norm, share, constraint = objective.norm, objective.share, objective.constraint
    if entity < split:
        approach(goal, first, entity, weight, length, norm, step, share, constraint, gradient)
    else:
        approach(goal, second, entity - split, weight, length, norm, step, share, constraint, gradient)


@_inlined
def _descend(first, second, entity, gradient, square, step, constraint):  # type: ignore[no-untyped-def]
    split = len(first.vectors)
    if entity < split:
        descend(first, entity, gradient, square, _ONE, step, constraint)
    else:
        descend(second, entity - split, gradient, square, _ONE, step, constraint)


@_inlined
def _distances(goal, first, second, end, others, norm, lengths):  # type: ignore[no-untyped-def]
    """Distances of the others, `_FAR` where they are the end itself; returns the smallest."""
    nearest = _FAR
    for i in range(len(others)):
        length = _FAR
        if others[i] != end:
            length = _distance(goal, first, second, others[i], norm)
        lengths[i] = length
        nearest = min(nearest, length)
    return nearest


@_inlined
def _slopes(objective, length, nearest, lengths, weights):  # type: ignore[no-untyped-def]
    """Derivatives of the loss: returns ∂/∂d and the loss; `weights` become −∂/∂dᵢ."""
    margin = objective.margin
    if objective.loss == MARGIN:
        if nearest >= margin + length:
            return _ZERO, _ZERO
        _stress(objective.temperature, nearest, lengths, weights)
        return _margin_slopes(margin + length, lengths, weights)
    _stress(objective.temperature, nearest, lengths, weights)
    return _logistic_slopes(margin, length, lengths, weights)


@_inlined
def _stress(temperature, nearest, lengths, weights):  # type: ignore[no-untyped-def]
    """pᵢ ∝ exp(−α dᵢ); those below a hundredth of the largest become 0, and cost no step."""
    total = _ZERO
    for i in range(len(lengths)):
        exponent = temperature * (nearest - lengths[i]) if lengths[i] < _FAR else -_FAR
        weights[i] = np.float32(math.exp(exponent)) if exponent > _LEAST else _ZERO
        total += weights[i]
    scale = _ONE / max(total, _NOTHING)
    for i in range(len(weights)):
        weights[i] *= scale


@_inlined
def _margin_slopes(limit, lengths, weights):  # type: ignore[no-untyped-def]
    pull, loss = _ZERO, _ZERO
    for i in range(len(lengths)):
        if lengths[i] < limit:
            pull += weights[i]
            loss += weights[i] * (limit - lengths[i])
        else:
            weights[i] = _ZERO
    return pull, loss


@_inlined
def _logistic_slopes(margin, length, lengths, weights):  # type: ignore[no-untyped-def]
    pull, loss = _sigmoid_and_softplus(length - margin)
    for i in range(len(lengths)):
        if weights[i] > _ZERO:
            push, term = _sigmoid_and_softplus(margin - lengths[i])
            loss += weights[i] * term
            weights[i] *= push
    return pull, loss


@_inlined
def _sigmoid_and_softplus(z):  # type: ignore[no-untyped-def]
    """σ(z), and its integral log(1 + exp z)."""
    small = np.float32(math.exp(-abs(z)))
    inverse = _ONE / (_ONE + small)
    return (inverse if z > _ZERO else small * inverse), max(z, _ZERO) + np.float32(math.log1p(small))
