"""What becomes of a run when the disk is full, its reader ends, its terminal is closed, or its score fails."""

import errno
import json
import os
import signal
import subprocess
import sys
from typing import ClassVar

import pytest
from outputs import read_run

from strads.cli.run_directory import RunDirectory
from strads.cli.snapshots import Snapshots
from strads.cli.table_output import Output
from strads.cli.terminal import OutputGoneError
from strads.models import MatrixFactorization

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and files of POSIX")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    """From now on no file can replace another."""

    def refuse(number: int) -> None:
        raise FULL

    patch.setattr("strads.models.model_files.os.fsync", refuse)


def test_the_outcome_is_recorded_on_a_full_disk(tmp_path, monkeypatch):
    with RunDirectory(tmp_path, overwrite=False) as run:
        run.begin({"command": "train"})
        fill_disk(monkeypatch)
        run.finish("failed", {"error": "a reason" * 100})
    assert (read_run(tmp_path)["status"], read_run(tmp_path)["command"]) == ("failed", "train")


def test_metrics_end_with_a_whole_line_and_go_on_when_there_is_room(tmp_path):
    class Full:
        """A file that takes ten bytes, then none."""

        def __init__(self, file):
            self.file, self.room = file, 10

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data: bytes) -> int:
            if not self.room:
                raise FULL
            count, self.room = self.file.write(data[: self.room]), 0
            return count

    history = [{"iteration": number} for number in (1, 2, 3)]
    with RunDirectory(tmp_path, overwrite=False) as run:
        run.begin({})
        run.append(history[0])
        file = run._metrics
        run._metrics = Full(file)
        run.append(history[1])
        assert (tmp_path / "metrics.jsonl").read_text() == '{"iteration": 1}\n'
        run.append(history[2])
        run._metrics = file
        run.complete(history)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history


def test_a_snapshot_that_fails_leaves_the_earlier_one_and_training_goes_on(tmp_path, monkeypatch):
    class Model:
        n_iter_ = 1
        attempts: ClassVar[list[int]] = []

        def save(self, path):
            self.attempts.append(self.n_iter_)
            if self.n_iter_ == 2:
                raise FULL

    monkeypatch.setattr("strads.cli.snapshots._FIRST", 0.0)
    snapshots = Snapshots(Model(), tmp_path / "model")
    snapshots.take_if_due()
    Model.n_iter_ = 2
    snapshots._due = 0.0
    snapshots.take_if_due()
    assert (snapshots.epoch, Model.attempts) == (1, [1, 2])


def test_a_model_that_cannot_be_saved_is_saved_elsewhere(strads, files, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = MatrixFactorization.save

    def refuse(self, path):
        if path.parent.name == "run":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(self, path)

    monkeypatch.setattr(MatrixFactorization, "save", refuse)
    done = strads("train", "mf", "--data", files / "plain.tsv.gz", "--epochs", 2, "--out", tmp_path / "run")
    assert done.returncode == 1
    (model,) = tmp_path.glob("strads-*/model.npz")
    assert "No space left on device" in done.stderr
    assert str(model) in done.stderr
    assert MatrixFactorization.load(model).n_iter_ == 2
    assert read_run(tmp_path / "run")["status"] == "failed"


def test_a_score_that_fails_is_a_note(strads, reviews, tmp_path, monkeypatch):
    def refuse(self, documents):
        raise MemoryError("no room")

    monkeypatch.setattr("strads.models.LatentDirichletAllocation.perplexity", refuse)
    data = ("--data", reviews / "reviews.txt.gz", "--topics", 3, "--iterations", 2)
    done = strads("train", "lda", *data, "--out", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "held-out data could not be evaluated: no room" in " ".join(done.stdout.split())
    assert (read_run(tmp_path / "run")["status"], read_run(tmp_path / "run")["not_measured"]) == ("finished", "no room")


@pytest.fixture
def training(files, tmp_path, environment):
    """A training that has done an epoch, and goes on."""
    options = ["--data", files / "plain.tsv.gz", "--out", tmp_path / "run", "--epochs", 10_000_000, "--rank", 4]
    command = [sys.executable, "-m", "strads", "train", "mf", *map(str, options)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # also if the tests run under nohup
    )
    for line in process.stdout:
        if line.startswith("epoch"):
            break
    yield process
    process.kill()
    process.wait()


def test_a_closed_terminal_ends_a_run_like_ctrl_c(training, tmp_path):
    training.send_signal(signal.SIGHUP)
    assert training.communicate(timeout=60)[1] == ""
    assert training.returncode == 130
    assert (read_run(tmp_path / "run")["status"], read_run(tmp_path / "run")["signal"]) == ("interrupted", "SIGHUP")
    MatrixFactorization.load(tmp_path / "run" / "model.npz")


def test_output_that_nobody_reads_ends_a_run_like_ctrl_c(training, tmp_path):
    training.stdout.close()
    training.wait(60)
    assert training.stderr.read() == ""
    assert training.returncode == 130
    assert (read_run(tmp_path / "run")["status"], read_run(tmp_path / "run")["signal"]) == ("interrupted", "SIGPIPE")
    MatrixFactorization.load(tmp_path / "run" / "model.npz")


@pytest.mark.parametrize("rows", [3, 300_000])
def test_a_table_that_nobody_reads_ends_the_command_like_ctrl_c(monkeypatch, rows):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        with pytest.raises(OutputGoneError):
            Output().write({"value": list(range(rows))}, "values")
