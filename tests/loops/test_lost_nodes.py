"""A node that is killed in the middle of an epoch: the driver says which, within the limit, and nobody stays behind."""

import os
import subprocess
import sys

import pytest
from launching import ROOT, assert_ended, environment, needs_mpi, run_under_mpi

_PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
import strads

def slow(k, ratings, W, H, rounds):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    for i in range(rounds):
        for f in range(len(w)):
            w[f] = 0.5 * w[f] + 0.1 * h[f]
            h[f] = 0.5 * h[f] + 0.1 * w[f]

folder = Path(sys.argv[2])
rng = np.random.default_rng(0)
data = np.zeros(50_000, [("user", "i4"), ("item", "i4")])
data["user"], data["item"] = rng.integers(0, 900, 50_000), rng.integers(0, 400, 50_000)
with strads.init(sys.argv[1], nodes=3, threads=1, timeout=20) as runtime:
    nodes = runtime.cluster.describe()
    (folder / "pids").write_text(" ".join(str(node.pid) for node in nodes))
    ratings = strads.dvector(data)
    W, H = strads.dvector.uniform((900, 8), seed=0), strads.dvector.uniform((400, 8), seed=1)
    strads.async_for(len(ratings), slow, ratings, W, H, 1)
    threading.Timer(1.0, lambda: os.kill(nodes[1].pid, signal.SIGKILL)).start()
    start = time.monotonic()
    try:
        while time.monotonic() - start < 30:
            strads.async_for(len(ratings), slow, ratings, W, H, 2000)
    except strads.NodeFailure as error:
        (folder / "error").write_text(f"{time.monotonic() - start:.1f} {error.rank} {error}")
        for look in (lambda: W[3], H.to_numpy):
            try:
                look()
            except strads.NodeFailure as later:
                with (folder / "later").open("a") as file:
                    print(later, file=file)
        raise
"""


def check(folder, status: int, output: str) -> None:
    assert (folder / "error").exists(), output
    seconds, rank, text = (folder / "error").read_text().split(maxsplit=2)
    assert rank == "1", text
    assert "node 1 (" in text
    assert float(seconds) < 15
    later = (folder / "later").read_text().splitlines()
    assert len(later) == 2
    assert all("was stored on the nodes and is lost with them: node 1 (" in text for text in later), later
    assert status != 0
    assert_ended([int(pid) for pid in (folder / "pids").read_text().split()])


@pytest.mark.slow
@needs_mpi
def test_a_process_of_mpiexec(tmp_path):
    (tmp_path / "program.py").write_text(_PROGRAM)
    ended = run_under_mpi(3, str(tmp_path / "program.py"), "mpi", str(tmp_path), timeout=60)
    check(tmp_path, ended.returncode, ended.stdout + ended.stderr)


@pytest.mark.slow
def test_an_actor_of_ray(tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "program.py").write_text(_PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), "ray", str(tmp_path)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=ROOT, env={**os.environ, **environment()}
    )
    check(tmp_path, ended.returncode, ended.stdout + ended.stderr)
