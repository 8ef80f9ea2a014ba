"""MatrixFactorization on nodes: the same model as on one machine; factors stay on the nodes while it trains."""

import json

import numpy as np
import pytest

import strads
from strads.dds.dvector import dvector
from strads.models import MatrixFactorization

RATING = np.dtype([("user", "i4"), ("item", "i4"), ("score", "f4")])


def ratings(count: int, users: int, items: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    records = np.zeros(count, RATING)
    records["user"], records["item"] = rng.random(count) ** 2 * users, rng.random(count) ** 2 * items
    bias = rng.normal(0, 0.5, users)
    records["score"] = 3 + bias[records["user"]] + rng.normal(0, 0.3, count)
    return records


def fit(users: int = 400, items: int = 250, **parameters: object) -> MatrixFactorization:
    model = MatrixFactorization(4, **{"max_iter": 3, **parameters})
    train, held_out = ratings(12_000, users, items, 0), ratings(1500, users, items, 0)
    return model.fit(strads.dvector(train), validation=strads.dvector(held_out))


def overfit(**parameters: object) -> MatrixFactorization:
    rates = {"learning_rate": 0.3, "regularization": 0.0, "max_iter": 40}
    return fit(early_stopping=True, n_iter_no_change=2, **{**rates, **parameters})


MODELS = {
    "adagrad": fit,
    "more items than users": lambda: fit(200, 500),
    "constant step without biases": lambda: fit(step="constant", learning_rate=0.01, biases=False),
    "early stopping": overfit,
    "coordinate descent": lambda: fit(solver="ccd"),
    "coordinate descent without biases": lambda: fit(solver="ccd", biases=False, weighted_regularization=False),
    "early stopping of coordinate descent": lambda: overfit(solver="ccd"),
}


def content(model: MatrixFactorization) -> list[object]:
    """All bits of a model and what its history tells, apart from times."""
    tables = (model.user_factors_, model.item_factors_, model.user_biases_, model.item_biases_)
    figures = [
        {key: value for key, value in record.items() if key not in ("seconds", "nodes")} for record in model.history_
    ]
    return [*(table.tobytes() for table in tables), figures, model.recommend(3, 5)[0].tolist()]


@pytest.fixture(scope="module")
def on_one_machine() -> dict[str, list[object]]:
    with strads.init("threads", threads=1):
        return {name: content(fit_model()) for name, fit_model in MODELS.items()}


@pytest.mark.few(3)
@pytest.mark.nodes
@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_on_any_number_of_nodes(on_one_machine, runtime, name):
    assert content(MODELS[name]()) == on_one_machine[name]


@pytest.mark.nodes
@pytest.mark.parametrize(("name", "solver"), [("adagrad", "sgd"), ("coordinate descent", "ccd")])
def test_n_jobs_changes_nothing_on_nodes(on_one_machine, runtime, name, solver):
    assert content(fit(n_jobs=2, solver=solver)) == on_one_machine[name]


@pytest.mark.nodes
def test_history_tells_what_each_node_did(runtime, nodes):
    model = fit()
    for record in model.history_:
        assert [node["rank"] for node in record["nodes"]] == list(range(nodes))
        assert sum(node["tasks"] for node in record["nodes"]) == 12_000
        for node in record["nodes"]:
            assert node["host"]
            assert node["compute_seconds"] > 0
            assert node["wait_seconds"] >= 0
            assert node["mean_queue"] >= 0
            assert node["longest_queue"] >= 1
            assert (node["bytes_sent"] > 0) == (node["messages_sent"] > 0) == (nodes > 1)
    assert json.loads(json.dumps(model.history_)) == model.history_


@pytest.mark.nodes
def test_factors_come_home_once(runtime, monkeypatch):
    if runtime.is_local:
        return
    gathered = []
    content_home = dvector.storage.fget

    def storage(self):
        if self.is_distributed and not self._content.is_home:
            gathered.append(self.shape)
        return content_home(self)

    monkeypatch.setattr(dvector, "storage", property(storage))
    overfit()
    assert sorted(gathered) == [(250, 7), (400, 7)]


@pytest.mark.nodes
def test_saved_and_loaded_elsewhere(runtime, tmp_path):
    model = fit()
    model.save(tmp_path / "model.npz")
    loaded = MatrixFactorization.load(tmp_path / "model.npz")
    pairs = np.stack([np.arange(200) % 400, np.arange(200) % 250], 1)
    assert np.array_equal(loaded.predict(pairs), model.predict(pairs))
    assert loaded.history_ == model.history_
    strads.shutdown()
    with strads.init("threads", threads=1):
        assert np.array_equal(model.predict(pairs), loaded.predict(pairs))


@pytest.mark.nodes
@pytest.mark.parametrize("solver", ["sgd", "ccd"])
def test_an_interrupted_model_can_be_used_and_fitted_again(on_one_machine, runtime, tmp_path, solver):
    def interrupt(record):
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    model = MatrixFactorization(4, solver=solver, max_iter=10, learning_rate_schedule="constant")
    train = strads.dvector(ratings(12_000, 400, 250, 0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(train, on_iteration=interrupt)
    same = MatrixFactorization(4, solver=solver, max_iter=2, learning_rate_schedule="constant").fit(train)
    assert np.array_equal(model.user_factors_, same.user_factors_)
    model.save(tmp_path / "model.npz")
    assert content(fit()) == on_one_machine["adagrad"]


def test_two_threads_on_each_node(on_one_machine):
    with strads.init("threads", nodes=3, threads=2):
        assert content(fit()) == on_one_machine["adagrad"]
        assert content(fit(solver="ccd")) == on_one_machine["coordinate descent"]


@pytest.mark.parametrize("solver", ["sgd", "ccd"])
def test_a_lost_node_leaves_no_half_model(solver):
    with strads.init("threads", nodes=2, threads=1) as runtime:
        model = fit(solver=solver)

        def lose(record):
            runtime.cluster.close()

        train = strads.dvector(ratings(12_000, 400, 250, 0))
        with pytest.raises(strads.errors.NodeFailure):
            model.fit(train, on_iteration=lose)
        assert not hasattr(model, "user_factors_")
