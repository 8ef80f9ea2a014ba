"""Details of a plan besides its jobs: their estimated work, the blocks of tables, and what it can be remade from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pools:
    """Rows to be drawn from the tables of one group.

    Attributes
    ----------
    rows
        The pools, one after the other.
    low, high : (jobs,)
        Job j draws from `rows[low[j]:high[j]]`.
    share, other
        With weights, for each entry of `rows`: a draw picks an entry of the pool uniformly, and takes it with
        probability `share`, else the one that is `other` entries from the pool's first. Empty without weights.
    dealt
        Whether pools are blocks of a `Deck`.
    weightless
        With weights, number of pools whose rows all have weight 0: of these they are drawn equally.
    """

    rows: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    share: NDArray[np.float64]
    other: NDArray[np.int64]
    dealt: bool = False
    weightless: int = 0

    def of_jobs(self, jobs: NDArray[np.int64]) -> "Pools":
        """Return the pools of the given jobs, in the given order; −1 denotes a job without tasks."""
        return replace(self, low=np.append(self.low, 0)[jobs], high=np.append(self.high, 0)[jobs])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in their order."""
        return self.rows, self.low, self.high, self.share, self.other

    @property
    def about_weights(self) -> str:
        """What `explain` says of weights."""
        if not len(self.share):
            return ""
        return " with weights" + (f" (equally where all are 0: {self.weightless:,} pools)" if self.weightless else "")

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each job's pool; shape (jobs,)."""
        return self.high - self.low


@dataclass(frozen=True)
class Deck:
    """Tasks grouped by passes and fine blocks, from which plans are dealt.

    Attributes
    ----------
    order : (tasks,)
        Tasks by group.
    sizes : (groups,)
        Tasks of each group.
    pass_of : (groups,)
        Pass over the grid in which each group runs.
    cells : (groups, k)
        Fine block of each axis of the grid.
    blocks : (k,)
        Number of blocks of each axis; not dealt if there are as many fine blocks.
    cuts
        Name of the first table of each axis → bounds of its fine blocks.
    axis_of
        Name of each table → its axis.
    """

    order: NDArray[np.integer]
    sizes: NDArray[np.int64]
    pass_of: NDArray[np.intp]
    cells: NDArray[np.int32]
    blocks: tuple[int, ...]
    cuts: dict[str, NDArray[np.int64]]
    axis_of: dict[str, int]


@dataclass(frozen=True)
class Details:
    """Further facts about a plan; empty where its strategy does not provide them.

    Attributes
    ----------
    work : (jobs,)
        The planner's estimate of the work of each job.
    gain
        Estimated speed-up of two threads over one.
    bottleneck
        What keeps jobs from running together.
    batches
        Number of random batches of the tasks.
    prefetch_distance
        Number of tasks by which rows are fetched into the cache before a task needs them; 0 if they are not.
    blocks, bounds
        Of tables, by name: the number of blocks that their rows are cut into, and the bounds of these: (blocks + 1,).
    cells : (jobs, axes)
        Block of each axis of the grid that a job of a rotation works on.
    members, axis_of
        If blocks are dealt: for each axis, the block of each fine block, and the axis of each table, by name. `bounds`
        are those of the fine blocks.
    deck
        What plans of other deals can be made from.
    is_dealt
        Whether another deal gives another plan: from `deck` or, without one, from the records.
    near
        Rows that jobs draw by `near`, by name of the table.
    notes, notes_on_near, rejected
        Lines for `explain`; the last ones by strategy.
    """

    work: NDArray[np.int64] | None = None
    gain: float | None = None
    bottleneck: str = ""
    batches: int = 1
    prefetch_distance: int = 0
    blocks: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    cells: NDArray[np.int32] | None = None
    members: tuple[NDArray[np.int32], ...] = ()
    axis_of: Mapping[str, int] = field(default_factory=dict)
    deck: Deck | None = None
    is_dealt: bool = False
    near: Mapping[str, Pools] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    notes_on_near: tuple[str, ...] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
