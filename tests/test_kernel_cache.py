"""Programs run where compiled kernels cannot be kept: they are compiled again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits and permissions are those of POSIX")

SOURCE = Path(__file__).parents[1] / "src"
PROGRAM = """
{before}
import numpy as np
from strads.models.kernels.penalties import soft_threshold
{kernel}
print(soft_threshold(3.0, 1.0))
"""
NO_PLACE = """
import tempfile
from numba.core import caching
def refuse(self):
    raise OSError(30, "Read-only file system")
caching._CacheLocator.ensure_cache_path = refuse
"""
OWN = """
import sys
from numba import njit
def own(x):
    return x
try:
    njit(cache=True)(own)
except RuntimeError as error:
    print(error, file=sys.stderr)
"""
FULL_DISK = "import resource, sys\nsys.dont_write_bytecode = True\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"


def run(before: str, kernel: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)} | variables
    program = PROGRAM.format(before=before, kernel=kernel)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=environment, check=False
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("before", [NO_PLACE, FULL_DISK])
def test_a_program_runs_without_a_place_for_its_kernels(before, tmp_path):
    done = run(before, OWN if before == NO_PLACE else "", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
    # Functions of the program behave as numba has it.
    assert ("cannot cache function" in done.stderr) == (before == NO_PLACE)


@pytest.mark.slow
def test_damaged_files_are_as_good_as_none(tmp_path):
    assert run("", NUMBA_CACHE_DIR=str(tmp_path)).stdout == "2.0\n"
    files = [path for path in tmp_path.rglob("*.nb*") if "soft_threshold" in path.name]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:10])
    done = run("", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")
