"""explain() tells the facts."""

import numpy as np
from access_patterns import ratings, sparse

from strads.schedule.planner import build_plan


def test_rotation_is_explained() -> None:
    lines = build_plan(ratings(100_000, 3000, 2000), threads=2).explain().splitlines()
    assert "strategy: rotation" in lines
    assert "tasks: 100,000" in lines
    assert "jobs: 1,024" in lines
    assert "stages: 32" in lines
    assert "blocks: 32 of W, 32 of H" in lines
    assert any(line.startswith("parallelism: 2") or line.startswith("parallelism: 3") for line in lines)
    assert any(line.startswith("work of a job: heaviest") for line in lines)
    assert "not independent: 100000 tasks write 3000 rows of W: some row is shared" in lines


def test_locks_and_sequences_are_explained() -> None:
    rng = np.random.default_rng(0)
    records = sparse([100], [[(0, int(r), True) for r in rng.integers(0, 100, 12)] for _ in range(3000)])
    assert "locks: 128; the result depends on timing" in build_plan(records, threads=2, strategy="locked").explain()
    text = build_plan(records, threads=2).explain()
    assert "strategy: sequential" in text
    for strategy in ("independent", "rotation", "buckets", "components", "wavefront"):
        assert f"not {strategy}: " in text


def test_an_empty_plan_is_explained() -> None:
    assert "tasks: 0" in build_plan(sparse([5], []), threads=2).explain()
