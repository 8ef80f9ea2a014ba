"""Start programs under the real `mpiexec`."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(_BESIDE) if _BESIDE.exists() else shutil.which("mpiexec")
MPI_MISSING = 'needs mpiexec and mpi4py: pip install "strads[mpi]"'

try:
    from importlib.util import find_spec

    HAS_MPI = MPIEXEC is not None and find_spec("mpi4py") is not None
except ImportError:
    HAS_MPI = False

needs_mpi = pytest.mark.skipif(not HAS_MPI, reason=MPI_MISSING)


def environment() -> dict[str, str]:
    """Return an environment in which `mpiexec` starts processes as root too, that import this source tree."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return os.environ | allowed | {"PYTHONPATH": path}


def mpi_command(processes: int, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs `python *arguments` on so many processes."""
    assert MPIEXEC is not None
    python = [sys.executable, *arguments]
    return [MPIEXEC, "--oversubscribe", *options, "-n", str(processes), *python]


def start_under_mpi(processes: int, *arguments: str, options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start `python *arguments` under mpiexec."""
    return subprocess.Popen(
        mpi_command(processes, arguments, options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    )


def run_under_mpi(
    processes: int, *arguments: str, options: Sequence[str] = (), timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments` under mpiexec to its end; what outlasts the limit is killed and fails the test."""
    job = start_under_mpi(processes, *arguments, options=options)
    try:
        out, err = job.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        job.terminate()  # mpiexec ends its processes
        out, err = job.communicate(timeout=30)
        pytest.fail(f"still running after {timeout} s\n{out}\n{err}")
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def assert_ended(pids: Iterable[int], seconds: float = 5.0) -> None:
    """Check that processes are gone, or will be soon."""
    deadline = time.monotonic() + seconds
    left = set(pids)
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if _is_running(pid)}
        time.sleep(0.05)
    assert not left, f"processes are left: {left}"


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
