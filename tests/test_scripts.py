"""Benchmarks and experiments run, on as little data as they take; of those with a peer or much data, the options."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from launching import environment, needs_mpi

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
SCRIPTS = sorted(path for folder in ("benchmarks", "experiments") for path in (ROOT / folder).glob("[!_]*.py"))

SMALL = {
    "async_for_mf": "--ratings 50000 --ranks 4 --epochs 1",
    "backends": "--ratings 50000 --ranks 4 --epochs 1 --rounds 1 --only 'threads 1 x 2' 'mpi 2 x 1'",
    "guards": "--tasks 2000 --seconds 0.01",
    "lda_backends": "--topics 4 --iterations 7 --rounds 1 --only 'threads 1 x 2' 'threads 2 x 1'",
    "loops": "--only histogram --scale 0.01 --epochs 1",
    "mf_ccd": "--ratings 50000 --rank 4 --repeats 1 --without-peer",
    "mpi_by_hand": "--ratings 50000 --ranks 4 --epochs 1 --rounds 1",
    "parameter_server": "--only process --count 10 --rounds 1",
    "partial_fit": "--scale 0.001 --batches 2",
    "regression": "--problems genes --ratios 10 --sides strads --limit 5 --repeats 1",
    "sync_for": "--rows 2000 --features 10 --batches 64 --epochs 1",
    "synchronization": "--ratings 50000 --rank 4 --epochs 1 --part 1",
    "dynamic_pipelining": "--nodes 2 --samples 40 --features 240 --concurrency 8 --depths 1 2 --seeds 1 --seconds 2",
    "lda_progress": "--nodes 1 2 --topics 2 --iterations 1",
    "mf_progress": "--workers 1 2 --epochs 1 --steps 0.01",
    "staleness_profile": "--workers 2 --staleness 1 --histogram 1 --clocks 4 --clock-seconds 0.01",
    "staleness_robustness": "--workers 2 --staleness 1 --large --epochs 1 --seeds 1 --clock-seconds 0.005",
    "stragglers": "--workers 2 --staleness 1 --seconds 1 --clock-seconds 0.01",
    "uneven_convergence": "",
}
NEEDS_DATA = {"lda_backends": "imdb", "lda_progress": "imdb", "mf_progress": "ml-100k", "regression": "genes"} | {
    "uneven_convergence": "genes"
}


@needs_mpi
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(path: Path, tmp_path: Path) -> None:
    if path.stem in NEEDS_DATA and not (DATA / NEEDS_DATA[path.stem]).exists():
        pytest.skip(f"needs {NEEDS_DATA[path.stem]} in {DATA}")
    variables = environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    options = shlex.split(SMALL.get(path.stem, "--help"))
    done = subprocess.run(
        [sys.executable, str(path), *options], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    missing = done.stderr.rpartition("ModuleNotFoundError: ")[2]
    if done.returncode and missing != done.stderr and "strads" not in missing:
        pytest.skip(missing.strip())
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_choice_is_of_a_script() -> None:
    assert set(SMALL) | set(NEEDS_DATA) <= {path.stem for path in SCRIPTS}
