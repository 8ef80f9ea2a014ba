"""strads: write the sequential machine-learning loop over shared parameters, run it in parallel.

Loops are serializable: the result is that of some sequential order, without data races. See `async_for`.
"""

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
)
from strads.errors import (
    AccessPatternError,
    ArgumentError,
    BodyError,
    BodyIndexError,
    CompileError,
    InputError,
    PlanError,
    StradsError,
)
from strads.loops import LoopStatistics, async_for

__version__ = "0.1.0"

__all__ = [
    "AccessPatternError",
    "ArgumentError",
    "BodyError",
    "BodyIndexError",
    "CompileError",
    "InputError",
    "LoopStatistics",
    "PlanError",
    "StradsError",
    "accumulator",
    "async_for",
    "dmap",
    "dmultimap",
    "dvector",
    "from_arrow",
    "from_numpy",
    "init",
    "read_csv",
    "read_parquet",
    "read_text",
    "readonly",
    "relaxed",
    "shutdown",
]
