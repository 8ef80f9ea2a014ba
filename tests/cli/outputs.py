"""What a command has left in its folder and said, and what all commands have in common there."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from launching import assert_ended


def read_run(out: Path) -> dict[str, Any]:
    """Return the record of a run."""
    return json.loads((out / "run.json").read_text())


def read_metrics(out: Path) -> list[dict[str, Any]]:
    """Return the records of its epochs or iterations."""
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def refusal(done: subprocess.CompletedProcess[str], out: Path) -> str:
    """Return what standard error says; checks what holds for every refusal."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("strads: error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert not out.exists()
    return done.stderr


def lose_node_1(job: subprocess.Popen[str], out: Path) -> dict[str, Any]:
    """Kill node 1 of a run; returns the record, after checking that it names the node."""
    nodes = read_run(out)["cluster"]["nodes"]
    os.kill(nodes[1]["pid"], signal.SIGKILL)
    job.communicate(timeout=30)
    assert job.returncode != 0
    assert_ended([node["pid"] for node in nodes])
    run = read_run(out)
    assert run["status"] == "failed"
    assert f"node 1 ({nodes[1]['host']}) is lost" in run["error"]
    return run
