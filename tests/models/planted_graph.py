"""A knowledge graph in which relations are translations: entities are sets, relation k adds the element k to a set."""

import numpy as np

ELEMENTS = 7


def cube(elements=ELEMENTS, seed=0):
    """Triples of ids in random order; entities have no particular numbers."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(1 << elements)
    triples = [
        (number[members], element, number[members | 1 << element])
        for element in range(elements)
        for members in range(1 << elements)
        if not members >> element & 1
    ]
    return rng.permutation(np.array(triples))


def split(triples, held_out=60):
    """Training and test triples."""
    return triples[held_out:], triples[:held_out]


def named(triples):
    """The same with labels."""
    return [(f"e{head:03}", f"r{relation}", f"e{tail:03}") for head, relation, tail in triples]
