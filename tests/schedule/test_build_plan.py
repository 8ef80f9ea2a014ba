"""Whatever the loop and the strategy, a plan orders all conflicts and runs every task once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from access_patterns import any_loops, edges, k_partite_loops, ratings, scattered, sparse, uniform
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_check import verify_plan

from strads.errors import PlanError
from strads.schedule import choice
from strads.schedule.choice import STRATEGIES
from strads.schedule.kernels import parallel
from strads.schedule.kernels.counting_sort import PlanOrderCopy
from strads.schedule.kernels.streaming import empty_lines
from strads.schedule.loop import Loop
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.records.access import AccessRecords, TableShape, UniformRecords
from strads.schedule.records.parts import as_sparse
from strads.schedule.records.row_ranges import Marks, RowRanges, ranges_of
from strads.schedule.strategies import chunks, levels, rotation
from strads.schedule.strategies.wavefront import wavefront_of_ranges


def loop(records: AccessRecords, **known: Any) -> Loop:
    return Loop(tasks=records.tasks, **known)


def same(one: Plan, other: Plan) -> bool:
    names = ["order", "offsets", "stage", "predecessors", "successor_offsets", "successors"]
    return one.strategy == other.strategy and all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


@settings(max_examples=60, deadline=None)
@given(any_loops(), st.sampled_from([1, 2, 16]))
def test_auto_is_safe(records: AccessRecords, threads: int) -> None:
    plan = build_plan(records, threads=threads)
    verify_plan(plan, records)
    assert plan.parallelism >= 1.0


@settings(max_examples=150, deadline=None)
@given(any_loops(), st.sampled_from(sorted(STRATEGIES)))
def test_forced_strategy_is_safe_or_refused(records: AccessRecords, strategy: str) -> None:
    try:
        plan = build_plan(records, threads=2, strategy=strategy)
    except PlanError:
        assert strategy in {"independent", "rotation", "buckets", "colouring"}
    else:
        assert plan.strategy == strategy
        verify_plan(plan, records)


@settings(max_examples=60, deadline=None)
@given(k_partite_loops())
def test_rotation_serves_k_partite_loops(records: AccessRecords) -> None:
    plan = build_plan(records, threads=2, strategy="rotation")
    verify_plan(plan, records)
    for job in range(plan.jobs):
        assert np.all(np.diff(plan.order[plan.offsets[job] : plan.offsets[job + 1]]) > 0)


@settings(max_examples=60, deadline=None)
@given(
    any_loops(), st.sampled_from(["auto", "components", "wavefront", "locked"]), st.sampled_from([2, 3, 16, 64, 500])
)
def test_plans_do_not_depend_on_threads(records: AccessRecords, strategy: str, threads: int) -> None:
    expected = build_plan(records, loop(records, seed=3), threads=1, strategy=strategy)
    assert same(expected, build_plan(records, loop(records, seed=3), threads=threads, strategy=strategy))


@pytest.mark.parametrize("records", [ratings(300_000, 2000, 500), edges(300_000, 5000)], ids=["ratings", "edges"])
def test_chunks_on_threads_give_the_same_plan(records: AccessRecords) -> None:
    with ThreadPoolExecutor(2) as pool:
        plan = build_plan(
            records, loop(records, parallel=lambda f, chunks: list(pool.map(f, range(chunks))) and None), threads=4
        )
    assert same(plan, build_plan(records, threads=1))
    verify_plan(plan, records)


@settings(max_examples=60, deadline=None)
@given(any_loops(), st.sampled_from(["auto", "components", "wavefront", "locked"]))
def test_small_chunks_give_the_same_plan(records: AccessRecords, strategy: str) -> None:
    whole = build_plan(records, threads=2, strategy=strategy)
    with patch.object(parallel, "SMALLEST_CHUNK", 16):
        assert same(whole, build_plan(records, threads=2, strategy=strategy))


@pytest.mark.parametrize("tables", [1, 2, 3])
def test_rotations_do_not_depend_on_threads(tables: int) -> None:
    rng = np.random.default_rng(0)
    records = uniform([5000] * tables, range(tables), rng.integers(0, 5000, (40_000, tables)))
    plan = build_plan(records, threads=64)
    assert plan.strategy == "rotation"
    assert set(plan.details.blocks.values()) == {{1: 32, 2: 32, 3: 8}[tables]}
    assert same(plan, build_plan(records, threads=1))


def test_rotation_over_equal_blocks() -> None:
    plan = build_plan(ratings(100_000, 3000, 2000), threads=2)
    assert plan.strategy == "rotation"
    assert plan.parallelism > 20
    assert plan.reason == (
        "each task touches one row of W and one row of H: rows are cut into 32 blocks each; 32 stages of 32 jobs"
    )
    assert plan.order.dtype == np.int32
    for stage in range(32):
        assert np.all(np.diff(plan.work[plan.stage == stage]) <= 0), "heaviest first"


@settings(max_examples=60, deadline=None)
@given(k_partite_loops(), st.booleans())
def test_passes_over_a_grid_are_safe(records: AccessRecords, dealt: bool) -> None:
    near = (frozenset({0}),) if dealt else ()
    with patch.multiple(rotation, VISITS=0, VISITS_OF_JOB=1, MIN_TASKS=1, MIN_BYTES=0, MIN_BLOCKS=2, STRETCH_BITS=0):
        plan = build_plan(records, loop(records, near=near), threads=2, strategy="rotation")
        assert same(plan, build_plan(records, loop(records, near=near), threads=16, strategy="rotation"))
    verify_plan(plan, records)
    rows = [table.rows for table in records.tables]
    if len(rows) == 2 and rows[0] != rows[1] and records.tasks >= 16:
        assert "passes" in plan.reason


@pytest.mark.parametrize(
    ("tasks", "items", "passes", "blocks"),
    [(60_000, 1000, 1, 32), (600_000, 1000, 5, 16), (600_000, 100, 65, 6), (100_000, 100, 9, 6), (20_000, 100, 4, 4)],
)
def test_rows_that_are_visited_often_are_visited_in_passes(tasks: int, items: int, passes: int, blocks: int) -> None:
    plan = build_plan(ratings(tasks, 3000, items), threads=2)
    assert plan.details.blocks == {"W": blocks, "H": blocks}
    assert plan.jobs == passes * blocks**2
    assert plan.parallelism > blocks / 2
    assert (f"{passes} passes" in plan.reason) == (passes > 1)


def test_tasks_of_a_cell_run_in_the_order_of_the_rows_of_the_larger_table() -> None:
    records = ratings(100_000, 3000, 2000)
    small, large = (
        replace(records, tables=tuple(replace(table, row_bytes=size) for table in records.tables)) for size in (64, 256)
    )
    plan = build_plan(small, threads=2)
    by_job = [plan.order[first:last] for first, last in zip(plan.offsets[:-1], plan.offsets[1:], strict=True)]
    assert all(np.all(np.diff(tasks) > 0) for tasks in by_job), "tables that fit in the cache: in loop order"
    sorted_plan = build_plan(large, threads=2)
    assert same(sorted_plan, build_plan(large, threads=7))
    users = records.rows[:, 0]
    for tasks, first, last in zip(by_job, sorted_plan.offsets[:-1], sorted_plan.offsets[1:], strict=True):
        expected = tasks[np.argsort(users[tasks], kind="stable")]
        assert np.array_equal(sorted_plan.order[first:last], expected)


def test_rows_without_numbers_are_planned() -> None:
    records = ratings(100_000, 3000, 100)
    empty_rows = tuple(replace(table, row_bytes=0) for table in records.tables)
    assert build_plan(replace(records, tables=empty_rows), threads=2).strategy == "rotation"


def test_large_tables_are_passed_over_less_often() -> None:
    records = ratings(600_000, 3000, 1000)
    long_rows = tuple(replace(table, row_bytes=8192) for table in records.tables)
    plan = build_plan(replace(records, tables=long_rows), threads=2)
    assert plan.details.blocks == {"W": 16, "H": 16}
    assert plan.jobs == 3 * 16**2


@pytest.mark.parametrize(("items", "taken"), [(1000, True), (1, False)])
def test_rows_are_copied_into_the_order_of_a_rotation_that_is_taken(items: int, taken: bool) -> None:
    records = ratings(10_000, 3000, items)
    records = replace(records, tables=tuple(replace(table, row_bytes=64) for table in records.tables))
    source = np.random.default_rng(0).random(10_000).view([("score", "f8")])
    copy_in_order = PlanOrderCopy.of(source, empty_lines((10_000,), source.dtype))
    copy_in_order.target[:] = 0
    plan = build_plan(records, threads=2, copy_in_order=copy_in_order)
    assert same(plan, build_plan(records, threads=2))
    assert (plan.order is copy_in_order.order) == taken
    assert np.array_equal(copy_in_order.target, source[plan.order] if taken else np.zeros_like(source))


def test_rotation_of_a_small_grid_exactly() -> None:
    records = uniform([2, 2], [0, 1], [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0]])
    plan = build_plan(records, threads=2, strategy="rotation")
    assert plan.order.tolist() == [0, 4, 3, 1, 2]
    assert plan.offsets.tolist() == [0, 2, 3, 4, 5]
    assert plan.stage.tolist() == [0, 0, 1, 1]
    assert plan.predecessors.tolist() == [0, 0, 2, 2]
    assert plan.successors.tolist() == [2, 3, 2, 3]
    assert plan.parallelism == pytest.approx(5 / 3)


def test_a_popular_row_bounds_the_parallelism() -> None:
    rng = np.random.default_rng(0)
    items = np.where(rng.random(50_000) < 0.25, 0, rng.integers(0, 1000, 50_000))
    rows = np.stack([rng.integers(0, 3000, 50_000), items], axis=1)
    records = uniform([3000, 1000], [0, 1], rows)
    plan = build_plan(records, threads=2)
    assert plan.strategy == "rotation"
    assert 3.8 < plan.parallelism < 4.1


def test_three_tables_give_stages_of_disjoint_jobs() -> None:
    rng = np.random.default_rng(0)
    records = uniform([200, 100, 300], [0, 1, 2], rng.integers(0, 100, (20_000, 3)))
    plan = build_plan(records, threads=2)
    assert plan.strategy == "rotation"
    cells = plan.details.cells
    for stage in range(64):
        for axis in range(3):
            blocks = cells[plan.stage == stage, axis]
            assert len(set(blocks.tolist())) == len(blocks)


def test_large_rows_make_more_blocks() -> None:
    records = ratings(50_000, 48_000, 17_700)
    wide = tuple(type(t)(t.name, t.rows, 512) for t in records.tables)
    plan = build_plan(type(records)(wide, (0, 1), (True, True), records.rows), threads=2)
    assert plan.details.blocks == {"W": 47, "H": 47}


def test_one_table_has_one_stage() -> None:
    plan = build_plan(uniform([100], [0], np.arange(1000) % 100), threads=2)
    assert plan.strategy == "rotation"
    assert plan.jobs == 32
    assert len(plan.successors) == 0


def test_rows_written_once_are_independent() -> None:
    plan = build_plan(uniform([1000], [0], np.random.default_rng(0).permutation(1000)), threads=2)
    assert plan.strategy == "independent"
    assert plan.jobs == 64
    assert plan.order.tolist() == list(range(1000))
    assert plan.parallelism == pytest.approx(1000 / 16)


def test_rows_that_no_task_writes_do_not_conflict() -> None:
    loop = [[(0, k, True), (0, 50 + k % 3, False), (1, 0, False)] for k in range(50)]
    assert build_plan(sparse([60, 1], loop), threads=2).strategy == "independent"
    rows = np.stack([np.arange(50), 50 + np.arange(50) % 3], axis=1)
    assert build_plan(uniform([60], [0, 0], rows, [True, False]), threads=2).strategy == "independent"
    assert build_plan(uniform([60], [0, 0], rows, [False, False]), threads=2).strategy == "independent"


def test_a_row_touched_twice_by_its_task_is_no_conflict() -> None:
    loop = [[(0, k, True), (0, k, False), (0, k, True)] for k in range(50)]
    assert build_plan(sparse([50], loop), threads=2).strategy == "independent"


def test_equal_columns_count_once() -> None:
    rows = ratings(5000, 300, 200).rows
    records = uniform([300, 200], [0, 0, 1, 1], rows[:, [0, 0, 1, 1]], [False, True, True, False])
    assert build_plan(records, threads=2).strategy == "rotation"


def test_graph_edges_make_buckets() -> None:
    plan = build_plan(edges(50_000, 2000), threads=2)
    assert plan.strategy == "buckets"
    assert plan.details.blocks == {"W": 32}
    assert plan.jobs == 32 * 33 // 2
    assert plan.parallelism > 8
    assert "rotation" in plan.details.rejected


def test_buckets_of_a_small_graph_exactly() -> None:
    records = uniform([4], [0, 0], [[0, 1], [1, 0], [2, 3], [1, 2], [3, 3]])
    plan = build_plan(records, threads=2, strategy="buckets")
    assert plan.order.tolist() == [0, 1, 2, 3, 4]
    assert plan.stage.tolist() == [0, 0, 1, 1]
    assert plan.predecessors.tolist() == [0, 0, 2, 1]


def test_sparse_tasks_without_rows_spread_over_jobs() -> None:
    plan = build_plan(sparse([1], [[(0, 0, True)], [(0, 0, True)]] + [[]] * 640), threads=2, strategy="buckets")
    assert plan.jobs == 33
    assert plan.parallelism > 25


def test_separate_components_need_no_barrier() -> None:
    loop = [[(0, 6 * (k % 40) + r, True) for r in range(6)] for k in range(4000)]
    plan = build_plan(sparse([240], loop), threads=2)
    assert plan.strategy == "components"
    assert plan.jobs == 32
    assert plan.parallelism == pytest.approx(4000 / 200)


def test_a_giant_component_is_split_into_batches() -> None:
    records = scattered(20_000, 60_000, 9)
    plan = build_plan(records, threads=2)
    assert plan.strategy == "components"
    assert plan.details.batches > 1
    barriers = np.flatnonzero(np.diff(plan.offsets) == 0)
    assert len(barriers) == plan.details.batches
    assert plan.parallelism > 3
    verify_plan(plan, records)


def test_the_seed_chooses_the_batches() -> None:
    records = scattered(20_000, 60_000, 9)
    one, other = (build_plan(records, loop(records, seed=s), threads=2, strategy="components") for s in (0, 1))
    assert not same(one, other)


def test_dense_sharing_runs_in_sequence_and_under_locks_if_they_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    loop = [[(0, int(r), True) for r in rng.choice(100, 12, replace=False)] for _ in range(3000)]
    records = sparse([100], loop)
    alone = build_plan(records, threads=2)
    assert (alone.strategy, alone.jobs) == ("sequential", 1)
    assert set(alone.details.rejected) == {
        "independent",
        "rotation",
        "buckets",
        "colouring",
        "components",
        "wavefront",
    }
    plan = build_plan(records, threads=2, strategy="locked")
    assert plan.locks is not None
    assert plan.locks.count == 128
    assert 1.2 < plan.parallelism < 100 / 12 + 1
    verify_plan(plan, records)


def conflicts_in_loop_order(plan: Plan, records: AccessRecords) -> bool:
    """Whether tasks that share a row that one of them writes stand in the plan as in the loop."""
    place = np.empty(plan.tasks, np.int64)
    place[plan.order] = np.arange(plan.tasks)
    touched: dict[tuple[int, int], int] = {}  # the latest place so far of tasks that touch a row
    written: dict[tuple[int, int], int] = {}
    for task in range(records.tasks):
        found = list(zip(accesses(records, task), writes(records, task), strict=True))
        if any(place[task] < (touched if write else written).get(access, -1) for access, write in found):
            return False
        for access, write in found:
            touched[access] = max(touched.get(access, -1), place[task])
            if write:
                written[access] = max(written.get(access, -1), place[task])
    return True


def accesses(records: AccessRecords, task: int) -> list[tuple[int, int]]:
    if isinstance(records, UniformRecords):
        return list(zip(records.access_tables, records.rows[task].tolist(), strict=True))
    own = slice(records.offsets[task], records.offsets[task + 1])
    return list(zip((records.tags[own] >> 1).tolist(), records.rows[own].tolist(), strict=True))


def writes(records: AccessRecords, task: int) -> list[bool]:
    if isinstance(records, UniformRecords):
        return list(records.access_writes)
    return (records.tags[records.offsets[task] : records.offsets[task + 1]] & 1).astype(bool).tolist()


@settings(max_examples=100, deadline=None)
@given(any_loops(), st.sampled_from(["wavefront", "sequential", "auto"]), st.sampled_from([3.0, 3000.0]))
def test_in_order_the_result_is_that_of_the_sequential_loop(records: AccessRecords, strategy: str, job: float) -> None:
    small = {"SMALLEST_JOB_NS": job, "WAITING_NS": job / 3, "WINDOWS": (16, 64)}
    with patch.multiple(levels, **small), patch.object(chunks, "SMALLEST_CHUNK_NS", job):
        plan = build_plan(records, loop(records, in_order=True), threads=2, strategy=strategy)
    verify_plan(plan, records)
    assert conflicts_in_loop_order(plan, records)


@settings(max_examples=100, deadline=None)
@given(any_loops(), st.sampled_from(["colouring", "auto"]))
def test_chunks_of_one_colour_share_no_row_that_is_written(records: AccessRecords, strategy: str) -> None:
    with patch.multiple(chunks, CHUNKS=(4, 16, 64), SMALLEST_CHUNK_NS=0.1), suppress(PlanError):
        plan = build_plan(records, threads=2, strategy=strategy)
        verify_plan(plan, records)
        assert sorted(plan.order.tolist()) == list(range(records.tasks))


def test_a_loop_over_a_mesh_is_coloured_and_keeps_its_order_within_chunks() -> None:
    tasks, width = 300_000, 500
    near = np.array([0, -width, -1, 1, width])
    rows = (np.arange(tasks)[:, None] + near) % tasks
    records = uniform([tasks], [0] * 5, rows, [True, False, False, False, False])
    plan = build_plan(records, threads=2)
    assert plan.strategy == "colouring", plan.explain()
    assert plan.parallelism > 16
    assert np.count_nonzero(np.diff(plan.order) != 1) < plan.jobs
    verify_plan(plan, records)
    rows = np.random.default_rng(0).permutation(tasks)[rows]  # the same mesh, its points numbered at random
    records = uniform([tasks], [0] * 5, rows, [True, False, False, False, False])
    assert build_plan(records, threads=2).strategy != "colouring"


def test_tasks_that_only_read_a_row_do_not_wait_for_each_other() -> None:
    tasks = np.arange(100_000)
    rows = np.stack([1 + tasks, np.zeros(len(tasks), int)], axis=1)  # each writes a row, and reads row 0
    rows[0] = 0
    plan = build_plan(uniform([len(tasks) + 1], [0, 0], rows, [True, False]), threads=2, strategy="wavefront")
    assert plan.parallelism > 3


@settings(max_examples=50, deadline=None)
@given(any_loops(), st.sampled_from([0, 1, 256]))
def test_chunks_with_many_readers_wait_for_what_they_must(records: AccessRecords, readers: int) -> None:
    with patch.multiple(chunks, CHUNKS=(16, 64), SMALLEST_CHUNK_NS=0.1, MAX_READERS=readers):
        plan = build_plan(records, threads=2, strategy="wavefront")
    verify_plan(plan, records)
    assert conflicts_in_loop_order(plan, records)


@settings(max_examples=100, deadline=None)
@given(any_loops(), st.sampled_from([1, 3, 50]), st.sampled_from([7, 1000]))
def test_ranges_of_rows_tell_all_dependences(records: AccessRecords, size: int, piece: int) -> None:
    sparse = as_sparse(records)
    bounds = np.append(np.arange(0, sparse.tasks, size), sparse.tasks)
    ranges, marks, chunk = RowRanges.empty(len(bounds) - 1), Marks.of(sparse.tables), 0
    for first in range(0, sparse.tasks, piece):
        tasks = range(first, min(first + piece, sparse.tasks))
        accesses = slice(sparse.offsets[first], sparse.offsets[tasks.stop])
        counts = np.diff(sparse.offsets[first : tasks.stop + 1]).astype(np.int32)
        chunk = ranges.add(chunk, tasks, bounds, (counts, sparse.rows[accesses], sparse.tags[accesses]), marks)
        if chunk < 0:
            assert ranges_of(sparse, bounds) is None
            return
    whole = ranges_of(sparse, bounds)
    assert whole is not None
    assert all(
        np.array_equal(one, other) for one, other in zip(vars(whole).values(), vars(ranges).values(), strict=True)
    )
    plan = wavefront_of_ranges(bounds, ranges, 0.0)
    if plan is not None:
        verify_plan(plan, records)
        assert conflicts_in_loop_order(plan, records)


def test_of_a_long_loop_whose_order_counts_the_middle_is_looked_at_first() -> None:
    n = 6000
    chain = np.stack([np.arange(1, n + 1), np.arange(n)], axis=1)  # each task reads what the one before wrote
    apart = np.stack([np.arange(1, n + 1), np.zeros(n, int)], axis=1)
    for rows, in_order in ((chain, True), (chain, False), (apart, True)):
        records = uniform([n + 1], [0, 0], rows, [True, False])
        with patch.multiple(choice, SMALLEST_PART=512):
            plan = build_plan(records, loop(records, in_order=in_order), threads=2)
        assert ("of its middle" in plan.reason) == (rows is chain)


def test_other_strategies_do_not_keep_the_order() -> None:
    with pytest.raises(PlanError, match=r"order='sequential'.* wavefront"):
        build_plan(ratings(100, 5, 5), Loop(tasks=100, in_order=True), threads=2, strategy="rotation")


def test_a_grid_is_swept_by_a_wavefront_of_chunks() -> None:
    n = 500
    inner = np.arange(n * n).reshape(n, n)[1:-1, 1:-1].reshape(-1, 1)
    rows = inner + np.array([0, -1, 1, -n, n])
    records = uniform([n * n], [0] * 5, rows, [True, False, False, False, False])
    wide = type(records)((TableShape("W", n * n, 256),), records.access_tables, records.access_writes, records.rows)
    plan = build_plan(wide, loop(wide, in_order=True), threads=2)
    assert plan.strategy == "wavefront"
    assert plan.parallelism > 3
    verify_plan(plan, wide)


def test_few_writes_among_many_tasks_make_levels() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(60_000)[:, None], rng.integers(0, 60_000, (60_000, 6))], axis=1)
    plan = build_plan(
        uniform([60_000], [0] * 7, rows, [True] + [False] * 6), Loop(tasks=len(rows), in_order=True), threads=2
    )
    assert plan.strategy == "wavefront"
    assert "levels" in plan.reason


def test_tables_that_are_indexed_alike_rotate_together() -> None:
    rows = np.random.default_rng(0).integers(0, 3000, 20_000).repeat(4).reshape(-1, 4)
    tables = tuple(TableShape(f"W{copy}", 3000, 8) for copy in range(4))
    records = UniformRecords(tables, tuple(range(4)), (True,) * 4, rows)
    plan = build_plan(records, threads=2)
    assert plan.strategy == "rotation"
    assert plan.details.cells.shape[1] == 1
    verify_plan(plan, records)
    assert conflicts_in_loop_order(plan, records)


@pytest.mark.parametrize("strategy", ["auto", "wavefront", "components", "buckets"])
def test_accesses_that_may_all_be_skipped_can_be_planned(strategy: str) -> None:
    records = edges(3000, 200)
    verify_plan(build_plan(records, loop(records, certain_share=0.0), threads=2, strategy=strategy), records)


def test_data_in_loop_order_are_read_in_loop_order() -> None:
    records = edges(50_000, 2000)
    assert build_plan(records, threads=2).strategy == "buckets"
    assert build_plan(records, loop(records, streams=True), threads=2).strategy in ("wavefront", "sequential")


def test_locks_are_striped_over_many_rows() -> None:
    rng = np.random.default_rng(0)
    records = uniform([10**6] * 2, [0, 1], rng.integers(0, 10**6, (5000, 2)))
    plan = build_plan(records, threads=2, strategy="locked")
    assert plan.locks.count == 2**16
    assert len(np.unique(plan.locks.ids)) > 9000
    verify_plan(plan, records)


def test_one_shared_row_runs_sequentially_and_says_so() -> None:
    plan = build_plan(uniform([1], [0], np.zeros(500)), threads=4)
    assert plan.strategy == "sequential"
    assert plan.jobs == 1
    assert plan.parallelism == 1.0
    assert plan.order.tolist() == list(range(500))
    assert "100% of the sampled tasks touch row 0 of W" in plan.reason


def test_empty_loops() -> None:
    for records in (uniform([5, 5], [0, 1], []), sparse([5], []), uniform([], [], np.empty((0, 0)))):
        for strategy in ("auto", *STRATEGIES):
            plan = build_plan(records, threads=2, strategy=strategy)
            assert (plan.tasks, plan.jobs) == (0, 0)
            verify_plan(plan, records)


@pytest.mark.parametrize(
    ("records", "strategy", "words"),
    [
        (ratings(100, 5, 5), "independent", ["tasks write 5 rows of W", "rotation"]),
        (edges(100, 50), "rotation", ["2 rows of W", "buckets"]),
        (scattered(100, 50, 2), "rotation", ["varying numbers", "buckets"]),
        (scattered(100, 50, 9), "buckets", ["more than 4", "Use components, wavefront, sequential or locked"]),
        (uniform([9] * 4, [0, 1, 2, 3], np.arange(80).reshape(20, 4) % 9), "rotation", ["4 different", "up to 3"]),
    ],
)
def test_a_strategy_that_cannot_serve_says_why(records: AccessRecords, strategy: str, words: list[str]) -> None:
    with pytest.raises(PlanError) as error:
        build_plan(records, threads=2, strategy=strategy)
    for word in words:
        assert word in str(error.value)


def test_conflicts_are_named_by_table_row_and_tasks() -> None:
    records = sparse([5, 5], [[(1, 2, True)], [], [(1, 2, False)]])
    with pytest.raises(PlanError, match="tasks 0 and 2 both touch row 2 of H"):
        build_plan(records, threads=2, strategy="independent")


def test_bad_arguments_are_refused() -> None:
    records = ratings(10, 5, 5)
    with pytest.raises(PlanError, match="unknown strategy 'fast'"):
        build_plan(records, threads=2, strategy="fast")
    with pytest.raises(PlanError, match="at least 1 thread"):
        build_plan(records, threads=0)


@pytest.mark.parametrize("tasks", [100_000, 1_000_000])
def test_tasks_that_stream_through_memory_keep_their_order(tasks):
    """Running totals by group, written to one row for each task: any other order fetches each line several times."""
    rng = np.random.default_rng(0)
    sums, out = TableShape("sums", 1000, 8), TableShape("out", 4_000_000, 8)
    groups, places = rng.integers(0, 1000, tasks), np.arange(tasks)
    light = UniformRecords((sums, out), (0, 1), (True, True), np.stack([groups, places], axis=1).astype(np.int32))
    plan = build_plan(light, threads=2)
    assert plan.strategy == "sequential"
    assert "wait for memory" in plan.details.rejected["rotation"]
    users = TableShape("users", 100_000, 256)
    pairs = np.stack([groups, rng.integers(0, users.rows, tasks)], axis=1).astype(np.int32)
    heavy = UniformRecords((replace(sums, row_bytes=256), users), (0, 1), (True, True), pairs)
    assert build_plan(heavy, threads=2).strategy == "rotation"
