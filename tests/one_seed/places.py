"""Where models are fitted: in processes of their own, on threads, logical nodes, MPI and Ray."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from launching import ROOT, environment, run_under_mpi

_LIMIT = 3_600.0  # seconds


class Place(NamedTuple):
    """A backend, its nodes, and the threads of each."""

    backend: str
    nodes: int
    threads: int

    def __str__(self) -> str:
        return f"{self.backend} {self.nodes} x {self.threads}"


PLACES = (
    *(Place("threads", 1, threads) for threads in (1, 2, 3, 8, 16)),
    *(Place("threads", nodes, 1) for nodes in (2, 4)),
    *(Place("mpi", nodes, 1) for nodes in (1, 2, 3)),
    Place("ray", 2, 1),
)


def hashes(place: Place, models: Sequence[str], runs: int) -> dict[str, list[str]]:
    """Fit each model a number of times at a place; return the SHA-256 of every run."""
    arguments = [str(Path(__file__).with_name("fit.py")), *map(str, place), str(runs), *models]
    if place.backend == "mpi":
        ended = run_under_mpi(place.nodes, *arguments, timeout=_LIMIT)
    else:
        command = [sys.executable, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=_LIMIT)
    if ended.returncode != 0:
        raise RuntimeError(f"{place} ended with status {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    found: dict[str, list[str]] = json.loads(ended.stdout.splitlines()[-1])
    return found
