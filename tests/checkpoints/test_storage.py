"""Files of arrays, which must be the same whether or not they are written past the page cache; memory for copies."""

import errno
import os
import weakref

import numpy as np
import pytest

from strads.checkpoints import direct_files, storage
from strads.checkpoints.checksums import checksum_of
from strads.checkpoints.direct_files import BLOCK, aligned, write_direct
from strads.checkpoints.staging import Buffers, Stage
from strads.checkpoints.storage import Folder


@pytest.mark.parametrize("seed", range(20))
def test_direct_files_have_all_pieces(tmp_path, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 100, BLOCK, BLOCK + 1, 5 * BLOCK, (1 << 20) + 7, 2 << 20], rng.integers(1, 8))
    pieces = [aligned(length) if rng.random() < 0.5 else bytearray(length) for length in lengths]
    for piece in pieces:
        piece[:] = rng.bytes(len(piece)) if isinstance(piece, bytearray) else np.frombuffer(rng.bytes(len(piece)), "u1")
    path = tmp_path / "file"
    if not write_direct(str(path), pieces):
        pytest.skip("no direct writes here")
    assert path.read_bytes() == b"".join(bytes(piece) for piece in pieces)


def _arrays():
    rng = np.random.default_rng(0)
    return [rng.random(300_001), np.arange(7, dtype="i2"), np.zeros((0, 3)), rng.random((50, 33), dtype="f4")]


@pytest.mark.parametrize("error", [None, errno.EINVAL])
def test_large_arrays(tmp_path, monkeypatch, error):
    def fail(*arguments):
        raise OSError(error, os.strerror(error))

    if error is not None:
        monkeypatch.setattr(direct_files, "_write", fail)  # as file systems without direct writes
    folder = Folder(tmp_path)
    arrays = _arrays()
    names = folder.write_arrays("arrays/all", arrays)
    for name, array in zip(names, arrays, strict=True):
        folder.check_array(name, checksum_of(array))
        found = folder.read_array(name, checksum_of(array))
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
    with open(tmp_path / "arrays/all", "rb") as file:  # with NumPy alone
        file.seek(int(names[1].rpartition("@")[2]))
        assert np.load(file).tolist() == list(range(7))


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(direct_files, "_write", full)
    monkeypatch.setattr(storage, "_bring_to_disk", full)
    for arrays in (_arrays(), _arrays()[1:2]):
        with pytest.raises(OSError, match="No space"):
            Folder(tmp_path).write_arrays("arrays/all", arrays)
        assert list((tmp_path / "arrays").iterdir()) == []


@pytest.mark.parametrize("parts", [1, 3])
def test_every_stage_of_a_snapshot_uses_the_memory_of_the_one_before(parts):
    """In whatever order they end, and unless the snapshot before did not need it."""
    buffers, rng = Buffers(), np.random.default_rng(parts)
    sizes = [[1000 + part, 2000] for part in range(parts)]

    def snapshot(name, sizes):
        stages, taken = [Stage(name, buffers, f"-{part}") for part in range(len(sizes))], []
        for stage, of_stage in zip(stages, sizes, strict=True):
            for size in of_stage:
                stage.keep(np.zeros(size, "u1"))
            stage.copy()
            taken += stage._taken
            if rng.random() < 0.5:  # before the next one begins
                stage.release()
        for stage in rng.permutation(stages):
            stage.release()
        return {id(buffer): weakref.ref(buffer) for buffer in taken}

    first = snapshot("first", sizes)
    for number in range(5):
        assert snapshot(f"next {number}", sizes).keys() == first.keys()
    for name in ("small", "small again"):
        snapshot(name, [[1000]])
    assert sum(reference() is not None for reference in first.values()) == 1
