"""Dealing the rows of a rotation to other blocks, so that in time any two of them meet in one (Lerer et al. 2019).

A table from which `near` draws rows is cut several times as finely as its blocks: a block is a few of the fine ones,
chosen at random. Tasks are grouped by fine blocks once. To deal anew is to put these groups into another order, and to
order the jobs: nothing is recorded, counted or sorted by task.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.details import Deck, Details
from strads.schedule.plan import Plan
from strads.schedule.strategies.grid import GridJobs, bottleneck, reason_of

GRAIN = 64  # maximum number of fine blocks per block: rows of one fine block always meet
DEAL_EVERY = 4  # calls

Deal = tuple[int, ...]  # a seed and a number: what determines how the fine blocks are dealt


def deal_plan(deck: Deck, deal: Deal) -> Plan:
    """Return the plan of one deal."""
    random = generator(deal)
    members = tuple(dealt(len(cut) - 1, b, random) for b, cut in zip(deck.blocks, deck.cuts.values(), strict=True))
    coarse = np.stack([member[deck.cells[:, axis]] for axis, member in enumerate(members)], axis=1)
    passes = int(deck.pass_of.max(initial=0)) + 1
    job_key = np.ravel_multi_index((deck.pass_of, *coarse.T), (passes, *deck.blocks))
    tasks = np.bincount(job_key, deck.sizes, passes * int(np.prod(deck.blocks))).astype(np.int64)
    jobs = GridJobs.of(tasks, passes, deck.blocks)
    rank = np.zeros(len(tasks), np.uint16)  # sorting such numbers takes linear time
    rank[jobs.keys] = np.arange(len(jobs.keys))
    sequence = np.argsort(rank[job_key], kind="stable")  # of the groups
    starts = offsets_of(deck.sizes)
    order = np.empty_like(deck.order)
    _rearrange(deck.order, starts, sequence, order)
    names = list(deck.cuts)
    return Plan(
        "rotation",
        reason_of(names, deck.blocks, passes, jobs.stage),
        order,
        offsets_of(jobs.tasks),
        jobs.stage.astype(np.int32),
        *jobs.precedence,
        parallelism=jobs.parallelism,
        details=Details(
            blocks=dict(zip(names, deck.blocks, strict=True)),
            bounds=deck.cuts,
            cells=jobs.cells,
            members=members,
            axis_of=deck.axis_of,
            deck=deck,
            is_dealt=True,
            bottleneck=bottleneck(names, deck.blocks),
            work=jobs.tasks,
        ),
    )


def generator(deal: Deal) -> np.random.Generator:
    """Return the generator of a deal."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(deal)))


def dealt(fine: int, blocks: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Return the block of each fine block: about equally many per block."""
    if fine == blocks:
        return np.arange(fine, dtype=np.int32)
    return random.permutation(np.arange(fine, dtype=np.int32) % blocks)


@njit(nogil=True, cache=True)
def _rearrange(
    order: NDArray[np.integer], starts: NDArray[np.int64], sequence: NDArray[np.int64], target: NDArray[np.integer]
) -> None:
    """Write the groups `order[starts[g]:starts[g + 1]]` to `target`, in the order in which `sequence` lists them."""
    end = 0
    for group in sequence:
        size = starts[group + 1] - starts[group]
        target[end : end + size] = order[starts[group] : starts[group + 1]]
        end += size
