"""The tests that run on every backend, under a real `mpiexec`."""

import re

import pytest
from launching import needs_mpi, run_under_mpi

pytestmark = needs_mpi


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "every"), [(2, 8), (1, 1), (2, 1), (3, 1)])
def test_the_node_tests_pass(processes, every):
    """Of each file every eighth test, or all of them."""
    which = "nodes and (not slow or more)" if every == 1 else "nodes and not slow"
    tests = ["-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-m", which, "--every", str(every)]
    where = ["--backend", "mpi", "--nodes", str(processes), "tests"]
    ended = run_under_mpi(processes, *tests, *where, timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed is not None, ended.stdout
    assert int(passed[1]) > 50, ended.stdout
    assert "failed" not in ended.stdout
