"""MatrixFactorization(solver="ccd"): what it minimizes, that the seed alone decides it, and what it shares with SGD."""

import os
import signal
import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import strads
from strads.models import MatrixFactorization

N_USERS, N_ITEMS, NOISE = 300, 200, 0.3


def planted(n: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs and scores of rank 3 plus biases, mean 3 and normal noise."""
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(N_USERS, size=n), rng.integers(N_ITEMS, size=n)], 1)
    users, items = pairs.T
    w, h = rng.normal(0, 0.7, (N_USERS, 3)), rng.normal(0, 0.7, (N_ITEMS, 3))
    biases = rng.normal(0, 0.5, N_USERS)[users] + rng.normal(0, 0.5, N_ITEMS)[items]
    return pairs, 3 + biases + (w[users] * h[items]).sum(1) + rng.normal(0, NOISE, n)


PAIRS, SCORES = planted()
TRAIN, TEST = slice(0, 18_000), slice(18_000, None)


def ccd(**parameters: object) -> MatrixFactorization:
    return MatrixFactorization(**{"n_components": 4, "solver": "ccd", "max_iter": 5, **parameters})


def fit(**parameters: object) -> MatrixFactorization:
    return ccd(**parameters).fit(PAIRS[TRAIN], SCORES[TRAIN])


def objective(model: MatrixFactorization) -> float:
    """What the model's documentation says is minimized, from its attributes."""
    users, items = PAIRS[TRAIN].T
    squared_error = model.rmse(PAIRS[TRAIN], SCORES[TRAIN], clip=False) ** 2 * len(users)
    sides = ((model.user_factors_, model.user_biases_, users), (model.item_factors_, model.item_biases_, items))
    penalty = 0.0
    for factors, biases, ids in sides:
        rows = np.bincount(ids, minlength=len(factors)) if model.weighted_regularization else np.ones(len(factors))
        penalty += rows @ (np.square(factors, dtype=np.float64).sum(1) + np.square(biases, dtype=np.float64))
    return squared_error + model.regularization * penalty


@pytest.mark.parametrize("biases", [True, False])
def test_planted_factors_are_learnt(biases):
    model = fit(n_components=4 if biases else 6, max_iter=20, regularization=0.01, biases=biases)
    assert model.rmse(PAIRS[TEST], SCORES[TEST]) < 1.3 * NOISE
    assert (model.mean_ != 0) == biases
    assert model.user_biases_.any() == model.item_biases_.any() == biases
    assert model.user_factors_.shape == (N_USERS, len(model.item_factors_[0]))


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("regularization", [0.0, 0.05, 3.0])
def test_history_has_the_objective_which_never_rises(biases, weighted, regularization):
    seen = []
    model = ccd(max_iter=8, biases=biases, weighted_regularization=weighted, regularization=regularization)
    held_out = (PAIRS[TEST], SCORES[TEST])

    def compare(record: dict) -> None:
        assert record["objective"] == pytest.approx(objective(model), rel=1e-4)
        assert record["rmse"] == pytest.approx(model.rmse(PAIRS[TRAIN], SCORES[TRAIN], clip=False), rel=1e-4)
        assert record["validation_rmse"] == pytest.approx(model.rmse(*held_out, clip=False), rel=1e-4)
        seen.append(record["objective"])

    model.fit(PAIRS[TRAIN], SCORES[TRAIN], validation=held_out, on_iteration=compare)
    assert len(seen) == 8
    for before, after in pairwise(seen):
        assert after <= before * (1 + 1e-6)
    assert model.history_[-1]["samples"] == 8 * 18_000
    assert objective(model) == pytest.approx(seen[-1], rel=1e-4)


def test_an_optimum_is_left_alone():
    """Each factor is where the derivative of the objective vanishes, after many epochs."""
    model = fit(max_iter=800, regularization=0.1, n_components=2)
    users, items = PAIRS[TRAIN].T
    errors = SCORES[TRAIN] - model.predict(PAIRS[TRAIN], clip=False)
    derivative = np.zeros((N_USERS, 2))
    np.add.at(derivative, users, errors[:, None] * model.item_factors_[items])
    derivative -= 0.1 * np.bincount(users, minlength=N_USERS)[:, None] * model.user_factors_
    assert np.abs(derivative).max() < 0.02
    of_biases = np.bincount(items, errors, N_ITEMS) - 0.1 * np.bincount(items, minlength=N_ITEMS) * model.item_biases_
    assert np.abs(of_biases).max() < 0.02


def test_bits_depend_on_the_seed_alone():
    def bits(seed: int, threads: int | None) -> bytes:
        return fit(random_state=seed, n_jobs=threads).predict(PAIRS[:1000]).tobytes()

    first = bits(0, 1)
    assert [bits(0, threads) == first for threads in (1, 2, 3, 17, None)] == [True] * 5
    assert bits(1, 1) != first


def test_more_workers_than_users_and_rows_without_ratings():
    matrix = scipy.sparse.csr_array(([3.0, 5.0, 1.0], ([0, 5, 5], [1, 1, 7])), shape=(6, 8))
    model = ccd(regularization=0.0).fit(matrix)
    assert model.user_factors_.shape == (6, 4)
    assert model.item_factors_.shape == (8, 4)
    assert not model.user_factors_[1:5].any()
    assert not model.item_factors_[2:7].any()
    predicted = model.predict([[0, 1], [5, 1], [5, 7], [3, 3]])
    assert np.allclose(predicted, [3, 5, 1, 3], atol=0.1)


def test_a_single_rating():
    assert ccd(regularization=0.0).fit(([0], [0]), [2.5]).predict([[0, 0]]) == pytest.approx([2.5])
    assert ccd(regularization=0.0, biases=False).fit(([0], [0]), [2.5]).predict([[0, 0]]) == pytest.approx([2.5])


def test_users_that_only_the_held_out_ratings_know():
    model = ccd().fit(PAIRS[TRAIN], SCORES[TRAIN], validation=([[N_USERS + 3, 0], [0, N_ITEMS]], [3.0, 3.0]))
    assert model.user_ids_[-1] == N_USERS + 3
    assert len(model.user_factors_) == N_USERS + 1
    assert model.history_[-1]["validation_rmse"] == pytest.approx(
        model.rmse([[N_USERS + 3, 0], [0, N_ITEMS]], [3.0, 3.0], clip=False), rel=1e-4
    )


def test_early_stopping_keeps_the_best_epoch():
    model = ccd(n_components=20, regularization=0.0, max_iter=50, early_stopping=True, n_iter_no_change=2)
    held = np.zeros(3000, bool)
    held[np.random.default_rng(0).choice(3000, 300, replace=False)] = True
    model.fit(PAIRS[:3000], SCORES[:3000])
    errors = [record["validation_rmse"] for record in model.history_]
    assert len(errors) < 50
    assert min(errors) < errors[-1]
    assert model.rmse(PAIRS[:3000][held], SCORES[:3000][held], clip=False) == pytest.approx(min(errors), rel=1e-4)


def test_an_interrupted_model_is_that_of_the_last_epoch():
    def interrupt(record: dict) -> None:
        if record["iteration"] == 3:
            raise KeyboardInterrupt

    model = ccd(max_iter=10)
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS[TRAIN], SCORES[TRAIN], on_iteration=interrupt)
    assert np.array_equal(model.predict(PAIRS), fit(max_iter=3).predict(PAIRS))


def test_saved_and_loaded(tmp_path):
    model = fit(weighted_regularization=False, regularization=2.0)
    model.save(tmp_path / "model.npz")
    loaded = MatrixFactorization.load(tmp_path / "model.npz")
    assert loaded.get_params() == model.get_params() == clone(model).get_params()
    assert loaded.history_ == model.history_
    assert np.array_equal(loaded.predict(PAIRS), model.predict(PAIRS))
    assert np.array_equal(loaded.fit(PAIRS[TRAIN], SCORES[TRAIN]).predict(PAIRS), model.predict(PAIRS))


def test_what_only_sgd_uses_changes_nothing():
    other = fit(step="constant", learning_rate=5.0, learning_rate_schedule="constant")
    assert np.array_equal(other.predict(PAIRS), fit().predict(PAIRS))


def test_bad_parameters_and_scores():
    with pytest.raises(strads.ArgumentError, match="solver='als' is unknown; choose one of sgd, ccd"):
        fit(solver="als")
    with pytest.raises(strads.ArgumentError, match='weighted_regularization=False needs solver="ccd"'):
        fit(solver="sgd", weighted_regularization=False)
    with pytest.raises(strads.InputError, match="diverged in epoch 1: scale the scores"):
        ccd().fit(PAIRS[TRAIN], SCORES[TRAIN] * 1e37)


def test_movielens(movielens):
    raw = np.loadtxt(movielens, dtype=np.int64)
    order = np.random.default_rng(0).permutation(len(raw))
    pairs, scores = raw[order, :2] - 1, raw[order, 2]
    model = MatrixFactorization(20, solver="ccd", max_iter=12).fit(pairs[10_000:], scores[10_000:])
    users, items = len(model.user_factors_), len(model.item_factors_)
    known = (pairs[:10_000, 0] < users) & (pairs[:10_000, 1] < items)
    assert model.rmse(pairs[:10_000][known], scores[:10_000][known]) <= 0.915


def test_an_interrupt_leaves_what_was_learnt() -> None:
    model = ccd(max_iter=100_000)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS[TRAIN], SCORES[TRAIN])
    assert model.n_iter_ > 0
    assert model.rmse(PAIRS[TEST], SCORES[TEST]) < 2 * NOISE
