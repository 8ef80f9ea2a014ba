"""Facts grouped by the two blocks of their entities, and the exchange of rows between two blocks."""

import numpy as np
from numba import njit

from strads.rng.philox import below, random_words


@njit(nogil=True, cache=True)
def group_facts(triples, block_of, slot_of, sizes, key, facts, offsets):  # type: ignore[no-untyped-def]
    """Group facts by the round and worker that their blocks meet in (`strads.schmp.tournament`).

    A fact within one block goes to a random round, where its block meets a random other.

    Parameters
    ----------
    triples : int32 array of shape (n, 3)
        Head, relation, tail.
    block_of, slot_of : int32 arrays of shape (entities,)
        Block of each entity, and its row there.
    sizes : int64 array of shape (blocks,)
        Rows of each block; the number of blocks is a power of two.
    key : uint64
        Of the random rounds.
    facts : int32 array of shape (n, 3)
        Set to the facts, grouped; entities are numbered as rows of the lower block, then of the other.
    offsets : int64 array of shape ((blocks − 1) · blocks / 2 + 1,), zeros
        Set to where each group begins; groups are ordered by round and worker.
    """
    workers = len(sizes) // 2
    group_of = _groups(triples, block_of, len(sizes), key)
    for group in group_of:
        offsets[group + 1] += 1
    for group in range(len(offsets) - 1):
        offsets[group + 1] += offsets[group]
    places = offsets[:-1].copy()
    for number in range(len(triples)):
        group = group_of[number]
        head, tail = triples[number, 0], triples[number, 2]
        low = _lower_block(block_of[head], group // workers + 1)
        place = places[group]
        facts[place, 0] = slot_of[head] + (0 if block_of[head] == low else sizes[low])
        facts[place, 1] = triples[number, 1]
        facts[place, 2] = slot_of[tail] + (0 if block_of[tail] == low else sizes[low])
        places[group] += 1


@njit(nogil=True, cache=True)
def _lower_block(block, difference):  # type: ignore[no-untyped-def]
    """The block without the highest bit of the difference, of a block and the one that it meets."""
    other = block ^ difference
    return min(block, other)


@njit(nogil=True, cache=True)
def _groups(triples, block_of, blocks, key):  # type: ignore[no-untyped-def]
    """Return round · workers + worker of each fact, with rounds from 0: an int64 array of shape (n,).

    `triples`, `block_of` and `key` are as in `group_facts`; `blocks` is the number of blocks.
    """
    workers = blocks // 2
    found = np.empty(len(triples), np.int64)
    for number in range(len(triples)):
        block, other = block_of[triples[number, 0]], block_of[triples[number, 2]]
        difference = np.int64(block ^ other)
        if difference == 0:
            difference = 1 + below(random_words(key, np.uint64(0), np.uint64(number))[0], blocks - 1)
        top = 0
        while difference >> (top + 1):
            top += 1
        low = np.int64(_lower_block(block, difference))
        worker = (low >> (top + 1)) << top | low & ((1 << top) - 1)
        found[number] = (difference - 1) * workers + worker
    return found


@njit(nogil=True, cache=True)
def exchange(first, second, chosen):  # type: ignore[no-untyped-def]
    """Exchange rows of two blocks, those whose `chosen` is True.

    Parameters
    ----------
    first, second : Rows
        Modified.
    chosen : bool array
        By row; may be shorter than the blocks.
    """
    width = first.vectors.shape[1]
    for row in range(len(chosen)):
        if chosen[row]:
            first.squares[row], second.squares[row] = second.squares[row], first.squares[row]
            for j in range(width):
                x = first.vectors[row, j]
                first.vectors[row, j] = second.vectors[row, j]
                second.vectors[row, j] = x
