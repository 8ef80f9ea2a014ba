"""Shared fixtures: real data where it is, and one thread pool a session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import strads

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

# Times vary with the machine and with compilation: a deadline would only make tests flaky.
settings.register_profile("strads", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("strads")


@pytest.fixture(scope="session")
def movielens() -> Path:
    """MovieLens 100K: user, item, rating, time; tab separated, ids from 1."""
    path = DATA / "ml-100k" / "u.data.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in {path.parent}")
    return path


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Run loops on two threads, however many cores there are."""
    strads.init(threads=2)
    yield
    strads.shutdown()
