"""strads: write the sequential machine-learning loop over shared parameters, run it in parallel.

Loops are serializable: the result is that of some sequential order, without data races. See `async_for`.
"""

from strads import ps, schmp
from strads.cluster import Cluster, Comm, Node, Runtime, init, shutdown
from strads.dds import (
    accumulator,
    dmap,
    dmultimap,
    dvector,
    from_arrow,
    from_numpy,
    read_csv,
    read_parquet,
    read_text,
    readonly,
    relaxed,
)
from strads.errors import (
    AccessPatternError,
    ArgumentError,
    BodyError,
    BodyIndexError,
    BodyKeyError,
    CompileError,
    InputError,
    NodeError,
    NodeFailure,
    PlanError,
    ProgramStopped,
    StradsError,
)
from strads.loops import LoopStatistics, NodeStatistics, SyncStatistics, async_for, register_aggregation, sync_for
from strads.schedule.consistency import ASP, BSP, ESSP, SSP, VAP, Hybrid

__version__ = "0.1.0"

__all__ = [
    "ASP",
    "BSP",
    "ESSP",
    "SSP",
    "VAP",
    "AccessPatternError",
    "ArgumentError",
    "BodyError",
    "BodyIndexError",
    "BodyKeyError",
    "Cluster",
    "Comm",
    "CompileError",
    "Hybrid",
    "InputError",
    "LoopStatistics",
    "Node",
    "NodeError",
    "NodeFailure",
    "NodeStatistics",
    "PlanError",
    "ProgramStopped",
    "Runtime",
    "StradsError",
    "SyncStatistics",
    "accumulator",
    "async_for",
    "dmap",
    "dmultimap",
    "dvector",
    "from_arrow",
    "from_numpy",
    "init",
    "ps",
    "read_csv",
    "read_parquet",
    "read_text",
    "readonly",
    "register_aggregation",
    "relaxed",
    "schmp",
    "shutdown",
    "sync_for",
]
