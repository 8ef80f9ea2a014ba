"""Copies in plan order, against NumPy's fancy indexing."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from strads.cluster import ThreadTeam
from strads.engine.plans import gather
from strads.engine.plans.gather import gather_ragged, gather_rows

RECORD = np.dtype([("a", "i4"), ("b", "f4"), ("c", "u1")])  # 9 bytes
ALIGNED = np.dtype([("a", "i4"), ("b", "f8")], align=True)


@pytest.fixture(params=[1, 3])
def team(request) -> Iterator[ThreadTeam]:
    team = ThreadTeam(request.param)
    yield team
    team.close()


def random_table(rng: np.random.Generator, dtype: object, shape: tuple[int, ...]) -> np.ndarray:
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    return rng.integers(0, 255, size, np.uint8).view(dtype).reshape(shape)


def in_runs(indices: np.ndarray, runs: np.ndarray) -> np.ndarray:
    return np.concatenate([np.sort(part) for part in np.split(indices, runs[1:-1])])


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "?", RECORD, ALIGNED])
@pytest.mark.parametrize("row", [(), (3,), (2, 2)])
def test_rows_of_any_dtype_in_any_order(dtype, row, team):
    rng = np.random.default_rng(0)
    source = random_table(rng, dtype, (50, *row))
    indices = rng.integers(-50, 50, 200).astype(rng.choice(["i4", "i8"]))
    copied = gather_rows(source, indices, np.array([0, 200]), team)
    assert copied.dtype == source.dtype
    for field in source.dtype.names or (...,):  # what is in the padding of records does not matter
        assert copied[field].tobytes() == source[indices][field].tobytes()


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("ascending", [True, False])
def test_long_runs_stream_through_memory(jobs, ascending, team, monkeypatch):
    monkeypatch.setattr(gather, "_WINDOW_BYTES", 256)  # many windows, and runs long enough for them
    rng = np.random.default_rng(jobs)
    source = random_table(rng, "f4", (1000, 2))
    runs = np.linspace(0, 1000, jobs + 1).astype(np.int64)
    indices = rng.permutation(1000)
    merged: list[bool] = []
    real = gather._merge_runs
    monkeypatch.setattr(gather, "_merge_runs", lambda *a: merged.append(real(*a)) or merged[-1])
    if ascending:
        indices = in_runs(indices, runs)
    copied = gather_rows(source, indices, runs, team)
    assert copied.tobytes() == source[indices].tobytes()
    assert merged == [ascending]


def test_negative_and_repeated_indices_in_ascending_runs(team, monkeypatch):
    monkeypatch.setattr(gather, "_WINDOW_BYTES", 64)
    source = np.arange(100.0)
    for indices in (np.arange(-100, 0), np.repeat(np.arange(50), 2), np.arange(-50, 50)):
        copied = gather_rows(source, indices, np.array([0, 100]), team)
        assert np.array_equal(copied, source[indices])


@pytest.mark.parametrize("rows", [0, 5])
def test_no_rows(rows, team):
    source = np.zeros((rows, 3), "f4")
    nothing = np.zeros(0, np.int64)
    assert gather_rows(source, nothing, np.zeros(1, np.int64), team).shape == (0, 3)
    assert gather_rows(np.zeros((5, 0)), np.array([1, 2]), np.array([0, 2]), team).shape == (2, 0)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f8"])
def test_ragged_rows(dtype, team):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 6, 40)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = random_table(rng, dtype, (int(offsets[-1]),))
    rows = [values[a:b] for a, b in pairwise(offsets)]
    indices = rng.integers(-40, 40, 300)
    copied, copied_offsets = gather_ragged(values, offsets, indices, team)
    assert copied_offsets[0] == 0
    assert copied.dtype == values.dtype
    pieces = np.split(copied, copied_offsets[1:-1])
    assert len(pieces) == 300
    for piece, index in zip(pieces, indices, strict=True):
        assert piece.tobytes() == rows[index].tobytes()


def test_no_ragged_rows(team):
    values, offsets = gather_ragged(np.ones(3), np.array([0, 1, 3]), np.zeros(0, np.int64), team)
    assert len(values) == 0
    assert offsets.tolist() == [0]
