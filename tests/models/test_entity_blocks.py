"""Entities in blocks: balanced, dealt anew without a loss, and facts where their blocks meet."""

import numpy as np
import pytest

from strads.models.kernels.entity_blocks import exchange, group_facts
from strads.models.kernels.translations import Rows
from strads.models.knowledge_graphs.blocks import EntityBlocks
from strads.schmp import tournament


@pytest.mark.parametrize(("entities", "blocks"), [(2, 2), (100, 8), (64, 8), (65, 16), (1000, 16)])
def test_blocks_have_equal_sizes_and_shares_of_the_frequent(entities, blocks):
    frequencies = np.random.default_rng(0).zipf(1.5, entities)
    found = EntityBlocks.deal(frequencies, blocks, seed=1)
    assert found.sizes.sum() == entities
    assert found.sizes.max() - found.sizes.min() <= 1
    everyone = np.concatenate([found.members(block) for block in range(blocks)])
    assert sorted(everyone) == list(range(entities))
    for block in range(blocks):
        members = found.members(block)
        assert len(members) == found.sizes[block]
        assert (np.diff(frequencies[members]) <= 0).all()  # frequent entities first


@pytest.mark.parametrize(("entities", "blocks"), [(100, 8), (65, 16)])
def test_rows_move_as_the_blocks_say(entities, blocks):
    found = EntityBlocks.deal(np.zeros(entities, int), blocks, seed=0)
    shards = [
        Rows(found.members(block)[:, None].repeat(16, 1).astype(np.float32), found.members(block).astype(np.float32))
        for block in range(blocks)
    ]
    moves = found.moves(0, 5)
    bit = blocks // 2
    while bit:
        for block in range(blocks):
            if not block & bit:
                exchange(shards[block], shards[block ^ bit], (moves & bit) != 0)
        bit //= 2
    before = found.block_of.copy()
    found.deal_anew(moves)
    assert (found.block_of != before).any()
    for block in range(blocks):
        assert (shards[block].squares == found.members(block)).all()
        assert (shards[block].vectors == found.members(block)[:, None]).all()


def test_over_time_entities_are_in_all_blocks():
    found = EntityBlocks.deal(np.zeros(160, int), 16, seed=0)
    seen = []
    for moment in range(200):
        found.deal_anew(found.moves(0, moment))
        seen.append(found.block_of.copy())
    assert all(len(set(of_entity)) == 16 for of_entity in np.array(seen).T[:144])


@pytest.mark.parametrize("blocks", [2, 4, 16])
def test_facts_are_where_their_blocks_meet(blocks):
    rng = np.random.default_rng(0)
    triples = rng.integers(0, 100, (500, 3)).astype(np.int32)
    found = EntityBlocks.deal(np.bincount(triples[:, 0], minlength=100), blocks, seed=0)
    facts, offsets = np.empty_like(triples), np.zeros((blocks - 1) * blocks // 2 + 1, np.int64)
    group_facts(triples, found.block_of, found.slot_of, found.sizes, np.uint64(3), facts, offsets)
    back = []
    jobs = [job for each in tournament(blocks) for job in sorted(each.jobs, key=lambda job: job.worker)]
    for group, job in enumerate(jobs):
        members = np.concatenate([found.members(block) for block in job.shards])
        for head, relation, tail in facts[offsets[group] : offsets[group + 1]]:
            back.append((members[head], relation, members[tail]))
    assert offsets[-1] == len(triples)
    assert sorted(back) == sorted(map(tuple, triples))
