"""Ctrl-C and SIGTERM in mid-training."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from outputs import read_metrics, read_run

from strads.cli.interrupts import Interrupts
from strads.models import MatrixFactorization


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
    epochs = json.loads((tmp_path / "out" / "run.json").read_text())["epochs"]
    (name,) = (tmp_path / "checkpoint" / "snapshots").iterdir()
    assert int(name.name.partition("-")[0]) == epochs >= 1


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
