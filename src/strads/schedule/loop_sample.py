"""Predictions about a long loop from a sample of its tasks: how to record it, and whether a plan is worthwhile.

Asked before the loop is recorded, to save the records, and when it is planned from records: the plan is the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from strads.schedule.choice import (
    ALONE,
    WORTHWHILE,
    choose,
    is_evident,
    middle_of,
    one_job,
    order_pays,
    sample_stride,
    serves,
)
from strads.schedule.loop import Loop
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords, SparseRecords, UniformRecords
from strads.schedule.records.cost import BYTES
from strads.schedule.records.flow_dependences import FlowDependences, flow_dependences
from strads.schedule.records.hot_rows import hot_row, sample
from strads.schedule.records.parts import as_sparse, as_uniform, chosen, merged
from strads.schedule.records.row_ranges import ranges_of
from strads.schedule.strategies.buckets import MAX_ROWS, touch_few_rows
from strads.schedule.strategies.colouring import colouring_from_sample, colouring_of_ranges
from strads.schedule.strategies.problem import Problem
from strads.schedule.strategies.wavefront import chunks_from_sample

PLANNED = 20.0  # nanoseconds of planning for an access
# Nanoseconds of recording and planning an access: in a rotation, if tasks touch few rows, and otherwise.
ROTATED, GROUPED, PLANNED_OTHERWISE = 25.0, 40.0, 100.0
COPIED = 100.0  # nanoseconds to copy the row of an access, so that recording can compute with it
MANY_CALLS = 3  # a first call makes no plan that would take longer than this many calls
LONG = 1e8  # nanoseconds of planning that never count as too many: compiling a body takes longer
COMPUTING = 1_000.0  # nanoseconds assumed for a task's calls of functions like `exp`: their number is not known
TOO_MANY_CALLS = 20  # a plan that would take as long as this many calls is not made
FEW_ACCESSES, WAITING_SHARE, FETCHED, MAX_AHEAD = 8, 0.3, 300.0, 16  # see `prefetch_distance`
HEAVY, RECORD = 64, 9  # rows that a heavy task touches; bytes of the record of an access
FEW_BYTES = 1 << 20  # of records, which take milliseconds
SHORT = 1 << 14  # tasks of a loop that is planned in a few milliseconds
_THREADS = 2  # that plan a sample


@dataclass(frozen=True)
class OneJob:
    """Why a loop has to run as one job, and why each strategy was rejected."""

    reason: str  # follows `ALONE` in the reason of the plan
    rejected: dict[str, str]  # strategy → why it was rejected


@dataclass(frozen=True)
class PlanningCost:
    """What a plan would cost and save, estimated from a sample of the tasks: see `PlanningCost.of`.

    Attributes
    ----------
    tasks
        Number of tasks of the loop.
    planning
        Nanoseconds of recording and planning a task.
    alone
        Nanoseconds of a task in the order of the loop.
    together
        Nanoseconds of a task on two threads, in an order that brings rows together.
    overlapping
        Like `alone`, if accesses wait for each other only in part: see `_partly_overlapping`.
    computing
        Nanoseconds that a task may take beside its accesses.
    """

    tasks: int
    planning: float
    alone: float
    together: float
    overlapping: float
    computing: float

    @classmethod
    def of(cls, some: AccessRecords, loop: Loop) -> "PlanningCost":
        """Estimate from the records of a sample of the tasks."""
        part = merged(as_sparse(some))
        problem, each = Problem.of(part, loop, _THREADS), len(part.rows) / max(part.tasks, 1)
        form = as_uniform(part)
        rotates = isinstance(form, UniformRecords) and len(set(form.access_tables)) == len(form.access_tables)
        of_one = ROTATED if rotates else GROUPED if each <= MAX_ROWS else PLANNED_OTHERWISE
        alone, planning = problem.nanoseconds_in(None), each * of_one
        if loop.copies:
            planning += each * COPIED
        if loop.allocates:  # then recording a task takes about as long as running it
            planning += alone
        together, computing = problem.nanoseconds_per_task / 2, COMPUTING if loop.computes else 0.0
        return cls(loop.tasks, planning, alone, together, _partly_overlapping(problem), computing)

    @property
    def exceeds_one_call(self) -> bool:
        """Whether a plan that serves one call takes longer than it saves."""
        return self.alone - self.together + self.computing / 2 < self.planning

    @property
    def too_many_calls(self) -> float | None:
        """How many calls planning would take, if these are too many; else, or if the time is not known, None."""
        calls = self.planning / self.overlapping
        is_known = self.computing == 0 and self.tasks * self.planning > LONG
        return calls if is_known and calls > TOO_MANY_CALLS else None

    @property
    def exceeds_first_call(self) -> bool:
        """Whether a first call should run as one job: planning would take many times as long, and more than a moment.

        A program that calls the loop once would only lose by the plan; for others, the second call makes it.
        """
        return self.planning > MANY_CALLS * self.overlapping and self.tasks * self.planning > LONG


def calls_of_planning(some: SparseRecords, loop: Loop, strategy: str) -> float:
    """Return how many calls of a loop recording and planning it would cost, given the records of a sample of its tasks.

    In a sample, rows that it only reads count like those that it writes: other tasks may write them.
    """
    part = merged(as_sparse(some))
    problem = Problem.of(replace(part, tags=part.tags | np.uint8(1)), loop, _THREADS)
    rate = {"independent": ROTATED, "rotation": ROTATED, "buckets": GROUPED}.get(strategy, PLANNED_OTHERWISE)
    accesses = len(part.rows) / max(part.tasks, 1)
    return accesses * rate / _partly_overlapping(problem)


def _partly_overlapping(problem: Problem) -> float:
    """Geometric mean of the time of a task in which accesses wait for each other and that in which they overlap."""
    return float(np.sqrt(problem.nanoseconds_in(None) * problem.nanoseconds_if_bare))


def too_costly(calls: float) -> str:
    """Explain why a loop is not planned: recording and planning it would take as long as very many calls."""
    return f"recording and planning would take as long as {calls:.0f} calls or more"


def records_outweigh(some: AccessRecords, tasks: int, times: float) -> bool:
    """Whether the records of so many tasks would take more than some `times` the memory of their tables.

    True only if most sampled tasks touch many rows: then there are few tasks, which are rarely independent.
    """
    part = as_sparse(some)
    if part.tasks == 0 or np.median(np.diff(part.offsets)) <= HEAVY:
        return False
    size = sum(table.rows * table.row_bytes for table in part.tables)
    return len(part.rows) / part.tasks * tasks * RECORD > max(times * size, FEW_BYTES)


def prefetch_distance(some: AccessRecords, loop: Loop) -> int:
    """Return by how many tasks a loop that runs in its order should fetch rows before they are needed, or 0.

    Prefetching computes the rows of each task twice. That pays if tasks mostly wait for a few rows: if they make many
    accesses, the processor overlaps these by itself.
    """
    part = merged(as_sparse(some))
    if not 0 < len(part.rows) <= FEW_ACCESSES * part.tasks:
        return 0
    problem = Problem.of(part, loop, _THREADS)
    if problem.waiting_share < WAITING_SHARE:
        return 0
    return int(np.clip(FETCHED / problem.nanoseconds_in(None), 1, MAX_AHEAD))


class LoopSample:
    """Predictions about a long loop from the tasks in its middle.

    Parameters
    ----------
    middle
        Their records.
    loop
        The loop.
    record_spread
        Returns the records of every `spread`-th task, or None if that fails; only called if the middle does not decide.
    """

    def __init__(self, middle: AccessRecords, loop: Loop, record_spread: Callable[[], AccessRecords | None]):
        self._recorded = middle
        self._loop = loop
        self._record_spread = record_spread
        self._pays = dict[str, bool]()

    @classmethod
    def of(cls, records: AccessRecords, loop: Loop) -> "LoopSample | None":
        """Look at some tasks of a loop that has been recorded; None if it is not long."""
        middle = middle_of(records.tasks) if records.rows.size else range(0)
        if not middle:
            return None
        every = np.arange(0, records.tasks, sample_stride(records.tasks))
        return cls(chosen(records, np.arange(middle.start, middle.stop)), loop, lambda: chosen(records, every))

    @cached_property
    def _middle(self) -> SparseRecords:
        return as_sparse(self._recorded)  # the cost model tells uniform records from others

    @cached_property
    def _spread(self) -> AccessRecords | None:
        part = self._record_spread()
        return None if part is None else as_uniform(part)

    @property
    def _accesses(self) -> float:
        """Accesses of each task of the middle; infinite if tasks differ."""
        return len(self._recorded.access_tables) if isinstance(self._recorded, UniformRecords) else np.inf

    @cached_property
    def _problem(self) -> Problem:
        return Problem.of(self._middle, self._loop, _THREADS)

    @cached_property
    def _uniform_problem(self) -> Problem:
        return Problem.of(as_uniform(self._recorded), self._loop, _THREADS)

    @cached_property
    def _of_spread(self) -> Problem | None:
        return None if self._spread is None else Problem.of(self._spread, self._loop, _THREADS)

    @cached_property
    def flow_dependences(self) -> FlowDependences:
        """What tasks read of rows that others write."""
        return flow_dependences(self._recorded)

    @cached_property
    def keeps_order(self) -> bool:
        """Whether the order of the loop matters."""
        return self._loop.in_order or self.flow_dependences is FlowDependences.FORWARD

    @property
    def planning_is_costly(self) -> bool:
        """Whether a plan for a loop whose order matters takes longer than the loop.

        That is, whether rows are so short that an access takes less time than a planner's passes over its record.
        """
        used_bytes = np.array([table.used_bytes for table in self._middle.tables])[self._middle.tags >> 1].mean()
        return bool(used_bytes / BYTES < PLANNED) and self.keeps_order

    @cached_property
    def chunks_in_order(self) -> NDArray[np.int64] | None:
        """Bounds of chunks whose ranges of rows suffice to plan a loop that keeps its order; None if they do not."""
        if self._problem.rows == 0 or serves(self._problem, "independent"):
            return None
        begin = middle_of(self._loop.tasks).start
        return chunks_from_sample(self._problem, self._middle, begin, self._loop.tasks, WORTHWHILE)

    @cached_property
    def colourable_chunks(self) -> NDArray[np.int64] | None:
        """Bounds of chunks for a colouring of a loop whose order does not matter; None if they would not do."""
        if self.keeps_order or self._loop.near or self.flow_dependences is FlowDependences.SELDOM:
            return None
        if (
            self._accesses <= MAX_ROWS or self._problem.rows == 0 or touch_few_rows(self._problem)
        ):  # then blocks of rows make better jobs than blocks of tasks
            return None
        bounds = colouring_from_sample(self._problem, self._middle, self._loop.tasks)
        if bounds is None or self._spread is None:
            return None
        thin = np.unique(-(-bounds // sample_stride(self._loop.tasks)))  # the bounds among the tasks of the spread
        ends_like_middle = colouring_of_ranges(thin, ranges_of(self._spread, thin)) is not None
        return bounds if ends_like_middle else None

    def rule_out_colouring(self) -> None:
        """Note that the whole loop cannot be coloured, although its sampled parts could."""
        self.colourable_chunks = None

    def pays(self, strategy: str) -> bool:
        """Whether the order of a strategy pays for consecutive tasks, as far as it applies: see `order_pays`."""
        if strategy not in self._pays:
            self._pays[strategy] = order_pays(self._uniform_problem, strategy)
        return self._pays[strategy]

    @cached_property
    def one_job(self) -> OneJob | None:
        """Why the loop has to run as one job; None if a plan may win."""
        part = self._of_spread if self._accesses <= MAX_ROWS and not self.keeps_order else None
        if part is not None and is_evident(part, self.pays):
            return None
        is_otherwise = self._accesses > MAX_ROWS and not touch_few_rows(self._problem)
        if is_otherwise and not serves(self._problem, "independent"):
            costly = self._too_costly("wavefront" if self.keeps_order else "components", {})
            if costly is not None:
                return costly
        plan = _plan_in_order(self._middle, self._loop)
        if plan.strategy != "sequential":
            return None
        if self.keeps_order:
            reason = f"its order matters, and {self._middle.tasks:,} tasks of its middle can hardly run together"
            return OneJob(reason, dict(plan.details.rejected))
        part = self._of_spread
        if part is None:
            return None
        share, alone = part.tasks / self._loop.tasks, self._problem.nanoseconds_in(None)
        plan = choose(part, in_order=False, share=share, alone=alone, pays=self.pays)
        if plan.strategy != "sequential":
            return self._too_costly(plan.strategy, plan.details.rejected)
        cause = plan.details.bottleneck or "they share rows"
        reason = f"two threads would hardly be faster for {part.tasks:,} tasks from all over it: {cause}"
        return OneJob(reason, dict(plan.details.rejected))

    def _too_costly(self, strategy: str, rejected: Mapping[str, str]) -> OneJob | None:
        """Return why a loop is not planned by a strategy, if that takes as long as very many calls."""
        if self._loop.computes:  # then the time of a task is not known
            return None
        calls = calls_of_planning(sample(self._recorded), self._loop, strategy)
        if calls <= TOO_MANY_CALLS:
            return None
        return OneJob(f"{too_costly(calls)}; strategy={strategy!r} asks for it anyway", dict(rejected))


def _plan_in_order(part: SparseRecords, whole: Loop) -> Plan:
    loop = replace(whole, tasks=part.tasks, in_order=True, streams=False, near=(), deal=(), seed=0)
    problem = Problem.of(part, loop, _THREADS)
    plan = plan_of_hot_row(problem) or plan_from_sample(problem, LoopSample.of(part, loop))
    return plan or choose(problem, in_order=True)


def plan_of_hot_row(problem: Problem) -> Plan | None:
    """Return the plan of one job for a loop of which most tasks touch one row."""
    crowded = hot_row(sample(problem.records), in_order=problem.loop.in_order)
    return None if crowded is None else one_job(problem, "sequential", f"{ALONE}: {crowded}")


def plan_from_sample(problem: Problem, loop_sample: LoopSample | None) -> Plan | None:
    """Return the plan of one job for a loop whose parts show that no other is faster."""
    found = None if loop_sample is None else loop_sample.one_job
    if found is None:
        return None
    plan = one_job(problem, "sequential", f"{ALONE}: {found.reason}")
    return plan.with_details(rejected=found.rejected)
