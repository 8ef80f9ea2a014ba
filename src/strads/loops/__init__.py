"""Loops over shared tables, run in parallel."""

from strads.loops.async_for import async_for
from strads.loops.statistics import LoopStatistics, NodeStatistics

__all__ = ["LoopStatistics", "NodeStatistics", "async_for"]
