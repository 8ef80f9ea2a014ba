"""A sample of `make seeds`."""

import pytest
from launching import needs_mpi

from one_seed.models import MODELS
from one_seed.places import Place, hashes


@needs_mpi
@pytest.mark.few(1)
@pytest.mark.parametrize("name", MODELS)
def test_threads_and_processes_find_the_same_bits(name):
    places = Place("threads", 1, 3), Place("mpi", 2, 1)
    found = {digest for place in places for digest in hashes(place, [name], runs=2)[name]}
    assert len(found) == 1
