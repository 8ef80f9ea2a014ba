"""Cuts, chains, packing and grouping on their own."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strads.engine.plans.gather import as_records
from strads.schedule.kernels.counting_sort import PlanOrderCopy, count_keys, group_by_key, sort_groups
from strads.schedule.kernels.packing import pack
from strads.schedule.kernels.parallel import sequential
from strads.schedule.kernels.streaming import begins_line, empty_lines
from strads.schedule.loop import Loop
from strads.schedule.records.access import TableShape, UniformRecords
from strads.schedule.strategies.blocks import apportion, equal_work_cuts
from strads.schedule.strategies.precedence import barriers, chain, heaviest_chain
from strads.schedule.strategies.problem import Problem


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300), st.integers(1, 40))
def test_cuts_cover_all_rows_in_balance(work: list[int], blocks: int) -> None:
    bounds = equal_work_cuts(np.array(work), blocks)
    assert (bounds[0], bounds[-1]) == (0, len(work))
    assert np.all(np.diff(bounds) > 0)
    loads = np.add.reduceat(np.array(work), bounds[:-1])
    assert len(loads) <= blocks
    assert loads.max() <= sum(work) / blocks + 3 * max(work)
    assert sum(work) == 0 or np.all(loads > 0)


def test_cuts_follow_work_not_length() -> None:
    work = np.array([100] + [1] * 300)
    assert equal_work_cuts(work, 4).tolist() == [0, 1, 101, 201, 301]
    assert equal_work_cuts(np.array([5, 5]), 4).tolist() == [0, 1, 2]
    assert equal_work_cuts(np.array([0, 0, 0]), 4).tolist() == [0, 3]
    loads = np.add.reduceat(np.arange(10_000), equal_work_cuts(np.arange(10_000), 32)[:-1])
    assert loads.max() / loads.min() < 1.02


def test_blocks_are_shared_in_proportion_to_work() -> None:
    assert apportion(np.array([300, 100, 0, 1]), 8).tolist() == [5, 2, 0, 1]
    assert apportion(np.array([0, 0]), 8).tolist() == [0, 0]


def test_chain_links_neighbours_once() -> None:
    found = chain(np.array([[0, 1], [1, 0], [0, -1], [1, 1]], np.int32), 2)
    assert found.predecessors.tolist() == [0, 1, 1, 1]
    assert found.successors.tolist() == [1, 2, 3]
    assert found.successor_offsets.tolist() == [0, 1, 3, 3, 3]
    work = np.array([1, 2, 3, 4])
    assert heaviest_chain(work, found.successor_offsets, found.successors) == 7


def test_barriers_close_stages() -> None:
    found = barriers([2, 1])
    assert found.predecessors.tolist() == [0, 0, 2, 1, 1]
    assert found.successors.tolist() == [2, 2, 3, 4]
    assert found.successor_offsets.tolist() == [0, 1, 2, 3, 4, 4]


@settings(deadline=None)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=100), st.integers(1, 8))
def test_packing_is_balanced(work: list[int], bins: int) -> None:
    pieces = np.array(work, np.int64)
    bin_of, load = pack(pieces, bins)
    assert np.array_equal(np.bincount(bin_of, pieces, bins), load)
    assert load.max() <= max(4 / 3 * max(-(-pieces.sum() // bins), pieces.max()), pieces.max() * 2)


def test_packing_many_light_pieces() -> None:
    work = np.random.default_rng(0).integers(1, 20, 50_000)
    work[7] = 100_000
    bin_of, load = pack(work, 8)
    assert np.array_equal(np.bincount(bin_of, work, 8), load)
    assert load.max() <= max(100_000, work.sum() / 8) + 20


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=200), st.integers(1, 4))
def test_grouping_is_stable(keys: list[int], chunks: int) -> None:
    array = np.array(keys, np.uint16)
    bounds = np.arange(chunks + 1) * len(array) // chunks
    counts = np.zeros((chunks, 10), np.int32)
    for c in range(chunks):
        count_keys(array, bounds[c], bounds[c + 1], counts[c])
    wanted = np.random.default_rng(0).permutation(10)
    order, offsets = group_by_key(array, counts, wanted, bounds, sequential)
    expected = [task for key in wanted for task in range(len(keys)) if keys[task] == key]
    assert order.tolist() == expected
    assert np.diff(offsets).tolist() == [keys.count(int(key)) for key in wanted]


@settings(deadline=None)
@given(
    keys=st.lists(st.integers(0, 5), max_size=700),
    row_bytes=st.sampled_from([1, 4, 7, 12, 16, 24, 64, 100]),
    chunks=st.integers(1, 4),
    misplaced=st.booleans(),
)
def test_rows_are_copied_while_tasks_are_grouped(keys: list[int], row_bytes: int, chunks: int, misplaced: bool) -> None:
    array, tasks = np.array(keys, np.uint16), len(keys)
    bounds = np.arange(chunks + 1) * tasks // chunks
    counts = np.array([np.bincount(array[bounds[c] : bounds[c + 1]], minlength=6) for c in range(chunks)], np.int32)
    source = np.random.default_rng(0).integers(0, 256, tasks * row_bytes, np.uint8).view(f"V{row_bytes}")
    rows = as_records(source) if tasks else source.view([("bytes", "u1", (row_bytes,))])
    memory = empty_lines((tasks + 1,), rows.dtype)
    memory.view(np.uint8)[:] = 7
    copied = PlanOrderCopy.of(rows, memory[1:] if misplaced else memory[:-1])
    order, _ = group_by_key(array, counts, np.arange(6), bounds, sequential, copied)
    assert np.array_equal(order, np.argsort(array, kind="stable"))
    outside = memory[:1] if misplaced else memory[-1:]
    assert np.all(outside.view(np.uint8) == 7), "nothing is written beyond the rows"
    if order is copied.order:
        assert np.array_equal(copied.target.view(np.uint8), rows[order].view(np.uint8))
    else:
        assert misplaced or tasks == 0
        assert np.all(memory.view(np.uint8) == 7)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    largest=st.sampled_from([0, 1, 7, 2047, 2048, 100_000, 2**31 - 1]),
    column=st.integers(0, 1),
    chunks=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_groups_are_sorted_by_a_number_of_each_task(
    sizes: list[int], largest: int, column: int, chunks: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    numbers = random.integers(0, largest, (sum(sizes), 2), endpoint=True).astype(np.int32)
    if largest > 7:  # some are equal
        numbers[::3] = largest // 2
    order, offsets = random.permutation(sum(sizes)).astype(np.int32), np.concatenate([[0], np.cumsum(sizes)])
    groups = [order[first:last].copy() for first, last in pairwise(offsets)]
    sort_groups(order, offsets, numbers.ravel(), 2, column, chunks, sequential)
    expected = [group[np.argsort(numbers[group, column], kind="stable")] for group in groups]
    assert np.array_equal(order, np.concatenate(expected))


def test_groups_of_numbers_beyond_32_bits_are_sorted() -> None:
    numbers = np.array([7, 3, 9, 3]) + 2**40
    order = np.array([2, 0, 1, 3])
    sort_groups(order, np.array([0, 4]), numbers, 1, 0, 1, sequential)
    assert order.tolist() == [1, 3, 0, 2]


def test_rows_too_long_for_the_buffers_are_not_copied_while_tasks_are_grouped() -> None:
    rows = as_records(np.zeros((100, 4096), np.uint8))
    copied = PlanOrderCopy.of(rows, as_records(empty_lines((100, 4096), np.uint8)))
    keys = np.arange(100, dtype=np.uint16)
    order, _ = group_by_key(keys, np.ones((1, 100), np.int32), np.arange(100), np.array([0, 100]), sequential, copied)
    assert order is not copied.order


@given(st.integers(0, 5), st.integers(0, 70), st.sampled_from(["u1", "f4", "i8", "f4,i4,f4"]))
def test_empty_lines_begin_lines(rows: int, columns: int, dtype: str) -> None:
    array = empty_lines((rows, columns), dtype)
    assert array.shape == (rows, columns)
    assert array.dtype == np.dtype(dtype)
    assert array.size == 0 or begins_line(array)
    assert array.flags.c_contiguous
    assert array.flags.writeable


@pytest.mark.parametrize("period", [1, 8, 512, 4096])
def test_tables_of_long_loops_are_cut_by_the_accesses_of_some_tasks(period: int) -> None:
    tasks, rows, blocks = 1 << 21, 1000, 32
    random = np.random.default_rng(0)
    # Stretches of tasks touch the lower and the upper half of the table in turn: a regular sample would see one half.
    half = np.arange(tasks) // period % 2
    touched = (random.integers(0, rows // 2, tasks) + rows // 2 * half).astype(np.int32)
    records = UniformRecords((TableShape("x", rows, 4),), (0,), (True,), touched[:, None])
    problems = [Problem.of(records, Loop(tasks=records.tasks), threads) for threads in (1, 2, 5)]
    work = problems[0].sampled_row_work
    assert tasks / 8 < work.sum() < tasks / 2
    assert all(np.array_equal(problem.sampled_row_work, work) for problem in problems)
    cuts = equal_work_cuts(work, blocks)
    assert len(cuts) == blocks + 1
    loads = np.add.reduceat(problems[0].row_work, cuts[:-1])
    assert loads.max() < 1.15 * tasks / blocks
