"""Memory of tables: zeros, copies, and rows whose memory is given back."""

import mmap

import numpy as np
import pytest

import strads
from strads.dds._memory import copied, release, zeros

MIB = 1 << 20


@pytest.mark.parametrize("rows", [0, 1, 2 * MIB // 24 - 1, 2 * MIB // 24 + 1, 5 * MIB // 24])
def test_arrays_begin_as_zeros_and_hold_what_is_written(rows: int) -> None:
    one, two = (zeros((rows, 3), np.dtype("f8")) for _ in range(2))
    assert one.shape == (rows, 3)
    assert one.flags.c_contiguous
    assert one.flags.writeable
    assert not one.any()
    one[...] = np.arange(rows * 3).reshape(rows, 3)
    assert not two.any()
    assert np.array_equal(one.reshape(-1), np.arange(rows * 3))


def test_a_kernel_may_lack_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345, raising=False)  # EINVAL, as such a kernel answers
    assert not zeros((3 * MIB,), np.dtype("u1")).any()


def test_large_arrays_begin_with_a_cache_line_each_another_of_its_page() -> None:
    arrays = [zeros((3 * MIB,), np.dtype("u1")) for _ in range(4)]
    starts = {array.ctypes.data % 4096 for array in arrays}
    assert len(starts) == 4
    assert all(start % 64 == 0 for start in starts)


@pytest.mark.parametrize("rows", [10, MIB])
def test_copies_are_cast_and_in_the_order_of_c(rows: int) -> None:
    source = np.arange(rows * 4, dtype="f8").reshape(4, rows).T
    copy = copied(source, np.dtype("f4"))
    assert copy.dtype == np.float32
    assert copy.flags.c_contiguous
    assert np.array_equal(copy, source.astype("f4"))
    source[0, 0] = 9
    assert copy[0, 0] == 0
    assert copied(source).dtype == source.dtype


def test_large_records_are_copied() -> None:
    source = np.zeros(400_000, [("user", "i4"), ("score", "f4")])
    source["user"] = np.arange(len(source))
    table = strads.dvector(source)
    assert np.array_equal(table.to_numpy(), source)
    assert np.array_equal(table.copy().to_numpy(), source)


@pytest.mark.parametrize("rows", [100, MIB])
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.25, 0.25), (0.1, 0.9), (0.5001, 0.5002)])
def test_released_rows_are_zeros_and_the_others_stay(rows: int, part: tuple[float, float]) -> None:
    array = zeros((rows, 3), np.dtype("i4"), reserve=False)
    array[...] = 7
    low, high = (int(share * rows) for share in part)
    release(array, low, high)
    assert not array[low:high].any()
    assert np.all(array[:low] == 7)
    assert np.all(array[high:] == 7)
    array[...] = 8
    assert np.all(array == 8)


def test_a_table_larger_than_any_memory_is_refused() -> None:
    with pytest.raises(MemoryError):
        strads.dvector.zeros(1 << 50)
