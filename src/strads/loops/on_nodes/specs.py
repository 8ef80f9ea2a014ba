"""A loop as the driver describes it to the nodes, and their replies."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.bodies.analysis.values import Given
from strads.cluster import ThreadTeam
from strads.engine.plans.executor import ExecutablePlan
from strads.engine.plans.transfers import TransferBuffer
from strads.engine.statistics import NodeStatistics
from strads.engine.views.roles import Checking
from strads.errors import StradsError
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.sequential_reasons import SequentialReason
from strads.loops.program import Variant
from strads.schedule.nodes.placement import NodePlan
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.pools import Pools
from strads.schedule.strategies.dealing import Deal


@dataclass(frozen=True)
class TableRef:
    """An argument that is a table on the nodes, by its name in their stores; for a map, also that of its index."""

    name: str
    relaxed: bool = False  # whether it was passed as `strads.relaxed(v)`
    readonly: bool = False  # whether it was passed as `strads.readonly(v)`
    index: str | None = None


@dataclass(frozen=True)
class SumRef:
    """An argument that is an accumulator."""

    start: float | int  # 0 or 0.0, depending on whether it sums integers or floats


@dataclass(frozen=True)
class LoopOptions:
    """Options of `async_for` that affect the preparation.

    `threads` and `team` are set if the driver's process is the only node; otherwise nodes have their own threads. Two
    options exist only for comparisons: `micro_sync` makes all nodes wait at a barrier after each stage of a plan
    (thesis §4.2), and `job_order` determines which ready job a thread takes, see `make_job_pool`.
    """

    strategy: str = "auto"  # "auto", or a strategy of `async_for`
    seed: int = 0  # of strategies that sample the order of tasks
    fastmath: bool = True  # whether sums may be reordered
    order: str = "any"  # "any" serial order, or "sequential": that of the indices
    interpreted: bool = False  # whether the interpreter runs it, as with mode="python"
    micro_sync: bool = False
    job_order: str = "heaviest"
    threads: int | None = None
    team: ThreadTeam | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LoopSpec:
    """A loop, apart from the values that change from call to call."""

    name: str  # key in the nodes' stores
    body: Any  # the user's function
    indices: LoopIndices  # of all tasks
    options: LoopOptions  # of the call
    overlaps: tuple[tuple[int, int], ...]  # arguments that share memory
    contents: dict[int, Hashable]  # content keys of the tables among the arguments at preparation
    alone: SequentialReason | None = None  # why it has to run in order as one job, if it has to
    in_order_of_sums: bool = False  # whether sums that choose rows keep their order
    leaves_rows: bool = False  # whether tasks touch rows that cannot be recorded for them: `alone` says why
    is_first: bool = False  # whether no loop with the same key is known, in programs where earlier calls count
    samples_rows: bool = False  # whether to sample the tasks' rows before and after this run: do they stay the same?
    changes: bool = False  # whether the data that determine its rows have changed since the last call
    changed: frozenset[int] = frozenset()  # arguments whose contents have, if the tables are the same
    again: str = ""  # why a loop that an earlier call has prepared cannot be used; empty if there is none
    deal: Deal = ()  # how rows are dealt to blocks for `near`
    template: "LoopFacts | None" = None  # those of a loop that this one may be prepared like
    counters: frozenset[int] = frozenset()  # tables that threads only add integers to, each in a copy of its own


@dataclass(frozen=True)
class ReusablePreparation:
    """How one job runs a loop in its order, checking every access, whatever the indices, tables and arrays."""

    types: Hashable  # of the arguments: what its code is compiled for
    copied: float  # bytes of the written tables, which such a run copies, for each task of the loop
    variant: Variant | None  # see `NodeLoop`
    tables_of_moves: dict[int, int]  # see `NodeLoop`


@dataclass(frozen=True)
class LoopFacts:
    """What the driver needs to know about a prepared loop; positions are those of the arguments.

    Attributes
    ----------
    plan
        The plan.
    bounds
        Required layout of some tables on the nodes when the loop runs.
    placed
        Layout of the others when the loop was planned.
    written, aligned
        Tables that the loop writes; that it reads in plan order.
    deciding, deciding_columns, written_columns
        Arguments that determine its rows; written tables with columns that do so and that it does not write; tables of
        which it writes only some columns → these.
    is_volatile, guards_roundings
        Whether values that the loop changes select rows, or sums whose order a run may change.
    takes_any_contents
        Whether nothing was recorded, and the plan is as good for other contents of the arguments.
    reusable
        How loops with other indices, tables and arrays can be prepared like this one; None if they cannot.
    samples_rows_next
        Whether the next call is to sample the tasks' rows before and after its run.
    planning_is_deferred
        Whether this call runs in sequence only for now: planning would take longer, or whether rows stay the same is
        still being found out. The next call prepares the loop again.
    stays_in_sequence
        Whether one job runs the loop whatever the number of threads: then it does so when its rows change.
    serves_one_call
        Whether one job runs the loop as a plan would serve one call only.
    has_hot_row_besides_counters
        On several nodes: whether most tasks touch one and the same row of a table that is not a counter.
    compile_seconds, reconnaissance_seconds, planning_seconds
        Times of the three phases.
    """

    plan: Plan
    bounds: dict[int, NDArray[np.int64]]
    placed: dict[int, NDArray[np.int64]]
    written: frozenset[int]
    aligned: frozenset[int]
    deciding: frozenset[int]
    deciding_columns: frozenset[int]
    written_columns: Mapping[int, frozenset[str | int]]
    is_volatile: bool
    guards_roundings: bool
    takes_any_contents: bool
    reusable: ReusablePreparation | None
    samples_rows_next: bool
    planning_is_deferred: bool
    stays_in_sequence: bool
    serves_one_call: bool
    has_hot_row_besides_counters: bool
    compile_seconds: float
    reconnaissance_seconds: float
    planning_seconds: float

    @property
    def is_dealt(self) -> bool:
        """Whether another deal of rows to blocks gives another plan."""
        return self.plan.details.is_dealt

    @property
    def has_no_parallel_plan(self) -> bool:
        """Whether tasks have to follow each other, for all that is known in this call."""
        return self.plan.strategy in ("sequential", "wavefront") and not self.planning_is_deferred

    def after(self, attempt: "LoopFacts") -> "LoopFacts":
        """Return the facts with the time that an earlier attempt took."""
        return replace(
            self,
            compile_seconds=self.compile_seconds + attempt.compile_seconds,
            reconnaissance_seconds=self.reconnaissance_seconds + attempt.reconnaissance_seconds,
            planning_seconds=self.planning_seconds + attempt.planning_seconds,
        )


@dataclass(frozen=True)
class NodeResult:
    """The result of an execution of a loop on one node."""

    jobs: NDArray[np.int64]  # numbers in the whole plan
    totals: dict[int, NDArray[Any]]  # position of an accumulator → its sum in each of these jobs
    sequence: NDArray[np.integer] | None  # positions of all tasks in the order of a run under row locks
    statistics: NodeStatistics  # of this execution
    seconds: float  # of the execution alone
    copy_seconds: float  # spent on copying tables into plan order
    compile_seconds: float  # spent on compiling the worker
    # Position of a table, field → number that its integers, of which none is negative, are below.
    limits: dict[tuple[int, str | None], int] = field(default_factory=dict)
    stays: SequentialReason | None = None  # why the loop had better stay in sequence, if a first look has shown it


@dataclass(frozen=True)
class Segments:
    """The segments of tables that are read as A[P[k]:P[k + 1]], in plan order."""

    content: Hashable  # content key of P
    ends: NDArray[np.integer]  # (tasks, 2): P[k] and P[k + 1]
    bounds: NDArray[np.int64]  # (tasks + 1,): bounds of the concatenated segments
    shift: NDArray[np.int64]  # (tasks,): displacement of each segment


@dataclass
class NodeLoop:
    """A prepared loop, kept by its node; it holds no tables, so that these can be collected."""

    spec: LoopSpec  # as the driver has sent it
    part: NodePlan  # this node's part of the plan
    executable: ExecutablePlan  # that part, as workers need it
    pools: tuple[Pools, ...]  # of each group of tables that `near` draws from
    tables_of_moves: dict[int, int]  # number of a recorded table → position of an argument
    variant: Variant | None = None  # in which way it was recorded and its runs are checked, if not in the usual one
    checking: Checking = Checking.OWNERS  # which checks a run makes before each access
    samples_rows: bool = False  # whether its run shows if tasks keep to their rows
    nonnegative: frozenset[Given] | None = None  # see `nonnegative_numbers`; None: not known yet
    failure: StradsError | None = None  # error of the reconnaissance, if only the run can tell whether it is real
    records: AccessRecords | None = None  # kept for the interpreter, and to deal rows anew
    facts: LoopFacts | None = None  # on node 0, to deal rows anew
    attached: tuple[Any, ...] | None = None  # the `tables` that departures and arrivals refer to
    departures: list[TransferBuffer] = field(default_factory=list)  # memory of the rows of each move from this node
    arrivals: list[TransferBuffer] = field(default_factory=list)  # memory of the rows of each move to this node
    aligned: dict[int, tuple[Hashable, Any]] = field(default_factory=dict)  # position → content, rows in plan order
    segments: dict[int, Segments] = field(default_factory=dict)  # by the position of the offsets
    memory: dict[int, NDArray[Any]] = field(default_factory=dict)  # position → memory for rows in plan order
    tables: tuple[TableRef, ...] = ()  # arguments of the last run
    seconds: float = 0.0  # of the last execution
    run: int = 0  # number of the program run in which it was last executed
    before: list[tuple[NDArray[Any], NDArray[Any]]] | None = None  # rows and their old values, to undo the run
    arrived: NDArray[np.bool_] | None = None  # which moves have arrived in that run
