"""Decides what may run concurrently: from access records to a plan (thesis §7.2.4)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from strads.errors import PlanError
from strads.schedule.choice import STRATEGIES, WORTHWHILE, choose, forced, one_job
from strads.schedule.kernels.counting_sort import PlanOrderCopy
from strads.schedule.loop import Loop
from strads.schedule.loop_sample import LoopSample, plan_from_sample, plan_of_hot_row
from strads.schedule.plan import Plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.flow_dependences import FlowDependences, flow_dependences
from strads.schedule.records.row_ranges import RowRanges, ranges_of
from strads.schedule.strategies.colouring import colouring_of_ranges
from strads.schedule.strategies.problem import Problem
from strads.schedule.strategies.wavefront import wavefront_of_ranges

IN_ORDER = ("independent", "wavefront", "sequential")  # strategies whose result is that of the sequential loop
KEPT = "tasks read what earlier ones wrote, so the loop's order is kept"


def build_plan(
    records: AccessRecords,
    loop: Loop | None = None,
    *,
    threads: int,
    strategy: str = "auto",
    copy_in_order: PlanOrderCopy | None = None,
    loop_sample: LoopSample | None = None,
) -> Plan:
    """Plan a loop: group its tasks into jobs, and order the jobs that conflict.

    Two tasks conflict when they touch a row that any task of the loop writes.

    Parameters
    ----------
    records
        The rows that each task touches.
    loop
        What else is known of the loop; nothing by default.
    threads
        Number of threads that make the plan, on which it does not depend.
    strategy
        "independent", "rotation", "buckets", "components", "colouring", "wavefront", "sequential", "locked", or "auto":
        one of them that two threads run faster than one, else "sequential"; locks are used only on request. The
        reasons why others were rejected are in `details.rejected`.
    copy_in_order
        Rows to be copied into plan order at the same time, if the strategy supports it: then the plan's order is
        `copy_in_order.order`.
    loop_sample
        What sampled tasks showed before the loop was recorded; None if none were sampled.

    Returns
    -------
    Plan
        Deterministic, except under locks: the result is that of one serial order, whatever the timing.

    Raises
    ------
    PlanError
        If the requested strategy is not applicable.
    """
    loop = loop or Loop(tasks=records.tasks)
    in_order = loop.in_order
    if strategy != "auto" and strategy not in STRATEGIES:
        raise PlanError(f"unknown strategy '{strategy}': use one of auto, {', '.join(STRATEGIES)}")
    if in_order and strategy not in ("auto", *IN_ORDER):
        raise PlanError(f"{strategy} changes the order of tasks: with order='sequential' use {' or '.join(IN_ORDER)}")
    if threads < 1:
        raise PlanError(f"a plan needs at least 1 thread, not {threads}")
    problem = Problem.of(records, loop, threads, copy_in_order)
    if problem.tasks == 0:
        return one_job(problem, "independent" if strategy == "auto" else strategy, "the loop has no tasks")
    if loop.near and strategy in ("wavefront", "locked"):
        raise PlanError(f"{strategy} cannot serve a loop that calls near: its jobs own no rows from which to draw")
    if strategy != "auto":
        return forced(problem, strategy)
    loop_sample = loop_sample or LoopSample.of(records, loop)
    plan = plan_of_hot_row(problem) or _coloured(records, loop_sample) or plan_from_sample(problem, loop_sample)
    if plan is not None:
        return plan
    # Planning without all records must come to the same order, so the verdict of the parts counts here, too.
    found = FlowDependences.SELDOM if loop_sample is None else loop_sample.flow_dependences
    if not in_order and found is FlowDependences.SELDOM:
        found = flow_dependences(records)
    if not in_order and found is FlowDependences.FORWARD:
        plan = choose(problem, in_order=True)
        return replace(plan, reason=f"{plan.reason}; {KEPT}")
    pays = None if loop_sample is None else loop_sample.pays
    return choose(problem, in_order=in_order, pays=pays)


def _coloured(records: AccessRecords, loop_sample: LoopSample | None) -> Plan | None:
    bounds = None if loop_sample is None else loop_sample.colourable_chunks
    return None if bounds is None else colouring_of_ranges(bounds, ranges_of(records, bounds))


def plan_of_ranges(bounds: NDArray[np.int64], ranges: RowRanges, *, in_order: bool, keeps_order: bool) -> Plan | None:
    """Plan a loop by the ranges of rows that its chunks touch; None if it must be recorded in full to be planned.

    Parameters
    ----------
    bounds, ranges
        The bounds of the chunks, from `LoopSample`, and the ranges of rows that their tasks touch.
    in_order
        Whether the result must be that of the sequential loop.
    keeps_order
        Whether the chunks are those of a loop whose order counts.
    """
    if not keeps_order:
        return colouring_of_ranges(bounds, ranges)
    plan = wavefront_of_ranges(bounds, ranges, WORTHWHILE)
    return plan if plan is None or in_order else replace(plan, reason=f"{plan.reason}; {KEPT}")
