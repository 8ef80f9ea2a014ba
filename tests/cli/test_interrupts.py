"""Ctrl-C and SIGTERM in mid-training."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from outputs import read_metrics, read_run

from strads.cli.interrupts import Interrupts
from strads.errors import NodeFailure
from strads.models import LatentDirichletAllocation, MatrixFactorization


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_learnt_is_saved(
    files: Path, tmp_path: Path, number: signal.Signals, environment: dict[str, str]
) -> None:
    options = ["--data", files / "plain.tsv.gz", "--out", tmp_path, "--epochs", 10_000_000, "--rank", 4]
    command = [sys.executable, "-m", "strads", "train", "mf", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch"):
            break
    process.send_signal(number)
    sent = time.monotonic()
    output, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert time.monotonic() - sent < 20
    assert errors == ""
    assert f"interrupted ({number.name})" in output
    run = read_run(tmp_path)
    assert (run["status"], run["signal"]) == ("interrupted", number.name)
    model = MatrixFactorization.load(tmp_path / "model.npz")
    metrics = read_metrics(tmp_path)
    assert 1 <= len(metrics) == model.n_iter_ == run["epochs"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "model.npz", "run.json"]


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_checkpoint_has_the_last_epoch(
    files: Path, tmp_path: Path, number: signal.Signals, environment: dict[str, str]
) -> None:
    options = ["--data", files / "plain.tsv.gz", "--out", tmp_path / "out", "--epochs", 10_000_000, "--rank", 4]
    options += ["--checkpoint", tmp_path / "checkpoint", "--checkpoint-every", 1_000_000]
    command = [sys.executable, "-m", "strads", "train", "mf", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch"):
            break
    time.sleep(0.3)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    epochs = read_run(tmp_path / "out")["epochs"]
    (name,) = (tmp_path / "checkpoint" / "snapshots").iterdir()
    assert int(name.name.partition("-")[0]) == epochs >= 1


def test_of_lost_nodes_the_latest_snapshot_stays(strads, reviews: Path, tmp_path: Path, monkeypatch) -> None:
    run_epoch = LatentDirichletAllocation._run_epoch

    def lost(self, training, number, seconds):
        if number == 4:
            signal.raise_signal(signal.SIGTERM)
            raise NodeFailure("node 1 is lost")
        return run_epoch(self, training, number, seconds)

    monkeypatch.setattr(LatentDirichletAllocation, "_run_epoch", lost)
    monkeypatch.setattr("strads.cli.snapshots._FIRST", 0.0)
    monkeypatch.setattr("strads.cli.snapshots._SHARE", 1e-9)  # a snapshot of the first iteration alone
    done = strads("train", "lda", "--data", reviews / "reviews.txt.gz", "--topics", 3, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (130, "")
    assert "interrupted (SIGTERM) after 3 of 100 iterations" in done.stdout
    assert "the model is that of iteration 1: later ones were lost with the nodes" in done.stdout
    assert "topics.txt" not in done.stdout
    assert (read_run(tmp_path)["iterations"], read_run(tmp_path)["model_iteration"]) == (3, 1)
    assert len(read_metrics(tmp_path)) == 3
    assert LatentDirichletAllocation.load(tmp_path / "model.npz").n_iter_ == 1


@pytest.mark.parametrize("form", ["module", "script"])
def test_ctrl_c_during_imports_is_a_line(tmp_path: Path, environment: dict[str, str], form: str) -> None:
    (tmp_path / "numba.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    (tmp_path / "strads").write_text("from strads.cli import main\nmain()\n")  # as pip writes it
    (tmp_path / "program.py").write_text("import strads\n")
    paths = {"PYTHONPATH": f"{tmp_path}:{environment['PYTHONPATH']}"}
    command = ["-m", "strads"] if form == "module" else [tmp_path / "strads"]
    options = {"env": environment | paths, "capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run([sys.executable, *command, "info"], **options)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "strads: interrupted\n")
    done = subprocess.run([sys.executable, tmp_path / "program.py"], **options)
    assert done.stderr.endswith("KeyboardInterrupt\n")  # a program may handle it


def test_the_first_signal_waits_for_the_check_and_a_later_one_does_not() -> None:
    seen = []
    with Interrupts() as signals:
        signals.on_first = seen.append
        with signals.deferred():
            signal.raise_signal(signal.SIGTERM)
            with signals.shielded():
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signals.check()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert (signals.received, seen) == ("SIGINT", ["SIGTERM"])


def test_a_signal_raises_at_once_when_nothing_defers_it() -> None:
    with Interrupts() as signals:
        with signals.deferred():
            pass
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
