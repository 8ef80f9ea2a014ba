"""A loop as the driver describes it to the nodes, and what they tell it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.engine.executor import Schedule
from strads.engine.rotation import Cargo
from strads.engine.statistics import NodeStatistics
from strads.loops.indices import LoopIndices
from strads.schedule.placement import NodePlan
from strads.schedule.plan import Plan


@dataclass(frozen=True)
class TableRef:
    """An argument that is a table on the nodes, by its name in their stores; of a map that of its index, too."""

    name: str
    relaxed: bool = False
    readonly: bool = False
    index: str | None = None


@dataclass(frozen=True)
class SumRef:
    """An argument that is an accumulator of this kind of number."""

    start: float | int


@dataclass(frozen=True)
class LoopSpec:
    """What a loop is, apart from the values that change from call to call."""

    name: str  # in the nodes' stores
    body: Any
    arguments: tuple[Any, ...]
    indices: LoopIndices
    strategy: str
    seed: int
    fastmath: bool
    micro_sync: bool
    job_order: str


@dataclass(frozen=True)
class LoopFacts:
    """What the driver has to know of a prepared loop; positions are those of the arguments."""

    plan: Plan
    bounds: dict[int, NDArray[np.int64]]
    written: frozenset[int]
    relaxed: frozenset[int]
    deciding: frozenset[int]
    dynamic: bool
    compile_seconds: float
    reconnaissance_seconds: float
    planning_seconds: float


@dataclass(frozen=True)
class NodeResult:
    """What an execution of a loop leaves at one node."""

    jobs: NDArray[np.int64]  # numbers in the whole plan
    totals: dict[int, NDArray[Any]]  # position of an accumulator → its sum in each of these jobs
    statistics: NodeStatistics
    seconds: float
    copy_seconds: float
    compile_seconds: float


@dataclass
class NodeLoop:
    """A prepared loop, kept by its node."""

    spec: LoopSpec
    part: NodePlan
    schedule: Schedule
    guards: tuple[NDArray[np.int64], NDArray[np.integer], NDArray[np.uint8]] | None
    tables_of_moves: dict[int, int]  # number of a recorded table → position of an argument
    attached: tuple[Any, ...] | None = None
    departures: list[Cargo] = field(default_factory=list)
    arrivals: list[Cargo] = field(default_factory=list)
    aligned: dict[int, Any] = field(default_factory=dict)
    tables: tuple[Any, ...] = ()  # arguments of the last run
    seconds: float = 0.0  # of the last execution
    run: int = 0  # number of the program run that it was last executed in
    before: dict[int, NDArray[Any]] | None = None  # rows before that run, where it may have to be undone
    arrived: NDArray[np.bool_] | None = None  # which arrivals of that run are there
