"""Dealing the rows of a rotation to other blocks, so that in time any two of them meet in one (Lerer et al. 2019).

A table from which `near` draws rows is cut several times as finely as its blocks: a block is a few of the fine ones,
chosen at random. Tasks are grouped by fine blocks once. To deal anew is to put these groups into another order, and to
order the jobs: nothing is recorded, counted or sorted by task.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.schedule.details import Deck, Details
from strads.schedule.plan import Plan
from strads.schedule.strategies.precedence import chain, parallelism

GRAIN = 64  # most fine blocks of a block: rows of one fine block always meet
DEAL_EVERY = 4  # calls
OUTER_PASSES = 4  # over all of a grid, if there are several passes
ROWS_NEAR, MIN_NEAR = 64, 8  # rows of a block, and blocks unless the table has fewer

Deal = tuple[int, ...]  # a seed and a number: what determines how the fine blocks are dealt


def deal_plan(deck: Deck, deal: Deal) -> Plan:
    """Return the plan of one deal."""
    random = generator(deal)
    members = tuple(dealt(len(cut) - 1, b, random) for b, cut in zip(deck.blocks, deck.cuts.values(), strict=True))
    coarse = np.stack([member[deck.cells[:, axis]] for axis, member in enumerate(members)], axis=1)
    passes = int(deck.pass_of.max(initial=0)) + 1
    job_key = np.ravel_multi_index((deck.pass_of, *coarse.T), (passes, *deck.blocks))
    tasks = np.bincount(job_key, deck.sizes, passes * int(np.prod(deck.blocks))).astype(np.int64)
    present = np.flatnonzero(tasks)
    sizes = tasks[present]
    pass_of, *blocks_of = np.unravel_index(present, (passes, *deck.blocks))
    cells = np.stack(blocks_of, axis=1).astype(np.int32)
    stage = stage_in_passes(pass_of, passes, cells, max(deck.blocks))
    priority = np.lexsort((present, -sizes, stage))
    rank = np.zeros(len(tasks), np.uint16)  # sorting such numbers takes linear time
    rank[present[priority]] = np.arange(len(priority))
    sequence = np.argsort(rank[job_key], kind="stable")  # of the groups
    cells, sizes = cells[priority], sizes[priority]
    first_block = np.concatenate([[0], np.cumsum(deck.blocks)]).astype(np.int32)
    precedence = chain(cells + first_block[:-1], int(first_block[-1]))
    starts = np.concatenate([[0], np.cumsum(deck.sizes)]).astype(np.int64)
    order = np.empty_like(deck.order)
    _rearrange(deck.order, starts, sequence, order)
    names = list(deck.cuts)
    stages, stage_jobs = np.unique(stage, return_counts=True)
    return Plan(
        "rotation",
        reason_of(names, deck.blocks, passes, stage_jobs),
        order,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.searchsorted(stages, stage[priority]).astype(np.int32),
        *precedence,
        parallelism=parallelism(sizes, precedence),
        details=Details(
            blocks=dict(zip(names, deck.blocks, strict=True)),
            bounds=deck.cuts,
            cells=cells,
            members=members,
            axis_of=deck.axis_of,
            deck=deck,
            bottleneck=bottleneck(names, deck.blocks),
            work=sizes,
        ),
    )


def is_dealt(plan: Plan) -> bool:
    """Whether another deal gives another plan."""
    return plan.details.is_dealt or plan.details.deck is not None


def most_blocks(rows: int) -> int:
    """Return the largest number of blocks of a table: few rows to choose from would teach little."""
    return max(MIN_NEAR, rows // ROWS_NEAR)


def generator(deal: Deal) -> np.random.Generator:
    """Return the generator of a deal."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(deal)))


def dealt(fine: int, blocks: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Return the block of each fine block: all blocks have about as many."""
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


def diagonal(cells: NDArray[np.int32], side: int) -> NDArray[np.int64]:
    """Stage of each cell: (b₁ − b₀, b₂ − b₀) modulo `side`; cells of one stage differ in every block."""
    stage = np.zeros(len(cells), np.int64)
    for axis in range(1, cells.shape[1]):
        stage = stage * side + (cells[:, axis].astype(np.int64) - cells[:, 0]) % side
    return stage


def stage_in_passes(
    pass_of: NDArray[np.integer], passes: int, cells: NDArray[np.int32], side: int
) -> NDArray[np.int64]:
    """Stage of each cell in each of several passes over the grid: the pass, the half, and the stage in it.

    First each half of the rows of one table meets one half of those of the other, then the other half; in the next pass
    in reverse order. So on two nodes, each with a half of a table, a pass moves the other table only once. If there are
    more than `OUTER_PASSES`, some of them are passes over each half, in the same way.
    """
    if passes == 1:
        return diagonal(cells, side)
    half, inner = -(-side // 2), max(passes // OUTER_PASSES, 1)
    outer_pass, inner_pass = np.divmod(pass_of.astype(np.int64), inner)
    stage = outer_pass * 2 + (diagonal(cells // half, 2) ^ (outer_pass & 1))
    within = stage_in_passes(inner_pass, inner, cells % half, half)
    return stage * (within.max(initial=0) + 1) + within


def bottleneck(names: list[str], shape: tuple[int, ...]) -> str:
    """Name the table that has the fewest blocks."""
    axis = int(np.argmin(shape))
    plural = "s" if shape[axis] > 1 else ""
    return f"the rows of {names[axis]} that tasks touch give only {shape[axis]} block{plural}"


def reason_of(names: list[str], shape: tuple[int, ...], passes: int, stage_jobs: NDArray[np.intp]) -> str:
    """Say how a rotation works."""
    rows = " and ".join(f"one row of {name}" for name in names)
    if len(set(shape)) == 1:
        cut = f"rows are cut into {shape[0]} blocks" + (" each" if len(shape) > 1 else "")
    else:
        cut = "rows are cut into " + ", ".join(f"{b} blocks of {n}" for b, n in zip(shape, names, strict=True))
    stages, most = len(stage_jobs), int(stage_jobs.max(initial=0))
    up_to = "" if np.all(stage_jobs == most) else "up to "
    again = f" in {passes} passes, each with some of the tasks, as rows are visited often" if passes > 1 else ""
    return f"each task touches {rows}: {cut}; {stages} stage{'s' * (stages > 1)} of {up_to}{most} jobs{again}"
