"""Scheduled model parallelism: what to update, how, and how the results are combined, apart from each other."""

from strads.schedule.rounds import Job, Round, Schedule
from strads.schmp.program import Program
from strads.schmp.schedules import random, round_robin, static_rotation
from strads.schmp.static_engine import Iteration, StaticEngine

__all__ = [
    "Iteration",
    "Job",
    "Program",
    "Round",
    "Schedule",
    "StaticEngine",
    "random",
    "round_robin",
    "static_rotation",
]
