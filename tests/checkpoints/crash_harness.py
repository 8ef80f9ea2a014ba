"""Ends programs at random moments until they have finished: what they learn must be what they learn without.

Most are killed by SIGKILL, some end themselves after SIGTERM, with a last snapshot.

    python tests/checkpoints/crash_harness.py [--kills 300] [--programs mf lda …] [--backends threads mpi ray]

On threads, programs are forked from a process that has compiled everything, so that most of their time is spent
between operators, in writes and in renames. On MPI and Ray whole processes are started, and the driver or a node is
killed.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

_DOES_NOT_LISTEN = 213  # exit status of mpiexec when it cannot open its socket on a busy machine: nothing has run
BOUND_TO_NODES = {"lasso"}  # schedules with an instance on each node
_INTERRUPTED = 130  # exit status of `strads train`
_POLITELY = 0.2  # share of SIGTERM
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from checkpoints.crash_programs import COMMANDS, PROGRAMS, run  # noqa: E402


def in_a_fork(
    name: str, folder: str | None, nodes: int, end_after: float | None = None, number: int = signal.SIGKILL
) -> str | None:
    """Run a program in a child; returns its digest, or None if a signal ended it.

    Raises
    ------
    RuntimeError
        If it failed by itself.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            warnings.simplefilter("ignore")
            os.write(writing, run(name, folder, "threads", nodes).encode())
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException as error:
            os.write(writing, f"error: {type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(writing)
    if end_after is not None:
        time.sleep(end_after)
        os.kill(child, number)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if end_after is not None and os.waitstatus_to_exitcode(status) in (-number, 128 + number, _INTERRUPTED):
        return None
    if status != 0:
        raise RuntimeError(f"{name}: {text or status}")
    return text


def on_threads(name: str, kills: int, rng: random.Random) -> int:
    """End a program a number of times; returns how many signals came in time.

    Raises
    ------
    AssertionError
        If it learnt something else.
    """
    wanted = in_a_fork(name, None, 1)
    killed = 0
    while killed < kills:
        folder = tempfile.mkdtemp(prefix=f"crash-{name}-")
        start = time.perf_counter()
        if rng.random() < 0.5:  # how long it takes
            in_a_fork(name, folder + "/whole", 1)
        length = time.perf_counter() - start if os.path.exists(folder + "/whole") else 1.0
        for _ in range(rng.randrange(1, 8)):
            nodes = 1 if name in BOUND_TO_NODES else rng.choice([1, 1, 1, 2, 3])
            number = signal.SIGTERM if rng.random() < _POLITELY else signal.SIGKILL
            found = in_a_fork(name, folder + "/killed", nodes, rng.uniform(0.0, length), number)
            killed += found is None
            assert found in (None, wanted), f"{name}: {found} instead of {wanted}"
        found = in_a_fork(name, folder + "/killed", 1)
        assert found == wanted, f"{name}: {found} instead of {wanted} after kills; kept in {folder}"
        shutil.rmtree(folder)
    return killed


def in_processes(name: str, backend: str, kills: int, rng: random.Random) -> int:
    """The same on MPI or Ray, where a node may be killed as well; on Ray the program survives that."""
    wanted = in_a_fork(name, None, 2 if name in BOUND_TO_NODES else 1)
    killed = 0
    with tempfile.TemporaryDirectory(prefix=f"crash-{name}-") as folder:
        while True:
            is_last = killed >= kills
            nodes = 2 if name in BOUND_TO_NODES else rng.choice([2, 3])
            own = [sys.executable, "-W", "ignore", str(HERE / "crash_programs.py"), name, folder, "--backend", backend]
            command = [*own, "--nodes", str(nodes)]
            environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            if backend == "mpi":
                mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
                command = [str(mpiexec), "--oversubscribe", "-n", str(nodes), *command]
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process's last words
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
            if not is_last:
                if rng.random() < 0.75:
                    _wait_for_snapshot(process, Path(folder))
                    time.sleep(rng.expovariate(3.0))
                else:
                    time.sleep(rng.uniform(0.5, 6.0))
                victims = _processes(process.pid, own[3])
                if victims:
                    os.kill(rng.choice(victims), signal.SIGKILL)
                    killed += 1
            output = process.communicate(timeout=300)[0]
            lines = [line for line in output.decode().splitlines() if line.startswith("{")]
            if process.returncode == 0:
                found = json.loads(lines[-1])["digest"]
                assert found == wanted, f"{name} on {backend}: {found} instead of {wanted}"
                if is_last:
                    return killed
                shutil.rmtree(folder)
                os.mkdir(folder)
            elif is_last and process.returncode != _DOES_NOT_LISTEN:
                said.seek(0)
                raise AssertionError(f"{name} on {backend} failed without a kill:\n{said.read().decode()[-4000:]}")
            said.close()


def _wait_for_snapshot(process: "subprocess.Popen[bytes]", folder: Path, seconds: float = 60.0) -> None:
    """Wait until a program that has just been started writes a snapshot, or ends."""
    begin, earlier = time.monotonic(), set((folder / "snapshots").glob("*"))
    while process.poll() is None and time.monotonic() < begin + seconds:
        if set((folder / "snapshots").glob("*")) - earlier:
            return
        time.sleep(0.01)


def _processes(group: int, script: str) -> list[int]:
    """Return the processes of a session that run a script: the driver, and the nodes of MPI or Ray."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
            except (OSError, ValueError):
                continue
            if session == group and ((script in line and "mpiexec" not in line) or "ray::NodeActor" in line):
                found.append(int(entry.name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300, help="on threads, over all programs")
    parser.add_argument("--process-kills", type=int, default=3, help="of each program on MPI and Ray")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", nargs="+", default=[*PROGRAMS, *COMMANDS], choices=[*PROGRAMS, *COMMANDS])
    parser.add_argument("--backends", nargs="+", default=["threads", "mpi", "ray"])
    options = parser.parse_args()
    each = -(-options.kills // len(options.programs))
    total = 0
    for backend in options.backends:
        for name in options.programs:
            rng = random.Random(f"{options.seed} {name} {backend}")
            if name in COMMANDS and backend != "threads":
                continue
            if backend == "threads":
                count = on_threads(name, each, rng)
            else:
                count = in_processes(name, backend, options.process_kills, rng)
            total += count
            print(f"{backend:8} {name:20} {count:4} kills", flush=True)
    print(f"{total} kills, every result as without")


if __name__ == "__main__":
    main()
