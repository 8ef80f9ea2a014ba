"""The Ray backend, on a real cluster of several raylets: the tests of every backend, lost nodes, the end."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import strads
from strads.cluster import Node, Runtime
from strads.errors import ArgumentError, NodeFailure

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
ray_actor = pytest.importorskip("strads.cluster.ray.actor")
places = pytest.importorskip("strads.cluster.ray.places")

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"num_cpus": 2, "object_store_memory": 300 << 20}


@pytest.fixture(scope="module")
def machines() -> Iterator[object]:
    """Three raylets; node programs join them by address."""
    cluster = cluster_utils.Cluster()
    for _ in range(3):
        cluster.add_node(**MACHINE)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def pair(machines) -> Iterator[Runtime]:
    """Two nodes on different raylets."""
    with strads.init("ray", nodes=2, threads=1, timeout=60, address=machines.address) as runtime:
        yield runtime


def start(script: str, address: str = "", path: str = str(ROOT / "src")) -> subprocess.Popen[str]:
    """Start a driver of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "PYTHONPATH")}
    environment |= {"PYTHONPATH": path} | ({"RAY_ADDRESS": address} if address else {})
    command = [sys.executable, "-c", textwrap.dedent(script)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def finish(driver: subprocess.Popen[str], seconds: float = 90) -> str:
    """Return what a driver has printed; nothing may be on stderr."""
    try:
        out, err = driver.communicate(timeout=seconds)
    finally:
        driver.kill()
    assert driver.returncode == 0, err
    assert err == ""
    return out


def await_end(pids: list[int], seconds: float = 15) -> None:
    """Wait until processes are gone."""
    limit = time.monotonic() + seconds
    running = pids
    while running and time.monotonic() < limit:
        running = [pid for pid in running if is_running(pid)]
        time.sleep(0.05)
    assert running == []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def process_ids(runtime: Runtime) -> list[int]:
    return [info.pid for info in runtime.cluster.describe()]


def wait_for_ever(node: Node) -> None:
    node.comm.recv((node.rank + 1) % node.size)


# -- the same as on every backend --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "tests",
    [
        ["--every", "5", "tests/cluster", "tests/dds", "tests/schmp", "tests/ps/test_tables.py"],
        ["tests/cluster", "tests/dds", "tests/schmp", "tests/ps/test_tables.py"],
        # Engines and loops reach the backend by what is tested above.
        ["tests/loops", "tests/models", "tests/ps"],
    ],
    ids=["each fifth below", "below", "above"],
)
def test_the_tests_of_every_backend_pass(machines, tests):
    which = "nodes and not slow" if "--every" in tests else "nodes and (not slow or more)"
    command = [sys.executable, "-m", "pytest", "-m", which, "--backend", "ray", "--nodes", "2", *tests]
    environment = os.environ | {"RAY_ADDRESS": machines.address}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 10


def test_the_driver_is_not_a_node(pair):
    assert not pair.is_local
    assert os.getpid() not in process_ids(pair)
    assert len(set(process_ids(pair))) == 2
    assert pair.cluster.hosts == [info.host for info in pair.cluster.describe()]


def test_nodes_are_spread_over_the_machines_one_each_by_default(machines):
    with strads.init("ray", address=machines.address) as runtime:
        places = runtime.run(lambda node: ray.get_runtime_context().get_node_id())
        assert len(set(places)) == 3
        assert runtime.threads == 2


# -- messages ----------------------------------------------------------------------------------------------


def test_thousands_of_messages_keep_their_order_in_both_directions(pair):
    def program(node: Node) -> bool:
        other, count = 1 - node.rank, 3000
        table = np.zeros((count // 10, 7))
        arrivals = [node.comm.expect(row, other, 5) for row in table]
        for number in range(count):
            node.comm.send((number, np.full(number % 50, number)), other, tag=number % 3)
            if number % 10 == 0:
                node.comm.put(np.full(7, number / 10), other, 5)
        for number in range(count):
            got, array = node.comm.recv(other, tag=number % 3)
            array += 1  # what was received can be changed
            if got != number or len(array) != number % 50 or np.any(array != number + 1):
                return False
        for arrival in arrivals:
            node.comm.wait_arrival(arrival)
        return bool(np.all(table == np.arange(count // 10)[:, None]))

    assert pair.run(program) == [True, True]


@pytest.mark.few(2)
@pytest.mark.parametrize("nbytes", [99_000, 300_001, 3_000_000, 50_000_000])
def test_large_messages_and_puts(pair, nbytes):
    def program(node: Node) -> bool:
        other = 1 - node.rank
        generators = [np.random.default_rng(rank) for rank in (node.rank, other)]
        mine, theirs = (np.frombuffer(bytearray(rng.bytes(nbytes)), np.uint8) for rng in generators)
        out = np.empty(nbytes, np.uint8)
        arrival = node.comm.expect(out, other, 1)
        node.comm.send(mine, other)
        node.comm.put(mine, other, 1)
        received = node.comm.recv(other)
        node.comm.wait_arrival(arrival)
        return received.flags.writeable and np.array_equal(received, theirs) and np.array_equal(out, theirs)

    assert pair.run(program) == [True, True]


def test_large_arguments_and_results(pair):
    common = np.arange(1_000_000.0)
    own = [(np.full(2_000_000, float(rank)),) for rank in range(2)]

    def program(node: Node, common: np.ndarray, own: np.ndarray) -> np.ndarray:
        own += common[2]  # a node may change its own arguments
        return own

    for rank, result in enumerate(pair.run(program, common, each=own)):
        result += 1  # and the driver the results
        np.testing.assert_array_equal(result, np.full(2_000_000, rank + 3.0))
    assert own[1][0][0] == 1.0


# -- errors ------------------------------------------------------------------------------------------------


def test_an_error_stops_compiled_loops_elsewhere_and_is_raised_with_its_traceback(pair):
    def program(node: Node) -> None:
        if node.rank == 1:
            raise LookupError("the cause")
        stop: list[bool] = []
        with node.comm.calling_on_failure(lambda: stop.append(True)):
            while not stop:
                time.sleep(0.001)
        node.comm.check()

    start = time.monotonic()
    with pytest.raises(LookupError, match="the cause") as caught:
        pair.run(program)
    assert time.monotonic() - start < 5
    assert 'raise LookupError("the cause")' in "\n".join(caught.value.__notes__)
    assert pair.run(lambda node: node.comm.allreduce(1)) == [2, 2]


def test_what_cannot_be_sent_is_an_error_that_says_so(pair):
    with pytest.raises(strads.StradsError, match="result of node 0, a frame, cannot be sent"):
        pair.run(lambda node: sys._getframe())
    assert pair.run(lambda node: node.rank) == [0, 1]


def test_a_killed_actor_is_named_and_nothing_hangs_or_stays(pair):
    pids = process_ids(pair)

    def program(node: Node) -> None:
        if node.rank == 1:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_ever(node)

    start = time.monotonic()
    with pytest.raises(NodeFailure, match="node 1") as caught:
        pair.run(program)
    assert time.monotonic() - start < 10
    assert caught.value.rank == 1
    assert caught.value.host == pair.cluster.hosts[1]
    await_end(pids)
    with pytest.raises(NodeFailure, match=r"strads\.init"):
        pair.run(lambda node: node.rank)


def test_an_actor_killed_between_programs(pair):
    pids = process_ids(pair)
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(NodeFailure, match="node 0") as caught:
        pair.run(wait_for_ever)
    assert caught.value.rank == 0
    await_end(pids)


def test_a_lost_machine_is_named(machines):
    machine = machines.add_node(**MACHINE)
    with strads.init("ray", nodes=4, threads=1, timeout=60, address=machines.address) as runtime:
        pids = process_ids(runtime)
        places = runtime.run(lambda node: ray.get_runtime_context().get_node_id())
        lost = places.index(machine.node_id)
        killer = subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {machine.all_processes['raylet'][0].process.pid}"])
        start = time.monotonic()
        with pytest.raises(NodeFailure) as caught:
            runtime.run(wait_for_ever)
        assert time.monotonic() - start < 20
        assert caught.value.rank == lost
        await_end(pids)
    killer.wait()
    machines.remove_node(machine, allow_graceful=False)
    machines.wait_for_nodes(timeout=60)  # until Ray knows that it is gone: later tests count machines


@pytest.mark.parametrize("counts", [{"nodes": 7, "threads": 1}, {"nodes": 1, "threads": 3}])
def test_too_few_cpus(machines, counts):
    with pytest.raises(ArgumentError, match=r"3 machines with 2, 2, 2 CPUs, 6 of these free"):
        strads.init("ray", address=machines.address, **counts)
    assert not ray.is_initialized()


def test_machines_without_cpus_get_no_node(monkeypatch):
    """As the head of a cluster on Kubernetes."""
    cpus = [0, 4, 6, None]
    nodes = [{"NodeID": f"{n}", "Alive": n is not None, "Resources": {"CPU": n} if n else {}} for n in cpus]
    monkeypatch.setattr(places.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(
        places, "placement_group", lambda bundles, strategy: SimpleNamespace(bundles=bundles, wait=lambda seconds: True)
    )
    group, threads = places.reserve(None, None, 1.0)
    assert (group.bundles, threads) == ([{"CPU": 4}] * 2, 4)
    nodes[1:] = []
    with pytest.raises(ArgumentError, match="no machine of the Ray cluster has CPUs"):
        places.reserve(None, None, 1.0)


def test_no_cluster_at_the_address():
    with pytest.raises(ArgumentError, match=r"127\.0\.0\.1:9"):
        strads.init("ray", address="127.0.0.1:9")


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "strads.cluster.ray.cluster", raising=False)
    with pytest.raises(ArgumentError, match="pip install ray"):
        strads.init("ray")


# -- start and end -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_connection_of_the_user_stays(machines):
    script = """
        import logging, ray, strads
        ray.init(logging_level=logging.ERROR)
        for _ in range(2):
            with strads.init("ray", nodes=2, threads=1) as runtime:
                print(runtime.run(lambda node: node.rank))
        print(ray.is_initialized(), ray.available_resources()["CPU"] <= 6)
    """
    assert finish(start(script, machines.address)).splitlines() == ["[0, 1]", "[0, 1]", "True True"]


LOCAL = """
    import os, sys, time, strads
    def program(node):
        time.sleep(0.1)
        print("ready", flush=True)
        node.comm.recv(1 - node.rank)
    runtime = strads.init("ray", nodes=2, threads=2, timeout=60)
    print(*[info.pid for info in runtime.cluster.describe()], flush=True)
"""


def test_a_cluster_of_its_own_says_nothing_and_leaves_nothing():
    out = finish(start(LOCAL + "    print(runtime.run(lambda node: node.comm.allreduce(1)))", path="src"))
    pids, result = out.splitlines()
    assert "2" in result
    await_end([int(pid) for pid in pids.split()])


@pytest.mark.few(1)
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "sys.exit(0)"])
def test_no_process_survives_the_driver(end):
    later = f"""
    import threading
    threading.Timer(1.0, lambda: os.kill(os.getpid(), 9)).start() if "kill" in {end!r} else {end}
    runtime.run(program)
    """
    driver = start(LOCAL + later)
    out, _ = driver.communicate(timeout=60)
    assert driver.returncode == (-9 if "kill" in end else 0)
    await_end([int(pid) for pid in out.split()])


def test_the_actors_of_a_killed_driver_end_on_a_cluster_that_goes_on(machines):
    driver = start(LOCAL.replace("threads=2", "threads=1") + "    runtime.run(program)", machines.address)
    assert driver.stdout is not None
    pids = [int(pid) for pid in driver.stdout.readline().split()]
    time.sleep(0.5)
    driver.kill()
    driver.communicate(timeout=60)
    await_end(pids)


def test_an_interrupt_stops_the_nodes_which_can_be_used_again():
    script = """
    try:
        runtime.run(program)
    except KeyboardInterrupt:
        print("interrupted", [int(x) for x in runtime.run(lambda node: node.comm.allreduce(1))], flush=True)
    """
    driver = start(LOCAL + script)
    assert driver.stdout is not None
    driver.stdout.readline()
    time.sleep(1)
    driver.send_signal(signal.SIGINT)
    assert finish(driver, 30) == "interrupted [2, 2]\n"


@pytest.mark.slow
def test_sigterm_writes_a_last_snapshot(tmp_path):
    script = """
    import sys, strads
    def step(k, W):
        for _ in range(2_000): W[k] = 0.5 * W[k] + 1.0
    with strads.init("ray", nodes=1, threads=1, checkpoint_dir=FOLDER, checkpoint_every=1_000_000):
        W = strads.dvector.zeros(100)
        while True:
            strads.async_for(range(100), step, W)
            print(flush=True)
    """
    driver = start(script.replace("FOLDER", repr(str(tmp_path))))
    for _ in range(5):
        driver.stdout.readline()
    driver.send_signal(signal.SIGTERM)
    done = 5 + driver.communicate(timeout=60)[0].count("\n")
    assert driver.returncode == 143
    assert max(int(path.name.partition("-")[0]) for path in (tmp_path / "snapshots").iterdir()) >= done
