"""Scheduled model parallelism: what to update, how, and how to combine the results, as separate instructions."""

from strads.schedule.dynamic.dependencies import dense_dependencies, sparse_dependencies
from strads.schedule.dynamic.schedules import (
    CyclicSchedule,
    DynamicSchedule,
    PrioritySchedule,
    RandomSchedule,
    ViolationSchedule,
)
from strads.schedule.static.rounds import Job, Round, Schedule
from strads.schmp.dynamic_engine import DynamicEngine, DynamicRun
from strads.schmp.dynamic_program import DynamicProgram
from strads.schmp.program import Program
from strads.schmp.schedules import paired, random, round_robin, static_rotation, tournament
from strads.schmp.static_engine import Iteration, StaticEngine

__all__ = [
    "CyclicSchedule",
    "DynamicEngine",
    "DynamicProgram",
    "DynamicRun",
    "DynamicSchedule",
    "Iteration",
    "Job",
    "PrioritySchedule",
    "Program",
    "RandomSchedule",
    "Round",
    "Schedule",
    "StaticEngine",
    "ViolationSchedule",
    "dense_dependencies",
    "paired",
    "random",
    "round_robin",
    "sparse_dependencies",
    "static_rotation",
    "tournament",
]
