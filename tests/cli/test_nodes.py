"""The command line on several nodes: the same result, told once; interrupts, lost nodes."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from launching import assert_ended, needs_mpi, run_under_mpi, start_under_mpi
from outputs import lose_node_1, read_metrics, read_run

from strads.models import MatrixFactorization

Strads = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--rank", "4", "--epochs", "3", "--seed", "3")


def train(files: Path, out: Path, *options: object) -> tuple[str, ...]:
    return ("train", "mf", "--data", str(files / "plain.tsv.gz"), "--out", str(out), *map(str, options))


def under_mpi(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_under_mpi(processes, "-m", "strads", *arguments, options=["--bind-to", "none"])


@pytest.fixture(scope="module")
def alone(strads: Strads, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one thread of one process."""
    out = tmp_path_factory.mktemp("runs") / "alone"
    done = strads(*train(files, out, *QUICK, "--threads", 1))
    assert done.returncode == 0, done.stderr
    return out


def assert_same(out: Path, alone: Path, backend: str, nodes: int) -> None:
    with np.load(out / "model.npz") as ours, np.load(alone / "model.npz") as theirs:
        assert ours["users"].tobytes() == theirs["users"].tobytes()
        assert ours["items"].tobytes() == theirs["items"].tobytes()
    for record, expected in zip(read_metrics(out), read_metrics(alone), strict=True):
        for measure in ("rmse", "validation_rmse", "samples"):
            assert record[measure] == expected[measure]
        assert [node["rank"] for node in record["nodes"]] == list(range(nodes))
        assert all(node["bytes_sent"] > 0 for node in record["nodes"])
        assert len(expected["nodes"]) == 1
    where = read_run(out)["cluster"]
    assert where["backend"] == backend
    assert [node["rank"] for node in where["nodes"]] == list(range(nodes))
    assert where["hosts"] == [os.uname().nodename]


def test_logical_nodes(strads: Strads, files: Path, alone: Path, tmp_path: Path) -> None:
    done = strads(*train(files, tmp_path, *QUICK, "--backend", "threads", "--nodes", 3, "--threads", 1))
    assert done.returncode == 0, done.stderr
    assert "3 nodes of 1 thread each (threads)" in done.stdout
    assert_same(tmp_path, alone, "threads", 3)


@pytest.mark.slow
def test_ray(strads: Strads, files: Path, alone: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    done = strads(*train(files, tmp_path, *QUICK, "--backend", "ray", "--nodes", 2, "--threads", 1))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "2 nodes of 1 thread each (ray)" in done.stdout
    assert_same(tmp_path, alone, "ray", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--address", "127.0.0.1:1"), "address is an option of the backend 'ray'"),
        (("--backend", "mpi", "--nodes", 3), "start it with mpiexec -n 3"),
        (("--timeout", 0), "timeout=0"),
        (("--backend", "smoke"), "--backend"),
    ],
)
def test_places_that_make_no_sense(
    strads: Strads, strads_process: Strads, files: Path, tmp_path: Path, options: tuple[object, ...], problem: str
) -> None:
    run = strads
    if "mpi" in options:
        pytest.importorskip("mpi4py")
        run = strads_process  # a process initializes MPI at most once
    done = run(*train(files, tmp_path / "out", *options))
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_info_shows_logical_nodes(strads: Strads) -> None:
    done = strads("info", "--nodes", 2, "--threads", 3)
    assert done.returncode == 0, done.stderr
    assert re.search(r"runs on +2 nodes of 3 threads each, backend threads", done.stdout)
    assert len(re.findall(r"node \d +\S+, process \d+, \d+ cores?, 3 threads", done.stdout)) == 2
    for name in ("mpi4py", "ray"):
        assert name in done.stdout


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_mpiexec_needs_no_options(files: Path, alone: Path, tmp_path: Path, processes: int) -> None:
    done = under_mpi(processes, *train(files, tmp_path, *QUICK))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert_same(tmp_path, alone, "mpi", processes)
    assert "\x1b" not in done.stdout
    assert done.stdout.count("preparing") == 1
    assert done.stdout.count("epoch 3/3") == 1
    assert f"{processes} nodes of" in done.stdout


@pytest.mark.slow
@needs_mpi
def test_mpiexec_info_and_version() -> None:
    done = under_mpi(2, "info")
    assert done.returncode == 0, done.stderr
    pids = re.findall(r"node \d +\S+, process (\d+),", done.stdout)
    assert len(set(pids)) == 2
    assert "backend mpi" in done.stdout
    done = under_mpi(2, "--version")
    assert (done.returncode, done.stdout.count("strads"), done.stderr) == (0, 1, "")


@needs_mpi
@pytest.mark.parametrize(
    "options",
    [
        ("--data", "nowhere.csv"),
        pytest.param(("--rank", 0), marks=pytest.mark.slow),
        pytest.param(("--nodes", 3), marks=pytest.mark.slow),
    ],
)
def test_wrong_options_are_told_once(files: Path, tmp_path: Path, options: tuple[object, ...]) -> None:
    done = under_mpi(2, *train(files, tmp_path / "out", *options))
    assert done.returncode == 2
    assert done.stderr.count("strads: error:") == 1
    assert not (tmp_path / "out").exists()


def training_for_long(files: Path, out: Path, processes: int) -> subprocess.Popen[str]:
    """A job that trains until it is ended, in an epoch after the first."""
    options = ("--rank", 4, "--epochs", 10_000_000)
    job = start_under_mpi(processes, "-m", "strads", *train(files, out, *options), options=["--bind-to", "none"])
    deadline = time.monotonic() + 100
    while not (out / "metrics.jsonl").exists() or len((out / "metrics.jsonl").read_text().splitlines()) < 3:
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupting_mpiexec_saves_what_was_learnt(files: Path, tmp_path: Path, number: signal.Signals) -> None:
    job = training_for_long(files, tmp_path, 3)
    pids = [node["pid"] for node in read_run(tmp_path)["cluster"]["nodes"]]
    job.send_signal(number)
    job.communicate(timeout=20)
    assert job.returncode != 0
    assert_ended(pids)
    run = read_run(tmp_path)
    assert (run["status"], run["signal"]) == ("interrupted", "SIGTERM")
    metrics = read_metrics(tmp_path)
    assert len(metrics) == run["epochs"] >= 3
    # On a busy machine there may not be the time for more than the snapshot that there was.
    assert MatrixFactorization.load(tmp_path / "model.npz").n_iter_ == run["model_epoch"] <= run["epochs"]


@pytest.mark.slow
@needs_mpi
def test_interrupting_the_driver_alone_leaves_time_for_everything(files: Path, tmp_path: Path) -> None:
    job = training_for_long(files, tmp_path, 2)
    os.kill(read_run(tmp_path)["cluster"]["nodes"][0]["pid"], signal.SIGINT)
    output, _ = job.communicate(timeout=30)
    assert job.returncode == 130
    run = read_run(tmp_path)
    assert f"interrupted (SIGINT) after {run['epochs']} of" in output
    assert run["status"] == "interrupted"
    assert MatrixFactorization.load(tmp_path / "model.npz").n_iter_ == run["model_epoch"] == run["epochs"]
    assert len(read_metrics(tmp_path)) == run["epochs"]


@needs_mpi
def test_a_lost_node_is_named_and_metrics_are_kept(files: Path, tmp_path: Path) -> None:
    job = training_for_long(files, tmp_path, 3)
    run = lose_node_1(job, tmp_path)
    assert len(read_metrics(tmp_path)) >= run["epochs"] >= 3


@pytest.mark.slow
@needs_mpi
def test_demo_under_mpiexec() -> None:
    done = under_mpi(2, "demo", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"same result\?\s+yes: 2 nodes of 1 thread each and 1 thread", done.stdout)
    assert done.stdout.count("Training on") == 1
