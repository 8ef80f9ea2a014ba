"""What may run together: access records, conflicts, plans. Pure functions, no I/O."""

from strads.schedule.kernels.parallel import Parallel, sequential
from strads.schedule.plan import Plan, RowLocks
from strads.schedule.planner import build_plan
from strads.schedule.records.access import AccessRecords, SparseRecords, TableShape, UniformRecords

__all__ = [
    "AccessRecords",
    "Parallel",
    "Plan",
    "RowLocks",
    "SparseRecords",
    "TableShape",
    "UniformRecords",
    "build_plan",
    "sequential",
]
