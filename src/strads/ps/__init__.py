"""A parameter server: tables that workers read and add to, under a consistency model (ESSP; thesis §2.2.4)."""

from strads.engine.ps.profile import StalenessProfile
from strads.ps.run import RunStatistics, Worker, run
from strads.ps.table import Table
from strads.ps.worker_table import WorkerTable
from strads.schedule.consistency import ASP, BSP, ESSP, SSP, VAP, Consistency, Push

__all__ = [
    "ASP",
    "BSP",
    "ESSP",
    "SSP",
    "VAP",
    "Consistency",
    "Push",
    "RunStatistics",
    "StalenessProfile",
    "Table",
    "Worker",
    "WorkerTable",
    "run",
]
