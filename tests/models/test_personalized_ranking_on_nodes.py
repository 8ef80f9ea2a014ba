"""BayesianPersonalizedRanking on nodes: the same bits as on one machine, wherever the factors lie."""

import numpy as np
import pytest

import strads
from strads.models import BayesianPersonalizedRanking


def fit(**parameters: object) -> BayesianPersonalizedRanking:
    rng = np.random.default_rng(0)
    users, items = (300 * rng.random(6000) ** 1.5).astype(int), (150 * rng.random(6000) ** 2).astype(int)
    settings = {"factors": 12, "learning_rate": 0.05, "iterations": 6, "n_workers": 5, **parameters}
    return BayesianPersonalizedRanking(**settings).fit(
        (users[600:], items[600:]), validation=(users[:600], items[:600])
    )


def content(model: BayesianPersonalizedRanking) -> list[object]:
    """All bits of a model and what its history tells, apart from times."""
    figures = [{key: record[key] for key in record if key not in ("seconds", "nodes")} for record in model.history_]
    tables = (model.user_factors_, model.item_factors_, model.item_biases_)
    return [*(table.tobytes() for table in tables), figures, model.recommend(3, N=5)[0].tolist()]


@pytest.fixture(scope="module")
def on_one_machine() -> list[object]:
    with strads.init("threads", threads=1):
        return content(fit())


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_same_model_on_any_number_of_threads(on_one_machine, threads):
    with strads.init("threads", threads=threads):
        assert content(fit()) == on_one_machine


@pytest.mark.nodes
def test_the_same_model_on_any_number_of_nodes(on_one_machine, runtime):
    assert content(fit()) == on_one_machine


@pytest.mark.nodes
def test_n_jobs_changes_nothing_on_nodes(on_one_machine, runtime):
    assert content(fit(n_jobs=2)) == on_one_machine
