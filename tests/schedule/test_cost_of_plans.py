"""Plans are made where they gain more than they cost: what tasks use of rows, and how long planning takes, counts."""

import numpy as np
import pytest

from strads.schedule import loop_sample
from strads.schedule.loop import Loop
from strads.schedule.loop_sample import LoopSample, calls_of_planning
from strads.schedule.planner import build_plan
from strads.schedule.records.access import SparseRecords, TableShape, UniformRecords
from strads.schedule.records.hot_rows import sample

TASKS, ROWS, ACCESSES = 270_000, 100_000, 12


def light_loop() -> SparseRecords:
    """Tasks that write single numbers of a table in the cache."""
    rows = np.random.default_rng(0).integers(0, ROWS, TASKS * ACCESSES, dtype=np.int32)
    offsets = np.arange(TASKS + 1) * ACCESSES
    return SparseRecords((TableShape("x", ROWS, 8),), offsets, rows, np.ones(len(rows), np.uint8))


def one_job_of(records: SparseRecords, *, computes: bool) -> str:
    found = LoopSample.of(records, Loop(tasks=TASKS, computes=computes))
    assert found is not None
    return "" if found.one_job is None else found.one_job.reason


def test_a_plan_that_takes_as_long_as_many_calls_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    records = light_loop()
    monkeypatch.setattr(loop_sample, "TOO_MANY_CALLS", 30)
    assert one_job_of(records, computes=False) == ""
    monkeypatch.setattr(loop_sample, "TOO_MANY_CALLS", 20)
    assert "as long as 26 calls or more; strategy='components' asks for it anyway" in one_job_of(
        records, computes=False
    )
    assert one_job_of(records, computes=True) == ""  # what tasks compute may take any time


def test_rows_that_tasks_only_read_count_like_those_that_they_write() -> None:
    records = light_loop()
    loop = Loop(tasks=TASKS)
    reading = SparseRecords(records.tables, records.offsets, records.rows, records.tags.copy())
    reading.tags[1:] = 0
    assert calls_of_planning(sample(reading), loop, "components") == calls_of_planning(
        sample(records), loop, "components"
    )


@pytest.mark.parametrize(("most_used", "strategy"), [(64, "sequential"), (None, "buckets")])
def test_what_tasks_use_of_long_rows_counts(most_used: int | None, strategy: str) -> None:
    """Particles on a grid: each adds to cells of two rows, and to a row of its own, beside that of another."""
    cells = np.random.default_rng(0).integers(0, 256, 1_000_000)
    rows = np.stack([cells, cells + 1, np.arange(len(cells))], axis=1).astype(np.int32)
    tables = TableShape("grid", 257, 2056, most_used=most_used), TableShape("particles", 50_000_000, 16)
    plan = build_plan(UniformRecords(tables, (0, 0, 1), (True, True, True), rows), threads=2)
    assert plan.strategy == strategy
