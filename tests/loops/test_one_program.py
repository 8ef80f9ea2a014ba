"""One program, three backends, one to four nodes: the same bits in W and H."""

import subprocess
import sys

import pytest
from launching import ROOT, environment, needs_mpi, run_under_mpi

_PROGRAM = """
import hashlib, sys
import numpy as np
import strads

def sgd(k, ratings, W, H, lr, reg, loss):
    r = ratings[k]
    w, h = W[r.user], H[r.item]
    err = r.score
    for f in range(len(w)):
        err -= w[f] * h[f]
    for f in range(len(w)):
        wf = w[f]
        w[f] += lr * (err * h[f] - reg * wf)
        h[f] += lr * (err * wf - reg * h[f])
    loss.add(err * err)

def train():
    rng = np.random.default_rng(0)
    data = np.zeros(30_000, [("user", "i4"), ("item", "i4"), ("score", "f4")])
    data["user"], data["item"] = 2000 * rng.random(30_000) ** 2, 700 * rng.random(30_000) ** 2
    data["score"] = rng.random(30_000)
    ratings = strads.dvector(data)
    W = strads.dvector.uniform((2000, 16), high=0.1, seed=0)
    H = strads.dvector.uniform((700, 16), high=0.1, seed=1)
    for epoch in range(3):
        loss = strads.accumulator(0.0)
        stats = strads.async_for(range(len(ratings)), sgd, ratings, W, H, 0.01, 0.02, loss)
    digest = hashlib.sha256(W.to_numpy().tobytes() + H.to_numpy().tobytes() + repr(loss.value).encode())
    print("nodes", max(len(stats.nodes), 1), "digest", digest.hexdigest(), flush=True)

backend, *counts = sys.argv[1:]
for nodes in map(int, counts):
    with strads.init(backend, nodes=nodes, threads=1, timeout=60):
        train()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(_PROGRAM)
    return str(path)


def digests(output: str) -> dict[int, str]:
    """Number of nodes → digest of what was learnt."""
    lines = [line.split() for line in output.splitlines() if line.startswith("nodes ")]
    return {int(line[1]): line[3] for line in lines}


def run_here(program: str, *arguments: str, **variables: str) -> dict[int, str]:
    ended = subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        env=environment() | variables,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return digests(ended.stdout)


@pytest.fixture(scope="module")
def expected(program: str) -> str:
    """What one thread of one process learns."""
    found = run_here(program, "threads", "1", "2", "3", "4")
    assert list(found) == [1, 2, 3, 4]
    assert len(set(found.values())) == 1
    return found[1]


@pytest.mark.few(1)
@needs_mpi
@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_mpi(program, expected, processes):
    ended = run_under_mpi(processes, program, "mpi", str(processes), timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert digests(ended.stdout) == {processes: expected}


@pytest.mark.slow
@pytest.mark.parametrize("counts", [[1, 2, 3, 4]], ids=str)
def test_ray(program, expected, counts):
    """On as many raylets, each a machine as far as Ray knows."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(max(counts) - 1):
            cluster.add_node(num_cpus=1)
        found = run_here(program, "ray", *map(str, counts), RAY_ADDRESS=cluster.address)
    finally:
        cluster.shutdown()
    assert found == dict.fromkeys(counts, expected)
