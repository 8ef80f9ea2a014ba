"""The jobs of a rotation: the cells of a grid of blocks, which an epoch passes over once or several times."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.partition import offsets_of
from strads.schedule.strategies.precedence import Precedence, chain, parallelism

OUTER_PASSES, MAX_INNER_PASSES = 7, 3  # over all of a grid, at least; over each half in each of these, at most


class GridJobs(NamedTuple):
    """The cells that have tasks, in each pass, in the order in which they run.

    Attributes
    ----------
    keys : (jobs,)
        Number of each pass and cell, in C order.
    tasks : (jobs,) int64
        Number of tasks of each.
    cells : (jobs, axes) int32
        The block of each axis.
    stage : (jobs,)
        Stage of each, numbered consecutively. Jobs of one stage differ in every block.
    precedence
        Which job waits for which: the jobs of a block run in order.
    """

    keys: NDArray[np.int64]
    tasks: NDArray[np.int64]
    cells: NDArray[np.int32]
    stage: NDArray[np.int64]
    precedence: Precedence

    @classmethod
    def of(cls, tasks: NDArray[np.int64], passes: int, shape: tuple[int, ...]) -> "GridJobs":
        """Order the cells of a grid of this shape, given the number of tasks of each pass and cell."""
        present = np.flatnonzero(tasks)
        pass_of, *blocks_of = np.unravel_index(present, (passes, *shape))
        cells = np.stack(blocks_of, axis=1).astype(np.int32)
        stage = stage_in_passes(pass_of, passes, cells, max(shape))
        order = np.lexsort((present, -tasks[present], stage))  # the heaviest first
        keys, cells = present[order], cells[order]
        first_block = offsets_of(shape).astype(np.int32)
        precedence = chain(cells + first_block[:-1], int(first_block[-1]))
        return cls(keys, tasks[keys], cells, np.unique(stage[order], return_inverse=True)[1], precedence)

    @property
    def parallelism(self) -> float:
        """Estimated mean number of jobs that run at the same time."""
        return parallelism(self.tasks, self.precedence)


def diagonal(cells: NDArray[np.int32], side: int) -> NDArray[np.int64]:
    """Stage of each cell: (b₁ − b₀, b₂ − b₀) modulo `side`; cells of one stage differ in every block."""
    stage = np.zeros(len(cells), np.int64)
    for axis in range(1, cells.shape[1]):
        stage = stage * side + (cells[:, axis].astype(np.int64) - cells[:, 0]) % side
    return stage


def odd(passes: int) -> int:
    """Return the largest odd number up to `passes`.

    An even number of passes would end on the half with which the next epoch begins, so three passes switch halves as
    often as four.
    """
    return passes - (passes + 1) % 2


def stage_in_passes(
    pass_of: NDArray[np.integer], passes: int, cells: NDArray[np.int32], side: int
) -> NDArray[np.int64]:
    """Stage of each cell in each of several passes over the grid: the pass, the half, and the stage in it.

    First each half of the rows of one table meets one half of those of the other, then the other half; in the next pass
    in reverse order. So on two nodes, each with a half of a table, a pass moves the other table only once. If there are
    many passes, some of them are passes over each half, in the same way.
    """
    if passes == 1:
        return diagonal(cells, side)
    half, inner = -(-side // 2), min(odd(max(passes // OUTER_PASSES, 1)), MAX_INNER_PASSES)
    outer_pass, inner_pass = np.divmod(pass_of.astype(np.int64), inner)
    stage = outer_pass * 2 + (diagonal(cells // half, 2) ^ (outer_pass & 1))
    within = stage_in_passes(inner_pass, inner, cells % half, half)
    return stage * (within.max(initial=0) + 1) + within


def bottleneck(names: list[str], shape: tuple[int, ...]) -> str:
    """Name the table that has the fewest blocks."""
    axis = int(np.argmin(shape))
    plural = "s" if shape[axis] > 1 else ""
    return f"the rows of {names[axis]} that tasks touch give only {shape[axis]} block{plural}"


def reason_of(names: list[str], shape: tuple[int, ...], passes: int, stage: NDArray[np.integer]) -> str:
    """Say how a rotation works; `stage` is that of each job."""
    rows = " and ".join(f"one row of {name}" for name in names)
    if len(set(shape)) == 1:
        cut = f"rows are cut into {shape[0]} blocks" + (" each" if len(shape) > 1 else "")
    else:
        cut = "rows are cut into " + ", ".join(f"{b} blocks of {n}" for b, n in zip(shape, names, strict=True))
    jobs = np.bincount(stage)
    stages, most = len(jobs), int(jobs.max(initial=0))
    up_to = "" if np.all(jobs == most) else "up to "
    again = f" in {passes} passes, each with some of the tasks, as rows are visited often" if passes > 1 else ""
    if passes > 1 and len(shape) == 1:
        again = ", each over one part of the loop, so that what its tasks read in turn stays in the caches"
    return f"each task touches {rows}: {cut}; {stages} stage{'s' * (stages > 1)} of {up_to}{most} jobs{again}"
