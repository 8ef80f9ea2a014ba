"""Shared fixtures: real data where it is, and the nodes that a test runs on.

Tests marked `nodes` run on every backend: by default on logical nodes of this process, and with `--backend` on the
given one (`tests/cluster/` starts those runs, under a real `mpiexec` and on a real Ray cluster).
"""

import gc
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import strads
from strads.cluster import Runtime

TESTS = Path(__file__).resolve().parent
DATA = TESTS.parents[1] / "shared" / "data"

# Files and folders of tests that start processes, in the order in which they run.
STARTING_PROCESSES = (
    "test_documentation.py",
    "loops/test_code_cache.py",
    "loops/test_lost_nodes.py",
    "loops/test_one_program.py",
    "cli",
    "fuzz",
    "checkpoints",
    "cluster",
    "replicas",
    "one_seed",
    "test_kernel_cache.py",
    "test_scripts.py",
)

# Times vary with the machine and with compilation: a deadline would only make tests flaky.
settings.register_profile("strads", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("strads")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", default="threads", help="where tests marked `nodes` run: threads, mpi or ray")
    parser.addoption(
        "--nodes", type=int, default=None, help="on so many nodes only; default: on 3, slow tests on 1 and 2"
    )
    parser.addoption("--every", type=int, default=1, help="of the tests of a file only each n-th")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.getoption("--backend") == "mpi":
        strads.init("mpi", threads=1)  # returns on the first process only: the others serve


def pytest_collection_finish() -> None:
    """Collect garbage less often: looking through all modules took a sixth of the time of compiling bodies."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark as slow the cases beyond those that `few` keeps; of what is to run choose each n-th if asked to."""
    cases: dict[tuple[object, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") is not None and item.get_closest_marker("slow") is None:
            cases[item.parent, item.name.partition("[")[0]].append(item)
    for same in cases.values():
        (count,) = same[0].get_closest_marker("few").args
        kept = {number * len(same) // count for number in range(count)}
        for number, item in enumerate(same):
            if number not in kept:
                item.add_marker("slow")
                item.add_marker("more")
    yield
    files = groupby(items, key=lambda item: item.path)
    chosen = [item for _, tests in files for item in islice(tests, None, None, config.getoption("--every"))]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=list(set(items).difference(chosen)))
    items[:] = in_turn(chosen)


def in_turn(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order files such that little is compiled twice.

    Files whose tests start processes come last: these find on disk what the others have compiled. Before them, those
    of `models` alternate with the rest, so that two workers rarely compile the same kernels at the same time.
    """
    models, others, last = [], [], [[] for _ in STARTING_PROCESSES]
    for path, tests in groupby(items, key=lambda item: item.path):
        name = path.relative_to(TESTS).as_posix()
        starting = [number for number, start in enumerate(STARTING_PROCESSES) if name.startswith(start)]
        group = last[starting[0]] if starting else models if name.startswith("models/") else others
        group.append(list(tests))
    alternating = [(number / len(group), tests) for group in (models, others) for number, tests in enumerate(group)]
    ordered = [tests for _, tests in sorted(alternating, key=itemgetter(0))]
    return list(chain.from_iterable(ordered + list(chain.from_iterable(last))))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nodes" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--nodes")
        fewer = [pytest.param(nodes, marks=pytest.mark.slow) for nodes in (1, 2)]
        metafunc.parametrize("nodes", [*fewer, 3] if chosen is None else [chosen])


_on_ray: Runtime | None = None  # kept from test to test: to start actors takes seconds


@pytest.fixture
def runtime(request: pytest.FixtureRequest, nodes: int) -> Iterator[Runtime]:
    """Nodes of the chosen backend, of one thread each; a test that asks for it runs on each number of them."""
    global _on_ray
    backend = request.config.getoption("--backend")
    if backend != "ray":
        with strads.init(backend, nodes=nodes, threads=1, timeout=60) as runtime:
            yield runtime
        return
    if _on_ray is None or _on_ray.cluster.closed or _on_ray.cluster.size != nodes:
        _on_ray = strads.init("ray", nodes=nodes, threads=1, timeout=60)
    yield _on_ray


@pytest.fixture(scope="session")
def movielens() -> Path:
    """MovieLens 100K: user, item, rating, time; tab separated, ids from 1."""
    path = DATA / "ml-100k" / "u.data.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in {path.parent}")
    return path


@pytest.fixture(scope="session")
def fb15k237() -> Path:
    """The folder of FB15k-237 in OpenKE's format."""
    path = DATA / "fb15k-237"
    if not path.exists():
        pytest.skip(f"needs {path.name} in {path.parent}")
    return path


@pytest.fixture(autouse=True)
def two_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run loops on two threads, however many cores there are; tests on nodes choose for themselves."""
    if "nodes" in request.fixturenames:
        yield
        return
    strads.init("threads", threads=2)
    yield
    strads.shutdown()
