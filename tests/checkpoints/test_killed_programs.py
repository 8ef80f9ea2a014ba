"""A sample of the random programs; `python -m tests.checkpoints.killed_programs FIRST COUNT` runs more."""

import pytest
from tests.checkpoints.killed_programs import is_the_same


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_programs_that_are_killed_anywhere():
    assert [seed for seed in range(5) if not is_the_same(seed)] == []
