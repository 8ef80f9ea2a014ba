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
from strads.checkpoints.active import _sessions

if __name__ == "__main__":
    with strads.init("ray", nodes=2, threads=1, checkpoint_dir=sys.argv[2]) as runtime:
        pids = [node.pid for node in runtime.cluster.describe()]

        def kill():
            while not _sessions or _sessions[-1].position < 4:
                time.sleep(0.002)
            os.kill(pids[int(sys.argv[3])], signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        print("digest", PROGRAMS[sys.argv[1]]())
"""


@pytest.mark.parametrize(("name", "rank"), [("loops", 0), ("lda", 1)])
def test_a_killed_actor_is_replaced(name, rank, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = environment()
    tests = str(Path(__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, str(program), name, str(tmp_path / "checkpoint"), str(rank)],
        env=found | {"PYTHONPATH": os.pathsep.join([tests, found["PYTHONPATH"]])},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "The nodes are replaced" in done.stderr
    assert done.stdout.split("digest ")[1].strip() == run(name, None)
