"""A sample of `make replicas`."""

import os

import pytest

from replicas.harness import compare
from replicas.logs import MODELS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="replicas are killed by a signal")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_replica_that_is_killed_agrees_with_one_that_is_not(name, tmp_path):
    found = compare(name, seed=1, batches=12, kills=1, folder=tmp_path)
    assert found["compared"] >= 12
    assert found["kills"] == 1
