"""`strads train lda` on several nodes: the same topics, told once; interrupts, lost nodes."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from launching import assert_ended, needs_mpi, run_under_mpi, start_under_mpi
from outputs import lose_node_1, read_metrics, read_run

from strads.models import LatentDirichletAllocation

Strads = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--topics", 3, "--iterations", 12, "--seed", 3)  # priors are learnt in the tenth
UNBOUND = ["--bind-to", "none"]


def train(reviews: Path, out: Path, *options: object) -> list[str]:
    data = ("--data", reviews / "reviews.txt.gz", "--out", out)
    return ["train", "lda", *map(str, (*data, *options))]


@pytest.fixture(scope="module")
def alone(strads: Strads, reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one thread of one process."""
    out = tmp_path_factory.mktemp("runs") / "alone"
    done = strads(*train(reviews, out, *QUICK, "--threads", 1))
    assert done.returncode == 0, done.stderr
    return out


def assert_same(done: subprocess.CompletedProcess[str], out: Path, alone: Path, backend: str, nodes: int) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"{nodes} nodes of 1 thread each ({backend})" in done.stdout
    assert done.stdout.count("iteration 12/12") == 1
    with np.load(out / "model.npz") as ours, np.load(alone / "model.npz") as theirs:
        for table in ("offsets", "topics", "counts", "alpha"):
            assert ours[table].tobytes() == theirs[table].tobytes()
    assert (out / "topics.txt").read_text() == (alone / "topics.txt").read_text()
    for record, expected in zip(read_metrics(out), read_metrics(alone), strict=True):
        assert record["objective"] == pytest.approx(expected["objective"], rel=1e-9)
        assert record["samples"] == expected["samples"]
        assert [node["rank"] for node in record["nodes"]] == list(range(nodes))
    assert read_run(out)["cluster"]["backend"] == backend


def test_logical_nodes(strads: Strads, reviews: Path, alone: Path, tmp_path: Path) -> None:
    options = (*QUICK, "--backend", "threads", "--nodes", 3, "--threads", 1)
    assert_same(strads(*train(reviews, tmp_path, *options)), tmp_path, alone, "threads", 3)


@pytest.mark.slow
def test_ray(strads: Strads, reviews: Path, alone: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    options = (*QUICK, "--backend", "ray", "--nodes", 2, "--threads", 1)
    assert_same(strads(*train(reviews, tmp_path, *options)), tmp_path, alone, "ray", 2)


@pytest.mark.slow  # as `train mf` in test_nodes.py, and logical nodes above
@needs_mpi
def test_mpiexec_needs_no_options(reviews: Path, alone: Path, tmp_path: Path) -> None:
    arguments = train(reviews, tmp_path, *QUICK, "--threads", 1)
    done = run_under_mpi(2, "-m", "strads", *arguments, options=UNBOUND)
    assert_same(done, tmp_path, alone, "mpi", 2)


@pytest.mark.slow  # as `train mf` in test_nodes.py
@needs_mpi
def test_wrong_options_are_told_once(reviews: Path, tmp_path: Path) -> None:
    done = run_under_mpi(2, "-m", "strads", *train(reviews, tmp_path / "out", "--topics", 0), options=UNBOUND)
    assert done.returncode == 2
    assert done.stderr.count("strads: error:") == 1
    assert not (tmp_path / "out").exists()


def training_for_long(reviews: Path, out: Path, processes: int) -> subprocess.Popen[str]:
    """A job that trains until it is ended, in an iteration after the first."""
    arguments = train(reviews, out, "--topics", 3, "--iterations", 10_000_000)
    job = start_under_mpi(processes, "-m", "strads", *arguments, options=UNBOUND)
    deadline = time.monotonic() + 100
    while not (out / "metrics.jsonl").exists() or len((out / "metrics.jsonl").read_text().splitlines()) < 3:
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job


@pytest.mark.slow  # as `train mf` in test_nodes.py
@needs_mpi
def test_interrupting_the_driver_saves_the_iteration(reviews: Path, tmp_path: Path) -> None:
    job = training_for_long(reviews, tmp_path, 2)
    os.kill(read_run(tmp_path)["cluster"]["nodes"][0]["pid"], signal.SIGINT)
    output, _ = job.communicate(timeout=30)
    assert job.returncode == 130
    run = read_run(tmp_path)
    assert f"interrupted (SIGINT) after {run['iterations']} of" in output
    assert run["status"] == "interrupted"
    model = LatentDirichletAllocation.load(tmp_path / "model.npz")
    assert model.n_iter_ == run["model_iteration"] == run["iterations"] == len(read_metrics(tmp_path))
    assert model.topic_word_counts_.sum() == run["data"]["training_tokens"]


@pytest.mark.slow  # as `train mf` in test_nodes.py
@needs_mpi
def test_interrupting_mpiexec_keeps_the_metrics(reviews: Path, tmp_path: Path) -> None:
    job = training_for_long(reviews, tmp_path, 2)
    pids = [node["pid"] for node in read_run(tmp_path)["cluster"]["nodes"]]
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=20)
    assert job.returncode != 0
    assert_ended(pids)
    run = read_run(tmp_path)
    assert (run["status"], run["signal"]) == ("interrupted", "SIGTERM")
    assert len(read_metrics(tmp_path)) >= run["iterations"] >= 3
    # A quarter of a second may not be enough for the model.
    if run["model_iteration"] is not None:
        assert LatentDirichletAllocation.load(tmp_path / "model.npz").n_iter_ == run["model_iteration"]


@pytest.mark.slow  # as `train mf` in test_nodes.py
@needs_mpi
def test_a_lost_node_is_named_and_metrics_are_kept(reviews: Path, tmp_path: Path) -> None:
    job = training_for_long(reviews, tmp_path, 3)
    run = lose_node_1(job, tmp_path)
    assert len(read_metrics(tmp_path)) >= run["iterations"] >= 3


@pytest.mark.slow
@needs_mpi
def test_demo_under_mpiexec() -> None:
    done = run_under_mpi(2, "-m", "strads", "demo", "lda", options=UNBOUND)
    assert done.returncode == 0, done.stderr
    assert "yes: 2 nodes of 1 thread each and 1 thread give" in done.stdout
    assert done.stdout.count("Training on") == 1
