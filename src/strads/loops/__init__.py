"""Parallel loops over shared tables."""

from strads.loops.aggregation import register_aggregation
from strads.loops.async_for import async_for
from strads.loops.statistics import LoopStatistics, NodeStatistics, SyncStatistics
from strads.loops.sync_for import sync_for

__all__ = ["LoopStatistics", "NodeStatistics", "SyncStatistics", "async_for", "register_aggregation", "sync_for"]
