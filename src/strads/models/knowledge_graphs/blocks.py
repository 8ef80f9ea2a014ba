"""Entities dealt to blocks, and dealt anew from time to time."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

_MAX_BLOCKS = 64
_FACTS_A_MEETING = 1000  # of two blocks; fewer do not pay for the start of a job
_ROWS_A_BLOCK = 8  # fewer leave too little choice of entities that replace others


def count_blocks(facts: int, entities: int) -> int:
    """Return a number of blocks, a power of two, for that many facts and entities: the same on any machine."""
    blocks = 2
    while (
        blocks < _MAX_BLOCKS
        and facts >= _FACTS_A_MEETING * (2 * blocks) * (2 * blocks - 1) // 2
        and entities >= _ROWS_A_BLOCK * 2 * blocks
    ):
        blocks *= 2
    return blocks


@dataclass(eq=False)
class EntityBlocks:
    """The block of each entity and its row there.

    Entities in order of their frequency form strata of as many as there are blocks; each block has one of each stratum.
    So blocks differ little in work, and each is a sample of all entities, from the frequent to the rare. Dealing anew
    moves an entity to another block, but not to another row.

    Attributes
    ----------
    block_of, slot_of : int32 ndarrays of shape (entities,)
        Block, and row in the block.
    sizes : int64 ndarray of shape (blocks,)
        Rows of each block: the first blocks may have one more than the last.
    """

    block_of: NDArray[np.int32]
    slot_of: NDArray[np.int32]
    sizes: NDArray[np.int64]

    @classmethod
    def deal(cls, frequencies: NDArray[np.int64], blocks: int, seed: int) -> Self:
        """Deal entities, given how often each occurs, to a power of two of blocks."""
        rng = np.random.default_rng((seed, 0))
        entities = len(frequencies)
        strata = -(-entities // blocks)
        cards = rng.permuted(np.tile(np.arange(blocks, dtype=np.int32), (strata, 1)), axis=1).ravel()
        rest = entities - (strata - 1) * blocks
        cards[(strata - 1) * blocks :] = np.arange(blocks)  # the last, incomplete stratum
        by_frequency = np.argsort(-frequencies, kind="stable")
        block_of, slot_of = np.empty(entities, np.int32), np.empty(entities, np.int32)
        block_of[by_frequency] = cards[:entities]
        slot_of[by_frequency] = np.arange(entities) // blocks
        sizes = np.full(blocks, strata - 1, np.int64)
        sizes[:rest] += 1
        return cls(block_of, slot_of, sizes)

    def moves(self, seed: int, moment: int) -> NDArray[np.int32]:
        """Return which bits of the block's number change in each row: random, the same in all blocks.

        Rows that not all blocks have stay where they are.
        """
        rng = np.random.default_rng((seed, moment))
        return rng.integers(len(self.sizes), size=int(self.sizes.min()), dtype=np.int32)

    def deal_anew(self, moves: NDArray[np.int32]) -> None:
        """Move all entities: those in row s of block b to block b XOR `moves[s]`."""
        everywhere = self.slot_of < len(moves)
        self.block_of[everywhere] ^= moves[self.slot_of[everywhere]]

    def members(self, block: int) -> NDArray[np.int64]:
        """Return the entities of a block by row."""
        found = np.flatnonzero(self.block_of == block)
        members: NDArray[np.int64] = np.empty(len(found), np.int64)
        members[self.slot_of[found]] = found
        return members
