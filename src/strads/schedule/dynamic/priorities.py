"""Draws in proportion to continually changing priorities (thesis §5.1.1, phase I), in O(log p) each."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.rng.splitmix import GAMMA, mix

_FAN = 8  # children of a node: one cache line of doubles
_SHIFT = 3  # log₂ of _FAN
LARGEST = 1e200  # largest priority, so that sums stay finite


@njit(nogil=True, cache=True)
def random_bits(state: NDArray[np.uint64]) -> np.uint64:
    """Return the next 64 random bits of the SplitMix64 generator whose state is `state[0]`."""
    state[0] += GAMMA
    return mix(state[0])


@njit(nogil=True, cache=True)
def random_share(state: NDArray[np.uint64]) -> float:
    """Return the next number of the generator, uniform in [0, 1)."""
    return np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53


@njit(nogil=True, cache=True)
def random_below(state: NDArray[np.uint64], count: int) -> Any:
    """Return the next number of the generator, uniform in 0..count - 1, for count below 2⁵³."""
    return np.int64(random_share(state) * count)


class PriorityTree(NamedTuple):
    """A tree of sums with eight children per node, stored level by level from the root's children to the leaves.

    A sum is recomputed from its children whenever one of them changes, never updated by differences. So its relative
    rounding error stays below 8 ε times the depth, after any number of changes.
    """

    sums: NDArray[np.float64]
    offsets: NDArray[np.int64]  # start of each level


def make_tree(priorities: NDArray[np.float64]) -> PriorityTree:
    """Build the tree of priorities of shape (count,), each from 0 to `LARGEST`."""
    sizes = [max(len(priorities), 1)]
    while sizes[-1] > _FAN:
        sizes.append(-(-sizes[-1] // _FAN))
    padded = [-(-size // _FAN) * _FAN for size in reversed(sizes)]
    offsets = offsets_of(padded)
    tree = PriorityTree(np.zeros(offsets[-1]), offsets[:-1])
    set_priorities(tree, np.asarray(priorities, np.float64))
    return tree


@njit(nogil=True, cache=True)
def set_priorities(tree: PriorityTree, priorities: NDArray[np.float64]) -> None:
    """Set the priorities of all leaves; O(p)."""
    last = len(tree.offsets) - 1
    tree.sums[tree.offsets[last] : tree.offsets[last] + len(priorities)] = priorities
    for level in range(last, 0, -1):
        first, above = tree.offsets[level], tree.offsets[level - 1]
        end = tree.offsets[level + 1] if level < last else len(tree.sums)
        for group in range((end - first) >> _SHIFT):
            tree.sums[above + group] = _sum_of_group(tree.sums, first + (group << _SHIFT))


@njit(nogil=True, cache=True)
def _sum_of_group(sums: NDArray[np.float64], first: int) -> float:
    total = 0.0
    for child in range(first, first + _FAN):
        total += sums[child]
    return total


@njit(nogil=True, cache=True)
def set_priority(tree: PriorityTree, leaf: int, priority: float) -> None:
    """Set the priority of a leaf, from 0 to `LARGEST`."""
    sums, offsets = tree
    level = len(offsets) - 1
    place = leaf
    sums[offsets[level] + place] = priority
    while level > 0:
        total = _sum_of_group(sums, offsets[level] + (place & ~(_FAN - 1)))
        place >>= _SHIFT
        level -= 1
        sums[offsets[level] + place] = total


@njit(nogil=True, cache=True)
def total_priority(tree: PriorityTree) -> float:
    """Return the sum of all priorities."""
    return _sum_of_group(tree.sums, 0)


@njit(nogil=True, cache=True)
def find_leaf(tree: PriorityTree, share: float) -> int:
    """Return the leaf at which the running sum of the priorities exceeds `share` of their total.

    If the share is drawn uniformly from [0, 1), a leaf is drawn with probability priority / total; one of priority 0
    is never drawn.

    Returns
    -------
    int
        −1 if all priorities are 0.
    """
    sums, offsets = tree
    rest = share * total_priority(tree)
    group = 0
    for level in range(len(offsets)):
        first = offsets[level] + (group << _SHIFT)
        chosen = -1
        for child in range(_FAN):
            weight = sums[first + child]
            if weight > 0.0:
                chosen = child  # rounding may lead past the last one: then take the last
                if rest < weight:
                    break
                rest -= weight
        if chosen < 0:
            return -1
        group = (group << _SHIFT) + chosen
    return group
