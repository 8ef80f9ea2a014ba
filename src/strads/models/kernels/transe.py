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
from numpy.typing import NDArray

from strads.models.kernels import simd
from strads.models.kernels.translations import (
    FREE,
    approach,
    descend,
    distance,
    inlined,
    row_of,
    row_of_blocks,
    squared_length,
    translate,
)
from strads.rng.philox import random_half_words

MARGIN, LOGISTIC = 0, 1
_HALF = np.uint64(32)
_ORDER = np.uint64(1 << 62)  # stream of the order of facts; streams of facts are their numbers
_NOTHING = np.float32(1e-7)  # weights below this are left out
_LEAST = np.float32(math.log(0.01))  # exponents below it give a weight of 0
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


class _Scratch(NamedTuple):
    """Working memory for one fact.

    It holds its goal and the gradient there, and the numbers, distances and weights of the others.

    Attributes
    ----------
    goal, gradient : float32 arrays of shape (width,)
    others : int64 array of shape (negatives,)
    lengths, weights : float32 arrays of shape (negatives,)
    """

    goal: NDArray[np.float32]
    gradient: NDArray[np.float32]
    others: NDArray[np.int64]
    lengths: NDArray[np.float32]
    weights: NDArray[np.float32]


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
    scratch = _Scratch(
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        np.empty(negatives, np.int64),
        np.empty(negatives, np.float32),
        np.empty(negatives, np.float32),
    )
    order = np.arange(len(facts))
    _shuffle(order, key)
    total = 0.0
    for place in range(len(facts)):
        number = order[place]
        relation = np.int64(facts[number, 1])
        from_head = _draw(key, number, len(first.vectors) + len(second.vectors), scratch.others) < tail_shares[relation]
        ends = np.int64(facts[number, 0]), np.int64(facts[number, 2])
        total += _train(first, second, row_of(relations, relation), ends, from_head, objective, steps, scratch)
    return total


@inlined
def _train(first, second, relation, ends, from_head, objective, steps, scratch):  # type: ignore[no-untyped-def]
    """Take one step for a fact between the blocks `first` and `second`; returns its loss.

    `relation` is a `Row`, and `ends` are the numbers of head and tail. If `from_head`, the head is the anchor, and the
    tail is compared with the others in `scratch`, a `_Scratch`; otherwise the other way round. `objective` and `steps`
    are as in `train_bucket`.
    """
    goal, gradient, others, lengths, weights = scratch
    far = np.int64(from_head)
    anchor, end = row_of_blocks(first, second, ends[1 - far]), row_of_blocks(first, second, ends[far])
    direction = np.float32(2 * far - 1)
    translate(anchor.vector, relation.vector, direction, goal)
    length = distance(goal, end.vector, objective.norm)
    nearest = _distances(goal, first, second, ends[far], others, objective.norm, lengths)
    pull, loss = _slopes(objective, length, nearest, lengths, weights)
    if pull <= _NOTHING:
        return loss
    gradient[:] = _ZERO
    approach(goal, end, pull, length, objective, steps[0], gradient)
    for i in range(len(others)):
        if weights[i] > _NOTHING:
            other = row_of_blocks(first, second, others[i])
            approach(goal, other, -weights[i], lengths[i], objective, steps[0], gradient)
    square = squared_length(simd.address(gradient, 0), len(gradient)) * objective.share
    descend(anchor, gradient, square, steps[0], objective.constraint)
    descend(relation, gradient, square, direction * steps[1], FREE)
    return loss


@inlined
def _shuffle(order, key):  # type: ignore[no-untyped-def]
    """Shuffle up to 2³² numbers (Fisher and Yates), four exchanges a block of random words."""
    last = len(order) - 1
    while last > 0:
        words = random_half_words(key, _ORDER, np.uint64(last))
        for word in words:
            if last > 0:
                other = np.int64((word * np.uint64(last + 1)) >> _HALF)
                order[last], order[other] = order[other], order[last]
            last -= 1


@inlined
def _draw(key, number, n_entities, others):  # type: ignore[no-untyped-def]
    """Draw the entities that replace an end of a fact; returns a number in [0, 1) that decides which end.

    `number`, that of the fact, is its random stream under `key`. `others` (int64) receives numbers below `n_entities`,
    the size of both blocks together.
    """
    bound = np.uint64(n_entities)
    words = random_half_words(key, np.uint64(number), np.uint64(0))
    side = words[3]  # the first block gives the side and three entities, later ones four
    for i in range(min(3, len(others))):
        others[i] = np.int64((words[i] * bound) >> _HALF)
    for start in range(3, len(others), 4):
        words = random_half_words(key, np.uint64(number), np.uint64(start))
        for i in range(min(4, len(others) - start)):
            others[start + i] = np.int64((words[i] * bound) >> _HALF)
    return np.float32(np.int64(side >> np.uint64(8))) * np.float32(2.0**-24)


@inlined
def _distances(goal, first, second, end, others, norm, lengths):  # type: ignore[no-untyped-def]
    """Write the distances of `others` from `goal` to `lengths`, `_FAR` where they are the `end` itself.

    Entities are numbered over the blocks `first` and `second`; `norm` is 1 or 2. Returns the smallest distance.
    """
    nearest = _FAR
    for i in range(len(others)):
        length = _FAR
        if others[i] != end:
            length = distance(goal, row_of_blocks(first, second, others[i]).vector, norm)
        lengths[i] = length
        nearest = min(nearest, length)
    return nearest


@inlined
def _slopes(objective, length, nearest, lengths, weights):  # type: ignore[no-untyped-def]
    """Derivatives of the loss of `objective`: returns ∂/∂d and the loss; `weights` become −∂/∂dᵢ.

    `length` is d, `lengths` are dᵢ, and `nearest` is the smallest of them.
    """
    margin = objective.margin
    if objective.loss == MARGIN:
        if nearest >= margin + length:
            return _ZERO, _ZERO
        _stress(objective.temperature, nearest, lengths, weights)
        return _margin_slopes(margin + length, lengths, weights)
    _stress(objective.temperature, nearest, lengths, weights)
    return _logistic_slopes(margin, length, lengths, weights)


@inlined
def _stress(temperature, nearest, lengths, weights):  # type: ignore[no-untyped-def]
    """Set `weights` to pᵢ ∝ exp(−α dᵢ); those below a hundredth of the largest become 0, and cost no step.

    `temperature` is α, `lengths` are dᵢ, and `nearest` is the smallest of them.
    """
    total = _ZERO
    for i in range(len(lengths)):
        exponent = temperature * (nearest - lengths[i]) if lengths[i] < _FAR else -_FAR
        weights[i] = np.float32(math.exp(exponent)) if exponent > _LEAST else _ZERO
        total += weights[i]
    scale = _ONE / max(total, _NOTHING)
    for i in range(len(weights)):
        weights[i] *= scale


@inlined
def _margin_slopes(limit, lengths, weights):  # type: ignore[no-untyped-def]
    """As `_slopes`, for a margin loss with the `weights` pᵢ; `limit` is γ + d."""
    pull, loss = _ZERO, _ZERO
    for i in range(len(lengths)):
        if lengths[i] < limit:
            pull += weights[i]
            loss += weights[i] * (limit - lengths[i])
        else:
            weights[i] = _ZERO
    return pull, loss


@inlined
def _logistic_slopes(margin, length, lengths, weights):  # type: ignore[no-untyped-def]
    """As `_slopes`, for the logistic loss with the `weights` pᵢ: `margin` is γ, `length` d, and `lengths` are dᵢ."""
    pull, loss = _sigmoid_and_softplus(length - margin)
    for i in range(len(lengths)):
        if weights[i] > _ZERO:
            push, term = _sigmoid_and_softplus(margin - lengths[i])
            loss += weights[i] * term
            weights[i] *= push
    return pull, loss


@inlined
def _sigmoid_and_softplus(z):  # type: ignore[no-untyped-def]
    """σ(z), and its integral log(1 + exp z)."""
    small = np.float32(math.exp(-abs(z)))
    inverse = _ONE / (_ONE + small)
    return (inverse if z > _ZERO else small * inverse), max(z, _ZERO) + np.float32(math.log1p(small))
