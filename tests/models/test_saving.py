"""Files that replace others: whole or not at all, with the permissions that the umask gives."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from strads.cli.run_directory import RunDirectory
from strads.models.model_files import load_model, replacing, save_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")


@pytest.fixture(params=[0o077, 0o027, 0o022, 0o002, 0o000], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_model_file_has_the_permissions_of_new_files(umask, tmp_path):
    path = tmp_path / "model.npz"
    for number in range(2):  # a new one, and one that is replaced
        save_model(path, "Kind", {"number": number}, {"values": np.arange(3)})
        assert permissions(path) == 0o666 & ~umask
        assert load_model(path, "Kind")[0] == {"number": number}
        path.chmod(0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_a_run_directory_has_the_permissions_of_new_files(umask, tmp_path):
    folder = tmp_path / "of" / "a run"
    with RunDirectory(folder, overwrite=False, texts=["topics.txt"]) as run:
        run.begin({})
        run.append({"epoch": 1})
        run.write("topics.txt", "a b c")
        save_model(run.model, "Kind", {}, {})
        run.finish("finished", {})
    found = {path.name: permissions(path) for path in folder.iterdir()}
    assert found == dict.fromkeys(("run.json", "metrics.jsonl", "topics.txt", "model.npz"), 0o666 & ~umask)
    assert permissions(folder) == 0o777 & ~umask


def test_what_fails_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "text"
    path.write_text("earlier")

    def be_interrupted() -> None:
        with replacing(path, encoding="utf-8") as file:
            file.write("later")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert path.read_text() == "earlier"
    assert [entry.name for entry in tmp_path.iterdir()] == ["text"]


def test_unfinished_files_cannot_be_foreseen(tmp_path, monkeypatch):
    """Nobody else can have put a link there: what is at that name is never overwritten."""
    monkeypatch.setattr("strads.models.model_files.secrets.token_hex", lambda count: "foreseen")
    other, planted = tmp_path / "other", tmp_path / ".text-foreseen"
    other.write_text("other")
    planted.symlink_to(other)
    with pytest.raises(FileExistsError), replacing(tmp_path / "text") as file:
        file.write(b"text")
    assert other.read_text() == "other"
    assert planted.is_symlink()
