"""Matrix factorization and LDA on the parameter server: on all nodes of every backend, the same bits under BSP."""

import importlib
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import cloudpickle
import numpy as np
import pytest

import strads
from strads import ps

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORKERS = 4

pytestmark = pytest.mark.nodes


def example(name: str) -> Iterator[ModuleType]:
    """Import an example, so that its functions travel to nodes by value: these cannot import it."""
    sys.path.insert(0, str(EXAMPLES))
    module = importlib.import_module(name)
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def mf() -> Iterator[ModuleType]:
    yield from example("parameter_server_mf")


@pytest.fixture(scope="module")
def lda() -> Iterator[ModuleType]:
    yield from example("parameter_server_lda")


def factors(mf: ModuleType, consistency: ps.Consistency, epochs: int = 12) -> tuple[np.ndarray, np.ndarray, float]:
    """Factorize planted ratings with four workers; returns W, H and the RMSE."""
    ratings = mf.planted_ratings(6_000, users=60, items=80)
    tables = [ps.Table.from_numpy(start, consistency=consistency) for start in mf.starting_factors(ratings, rank=4)]
    pause = lambda worker, samples: time.sleep(0.003)  # noqa: E731 – travels by value; without it workers have ended
    program = partial(
        mf.factorize, on_minibatch=pause
    )  # before they hear of each other, where nothing bounds staleness
    ps.run(program, *tables, epochs, 4, 0.02, workers=WORKERS, data=mf.deal(ratings, WORKERS))
    W, H = (table.to_numpy() for table in tables)
    return W, H, mf.rmse(ratings, W, H)


def topics(lda: ModuleType, consistency: ps.Consistency, iterations: int = 25) -> tuple[np.ndarray, np.ndarray, float]:
    """Sample topics of planted documents with four workers; returns both tables and the last perplexity."""
    documents, vocabulary = lda.planted_documents(documents=120, length=50, vocabulary=100, topics=5)
    tables = lda.make_tables(vocabulary, 5, consistency)
    done = ps.run(lda.sample_topics, *tables, iterations, 3, workers=WORKERS, data=lda.deal(documents, WORKERS))
    perplexity = np.exp(-np.sum(done.values, axis=0)[-1] / len(documents.words))
    counts, totals = (table.to_numpy() for table in tables)
    np.testing.assert_array_equal(counts.sum(1), np.bincount(documents.words, minlength=vocabulary))
    np.testing.assert_array_equal(counts.sum(0), totals[0])
    return counts, totals, float(perplexity)


@pytest.fixture(scope="module")
def on_one_node(mf: ModuleType, lda: ModuleType) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """What both programs give under BSP on one node."""
    with strads.init("threads", nodes=1, threads=1):
        return factors(mf, ps.BSP()), topics(lda, ps.BSP())


def test_bsp_gives_the_bits_of_one_node(on_one_node, mf, lda, runtime):
    for found, expected in zip((factors(mf, ps.BSP()), topics(lda, ps.BSP())), on_one_node, strict=True):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("consistency", [ps.SSP(0), ps.SSP(2), ps.ESSP(2), ps.VAP(1.0)], ids=repr)
def test_stale_factors_end_near_the_loss_of_bsp(consistency, on_one_node, mf, runtime):
    assert factors(mf, consistency)[2] == pytest.approx(on_one_node[0][2], rel=0.1)  # it starts at 1.1, noise is 0.5


def test_factors_improve_although_nothing_bounds_their_age(on_one_node, mf, runtime):
    assert factors(mf, ps.ASP())[2] < 1.3 * on_one_node[0][2]


@pytest.mark.parametrize("consistency", [ps.SSP(0), ps.SSP(2), ps.ESSP(2), ps.ASP(), ps.VAP(1000.0)], ids=repr)
def test_stale_topics_end_near_the_perplexity_of_bsp(consistency, on_one_node, lda, runtime):
    assert topics(lda, consistency)[2] < 1.3 * on_one_node[1][2]  # from 90; a run ends anywhere between 41 and 55
