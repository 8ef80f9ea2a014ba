"""A lost actor of Ray is replaced: the program notices nothing but a warning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints.crash_programs import run
from launching import environment

pytest.importorskip("ray")

PROGRAM = """
import os, random, signal, sys, threading, time
import strads
from checkpoints.crash_programs import PROGRAMS
from strads.checkpoints import active

if __name__ == "__main__":
    with strads.init("ray", nodes=2, threads=1, checkpoint_dir=sys.argv[2]) as runtime:
        pids = [node.pid for node in runtime.cluster.describe()]

        def kill():
            while active._session is None or active._session.position < 4:
                time.sleep(0.002)
            os.kill(pids[int(sys.argv[3])], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        print("digest", PROGRAMS[sys.argv[1]]())
"""


def finished(folder, program, *arguments):
    """Run a program to its end, in a process of its own."""
    (folder / "program.py").write_text(program)
    found = environment()
    tests = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), *arguments],
        env=found | {"PYTHONPATH": os.pathsep.join([tests, found["PYTHONPATH"]])},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rank"), [("loops", 0), ("lda", 1)])
def test_a_killed_actor_is_replaced(name, rank, tmp_path):
    done = finished(tmp_path, PROGRAM, name, str(tmp_path / "checkpoint"), str(rank))
    assert "The nodes are replaced" in done.stderr
    assert done.stdout.split("digest ")[1].strip() == run(name, None)


BETWEEN = """
import os, signal, sys
import numpy as np
import strads
from strads import models, ps

SENTENCES = [[f"w{number % 20}" for number in row] for row in np.random.default_rng(0).zipf(1.4, (50, 12))]

def step(k, W, H):
    W[k] += H[k % len(H)]
    H[k % len(H)] *= 0.75

def add(worker, table):
    table.inc(np.arange(4), 0.5)
    worker.clock()

def program(kill=lambda rank: None):
    W, H = strads.dvector.full((40, 2), 1.0), strads.dvector.full((10, 2), 2.0)
    table = ps.Table(4, 2, np.float64)
    seen = []
    model = models.Word2Vec(vector_size=8, min_count=1, epochs=2).fit(SENTENCES)
    model.vectors_ *= 2.0
    for number in range(6):
        model.partial_fit(SENTENCES)
        strads.async_for(range(40), step, W, H)
        ps.run(add, table, workers=2)
        if number == 1:
            kill(0)
            seen.append(W[3].tolist())  # the driver looks at rows of lost nodes
        if number == 2:
            kill(1)
            H[4] = 7.0  # or writes there
        if number == 3:
            table.write([1], [[5.0, 6.0]])  # on the nodes
        if number == 4:
            kill(0)
            seen.append(table.to_numpy().tolist())
    return repr((seen, W.to_numpy().tolist(), H.to_numpy().tolist(), table.to_numpy().tolist(),
                 model.vectors_.tolist()))

if __name__ == "__main__":
    plain = program()
    with strads.init("ray", nodes=2, threads=1, checkpoint_dir=sys.argv[1]) as runtime:
        def kill(rank):
            node = runtime.cluster.describe()[rank]
            os.kill(node.pid, signal.SIGKILL)
        print("same", program(kill) == plain)
"""


def test_an_actor_that_dies_between_operators_is_replaced(tmp_path):
    done = finished(tmp_path, BETWEEN, str(tmp_path / "checkpoint"))
    assert done.stderr.count("The nodes are replaced") == 3, done.stderr
    assert "same True" in done.stdout


MACHINES = """
import subprocess, sys, threading, time
import ray
from ray.cluster_utils import Cluster
import strads
from checkpoints.crash_programs import PROGRAMS
from strads.checkpoints import active

if __name__ == "__main__":
    machines = Cluster()
    first, second = (machines.add_node(num_cpus=2, object_store_memory=300 << 20) for _ in range(2))
    where = dict(address=machines.address, timeout=60)
    with strads.init("ray", nodes=4, threads=1, checkpoint_dir=sys.argv[1], **where) as runtime:

        def kill():
            while active._session is None or active._session.position < 4:
                time.sleep(0.002)
            second.all_processes["raylet"][0].process.kill()

        threading.Thread(target=kill, daemon=True).start()
        print("digest", PROGRAMS["loops"](), runtime.cluster.size)
    machines.shutdown()
"""


@pytest.mark.slow
def test_a_program_goes_on_with_the_machines_that_are_left(tmp_path):
    pytest.importorskip("ray.cluster_utils")
    done = finished(tmp_path, MACHINES, str(tmp_path / "checkpoint"))
    assert "The nodes are replaced" in done.stderr
    assert "continuing with 2 nodes instead of 4" in done.stderr
    digest, size = done.stdout.split("digest ")[1].split()[:2]
    assert digest == run("loops", None)
    assert int(size) == 2
