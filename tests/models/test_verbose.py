"""`verbose=True` of every estimator shows its iterations, and changes nothing else."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest
import scipy.sparse

import strads
from strads.models import (
    BayesianPersonalizedRanking,
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LatentDirichletAllocation,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    MatrixFactorization,
    MultinomialLogisticRegression,
    MultiTaskLasso,
    PoissonRegressor,
    TransE,
    Word2Vec,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = Y > 0
RATINGS = scipy.sparse.random_array((20, 15), density=0.5, rng=0).tocoo()
COUNTS = RNG.integers(0, 4, size=(20, 30))
SENTENCES = [[f"w{number % 20}" for number in row] for row in RNG.zipf(1.4, (50, 12))]
TRIPLES = np.unique(RNG.integers(0, 10, size=(50, 3)) % [10, 2, 10], axis=0)

CASES = {
    "lasso": (Lasso(0.01), (X, Y), "iteration 1  objective "),
    "elastic net": (ElasticNet(0.01), (X, Y), "iteration 1  objective "),
    "logistic": (LogisticRegression(), (X, LABELS), "iteration 1  objective "),
    "ridge": (LogisticRegression("l2"), (X, LABELS), "iteration 1  objective "),
    "counts": (PoissonRegressor(0.01), (X, np.abs(Y)), "iteration 1  objective "),
    "multi-task": (MultiTaskLasso(0.01), (X, np.stack([Y, -Y], 1)), "iteration 1  objective "),
    "softmax": (MultinomialLogisticRegression(), (X, LABELS), "iteration 1  objective "),
    "svc": (LinearSVC(), (X, LABELS), "iteration 1  objective "),
    "mf": (MatrixFactorization(2, max_iter=2), (RATINGS,), "epoch 1/2  RMSE "),
    "bpr": (BayesianPersonalizedRanking(2, iterations=2), (RATINGS.tocsr(),), "epoch 1/2  correct "),
    "lda": (LatentDirichletAllocation(3, max_iter=2), (COUNTS,), "iteration 1/2  log-likelihood/token "),
    "word2vec": (Word2Vec(4, min_count=1, epochs=2), (SENTENCES,), "epoch 1/2  loss "),
    "transe": (TransE(4, max_iter=2), (TRIPLES,), "epoch 1/2  loss "),
    "lasso cv": (LassoCV(alphas=5, cv=3), (X, Y), "fold 1/3  best score "),
    "elastic net cv": (ElasticNetCV(alphas=5, cv=3, l1_ratio=[0.5, 1.0]), (X, Y), "fold 1/6  best score "),
    "logistic cv": (LogisticRegressionCV(Cs=3, cv=3), (X, LABELS), "fold 1/3  best score "),
}


def printed(model, data):
    with redirect_stdout(io.StringIO()) as text:
        model.fit(*data)
    return text.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_every_estimator_shows_its_iterations(name):
    model, data, line = CASES[name]
    assert printed(model, data) == ""
    learnt = [key for key, value in vars(model).items() if isinstance(value, np.ndarray)] or ["item_factors_"]
    quiet = {key: np.copy(getattr(model, key)) for key in learnt}
    text = printed(model.set_params(verbose=True), data)
    assert f"\n{line}" in text
    assert "cv" in name or text.count("\n") > model.n_iter_
    for key, value in quiet.items():
        assert np.array_equal(value, getattr(model, key)), key


def test_the_callback_is_called_too():
    seen = []
    model = MatrixFactorization(2, max_iter=9, verbose=1)
    with redirect_stdout(io.StringIO()) as text:
        model.fit(RATINGS, on_iteration=lambda record: seen.append(record) or len(seen) == 3)
    assert model.n_iter_ == len(seen) == 3
    assert text.getvalue().count("epoch ") == 3


def test_a_file_remembers_it(tmp_path):
    model = Lasso(0.01, verbose=True)
    printed(model, (X, Y))
    model.save(tmp_path / "model.npz")
    assert Lasso.load(tmp_path / "model.npz").verbose is True


@pytest.mark.parametrize("verbose", [-1, "yes", None, 1.5])
def test_bad_values(verbose):
    for model in (Lasso(verbose=verbose), LassoCV(verbose=verbose)):
        with pytest.raises(strads.ArgumentError, match="verbose="):
            model.fit(X, Y)


def test_bad_values_leave_an_earlier_fit():
    model = Lasso(0.1).fit(np.eye(4), np.arange(4))
    with pytest.raises(strads.ArgumentError, match="verbose="):
        model.set_params(verbose=-1).fit(np.eye(4), np.arange(4))
    assert len(model.predict(np.eye(4))) == 4
