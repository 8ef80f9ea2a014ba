"""Consistency models: how stale a worker's reads may be, and when servers push updates (thesis §2.1; ESSP).

A worker's clock starts at 0 and advances by 1 with `clock()`. An update made at clock c carries that clock. A row has
*age* a when it holds all updates of all workers made before clock a; it may hold some later ones. The *table's clock*
is that of the slowest worker.

A model is a small set of rules: derive from `Consistency` to try another one.
"""

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from strads.errors import ArgumentError


class Push(Enum):
    """When a server pushes rows to the clients that have read them before."""

    NEVER = "never"
    CLOCK = "clock"  # changed rows, when the table's clock advances
    UPDATE = "update"  # changed rows, as soon as the receiver has applied the previous push


class Consistency(ABC):
    """Rules of a consistency model.

    Attributes
    ----------
    push
        When servers push rows.
    pushes_between
        With `Push.CLOCK`: n additional pushes between two advances of the table's clock. One follows each 1/(n + 1)
        of the updates that the workers send in a clock, so their number does not depend on that of the workers.
    in_order
        Whether servers hold an update back until the table's clock has passed it, and apply those of one clock in
        the order of workers. If `required` is also the reader's clock, reads depend on nothing but the program: they
        are bitwise identical on every backend.
    """

    push: Push = Push.NEVER
    pushes_between: int = 0
    in_order: bool = False

    @abstractmethod
    def required(self, clock: int) -> int:
        """Return the age that rows must have for a read at a clock; workers wait while the slowest one is behind it."""

    def bound(self, clock: int) -> float:
        """Return the upper bound, in any entry, on the sum of all updates that not every worker can see.

        A finite bound needs `Push.UPDATE`: receivers acknowledge what they are sent.
        """
        return math.inf


class BSP(Consistency):
    """Bulk synchronous parallel (thesis §2.1.1): at clock c a worker sees all updates made before c, and no others."""

    in_order = True

    def required(self, clock: int) -> int:
        """Return the reader's clock."""
        return clock

    def __repr__(self) -> str:
        return "BSP()"


class Hybrid(BSP):
    """Hogwild! within a node, BSP between nodes (thesis §7.1.3).

    In `sync_for` all threads of a node work on one replica without locks, and nodes synchronize after each round of
    minibatches, one per thread. For a table of a parameter server it is BSP.
    """

    def __repr__(self) -> str:
        return "Hybrid()"


@dataclass(frozen=True)
class SSP(Consistency):
    """Stale synchronous parallel (Ho et al. 2013; ESSP, "SSP Condition").

    At clock c a worker sees all updates made up to clock c − staleness − 1. It keeps using its cached rows while they
    are fresh enough and requests new ones only when they are not.

    Parameters
    ----------
    staleness
        By how many clocks a worker may be ahead of the slowest.
    """

    staleness: int

    def __post_init__(self) -> None:
        whole = isinstance(self.staleness, numbers.Integral) and not isinstance(self.staleness, bool)
        if not whole or self.staleness < 0:
            raise ArgumentError(f"staleness={self.staleness!r}: give the number of clocks, 0 or more")

    def required(self, clock: int) -> int:
        """Return the reader's clock less the staleness."""
        return clock - self.staleness


@dataclass(frozen=True)
class ESSP(SSP):
    """Eager SSP (ESSP, "ESSPTable"): the guarantee of SSP; servers push rows to their readers.

    They do so when the table's clock advances, as in the paper, and three times in between: otherwise a worker ahead of
    the slowest would not see updates that others sent long ago. If the network is the bottleneck, derive a class with
    `pushes_between = 0`.

    Parameters
    ----------
    staleness
        By how many clocks a worker may be ahead of the slowest.
    """

    push = Push.CLOCK
    pushes_between = 3


class ASP(Consistency):
    """Asynchronous parallel (thesis §2.1.2): no worker waits for another, and the staleness of reads is unbounded."""

    push = Push.UPDATE

    def required(self, clock: int) -> int:
        """Return 0: rows of any age are acceptable."""
        return 0

    def __repr__(self) -> str:
        return "ASP()"


@dataclass(frozen=True)
class VAP(ASP):
    """Value-bounded asynchronous parallel (ESSP, "VAP condition").

    Updates are in transit until all workers can see them. Their sum stays below vₜ = v0 / (t + 1)^decay in every
    entry, where t is the clock of the slowest worker: each of P workers may have vₜ / P of its own in transit, where
    t is its own clock, and waits before sending more.

    Parameters
    ----------
    v0
        The bound at clock 0.
    decay
        How fast the bound shrinks.
    """

    v0: float
    decay: float = 0.5

    def __post_init__(self) -> None:
        for name, value in (("v0", self.v0), ("decay", self.decay)):
            if not isinstance(value, numbers.Real):
                raise ArgumentError(f"{name}={value!r}: give a number")
        if not 0 < self.v0 < math.inf:
            raise ArgumentError(f"v0={self.v0!r}: give the bound of updates in transit, more than 0")
        if not 0 <= self.decay < math.inf:
            raise ArgumentError(f"decay={self.decay!r}: give 0 (a constant bound) or more")

    def bound(self, clock: int) -> float:
        """Return v0 / (clock + 1)^decay."""
        return self.v0 / (clock + 1) ** self.decay
