"""strads: write the sequential machine-learning loop over shared parameters, run it in parallel.

Loops are serializable: the result is that of some sequential order, without data races. See `async_for`.
"""

import importlib
from typing import Any

from strads import _starting as _starting

if _starting.is_command():
    _starting.end_quietly()

from strads import _kernel_cache as _kernel_cache  # before the others, which define kernels
from strads import cluster, ps, schmp
from strads.checkpoints import checkpoint, record
from strads.cluster import init, shutdown
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
    snapshot,
)
from strads.errors import (
    AccessPatternError,
    ArgumentError,
    BodyError,
    BodyIndexError,
    BodyKeyError,
    CheckpointError,
    CompileError,
    InputError,
    NodeError,
    NodeFailure,
    PlanError,
    ProgramStopped,
    StradsError,
    UnknownKeyError,
)
from strads.loops import LoopStatistics, NodeStatistics, SyncStatistics, async_for, register_aggregation, sync_for
from strads.rng.numbers import random, weights
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
    "CheckpointError",
    "CompileError",
    "Hybrid",
    "InputError",
    "LoopStatistics",
    "NodeError",
    "NodeFailure",
    "NodeStatistics",
    "PlanError",
    "ProgramStopped",
    "StradsError",
    "SyncStatistics",
    "UnknownKeyError",
    "accumulator",
    "async_for",
    "checkpoint",
    "cluster",
    "dmap",
    "dmultimap",
    "dvector",
    "from_arrow",
    "from_numpy",
    "init",
    "models",
    "ps",
    "random",
    "read_csv",
    "read_parquet",
    "read_text",
    "readonly",
    "record",
    "register_aggregation",
    "relaxed",
    "schmp",
    "shutdown",
    "snapshot",
    "sync_for",
    "weights",
]


def __getattr__(name: str) -> Any:
    """Load the estimators when they are first used: scikit-learn takes a second."""
    if name == "models":
        return importlib.import_module("strads.models")
    raise AttributeError(f"module 'strads' has no attribute {name!r}")
