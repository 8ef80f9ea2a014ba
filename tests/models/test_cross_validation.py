"""LassoCV, ElasticNetCV, LogisticRegressionCV: what scikit-learn chooses, from all that it accepts."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peers
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.utils.estimator_checks import check_estimator

from strads.errors import ArgumentError, InputError
from strads.models import ElasticNet, ElasticNetCV, Lasso, LassoCV, LogisticRegression, LogisticRegressionCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 12))
Y = 3 + X[:, 0] - 2 * X[:, 1] + 0.7 * RNG.normal(size=90)
LABELS = np.where(Y > 3, "high", "low")
WEIGHTS = RNG.uniform(0.5, 2.0, 90)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("weights", "positive"), [(None, False), (WEIGHTS, False), (None, True)])
def test_lasso_agrees_with_scikit_learn(form, weights, positive):
    alphas = np.geomspace(1, 1e-3, 20)
    options = {"alphas": alphas, "cv": KFold(4), "positive": positive, "tol": 1e-10}
    own = LassoCV(**options).fit(form(X), Y, weights)
    peer = peers.LassoCV(**options, max_iter=10**5).fit(X, Y, weights)
    assert own.alpha_ == peer.alpha_
    np.testing.assert_allclose(own.mse_path_, peer.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-6)
    np.testing.assert_allclose(own.predict(form(X)), peer.predict(X), atol=1e-5)
    assert own.score(form(X), Y) > (0.1 if positive else 0.8)


def test_elastic_net_chooses_the_ratio_too():
    own = ElasticNetCV(l1_ratio=[0.2, 0.9], alphas=15, tol=1e-10, cv=3).fit(X, Y)
    assert own.mse_path_.shape == (2, 15, 3)
    for place, ratio in enumerate([0.2, 0.9]):
        peer = peers.ElasticNetCV(l1_ratio=ratio, alphas=own.alphas_[place], tol=1e-10, cv=3).fit(X, Y)
        np.testing.assert_allclose(own.mse_path_[place], peer.mse_path_, rtol=1e-5)
    place, step = np.unravel_index(np.argmin(own.mse_path_.mean(2)), (2, 15))
    assert own.l1_ratio_ == [0.2, 0.9][place]
    assert own.alpha_ == own.alphas_[place, step]
    one = ElasticNetCV(l1_ratio=0.3, alphas=1, eps=1, positive=True).fit(X, Y)
    assert not one.coef_.any()
    assert ElasticNet(0.999 * one.alpha_, l1_ratio=0.3, positive=True).fit(X, Y).coef_.any()
    assert ElasticNetCV(alphas=7).fit(X, Y).alphas_.shape == (7,)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_logistic_regression_agrees_with_scikit_learn(form):
    folds, Cs = StratifiedKFold(4), np.geomspace(1e-2, 1e2, 7)
    own = LogisticRegressionCV(Cs=Cs, cv=folds, tol=1e-9, class_weight="balanced").fit(form(X), LABELS)
    for place, (train, test) in enumerate(folds.split(X, LABELS)):
        for step, C in enumerate(Cs):
            model = LogisticRegression(C=C, tol=1e-9, class_weight="balanced").fit(X[train], LABELS[train])
            assert own.scores_[place, 0, step] == pytest.approx(model.score(X[test], LABELS[test]))
    assert Cs[np.argmax(own.scores_[:, 0].mean(0))] == own.C_
    assert own.classes_.tolist() == ["high", "low"]
    assert own.score(form(X), LABELS) > 0.85
    assert own.predict_proba(X).shape == (90, 2)
    assert len(LogisticRegressionCV(cv=3).fit(X, LABELS).Cs_) == 10


def test_labels_may_be_objects():
    numbers = (LABELS == "high").astype(int)
    model, same = (LogisticRegressionCV(Cs=3, cv=3).fit(X, labels) for labels in (numbers, numbers.astype(object)))
    assert np.array_equal(model.scores_, same.scores_)


def test_the_best_can_be_saved(tmp_path):
    model = LassoCV(alphas=5).fit(X, Y)
    model.best_estimator_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(Lasso.load(tmp_path / "model.npz").coef_, model.coef_)


@pytest.mark.parametrize("chooser", [LassoCV(alphas=5, cv=3), LogisticRegressionCV(Cs=3, cv=3)])
def test_the_estimator_that_chooses_saves_what_it_has_chosen(chooser, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = X[:, 0] > 0
    with pytest.raises(NotFittedError):
        chooser.save(tmp_path / "model.npz")
    chooser.fit(X, y.astype(float)).save(tmp_path / "model.npz")
    model = type(chooser.best_estimator_).load(tmp_path / "model.npz")
    np.testing.assert_array_equal(model.coef_, chooser.coef_)


@pytest.mark.parametrize(
    "chooser", [LassoCV(alphas=5, cv=3), *(LogisticRegressionCV(Cs=3, cv=3, refit=refit) for refit in (True, False))]
)
def test_names_of_features(chooser, tmp_path):
    frame = pd.DataFrame(X, columns=[f"feature {number}" for number in range(X.shape[1])])
    chooser = clone(chooser).fit(frame, Y > 3)
    chooser.save(tmp_path / "model.npz")
    for model in (chooser, chooser.best_estimator_, type(chooser.best_estimator_).load(tmp_path / "model.npz")):
        assert model.feature_names_in_.tolist() == frame.columns.tolist()
    with warnings.catch_warnings(action="error"):
        chooser.predict(frame)
    assert not hasattr(chooser.fit(X, Y > 3).best_estimator_, "feature_names_in_")


def test_what_a_user_can_do_wrong():
    with pytest.raises(InputError, match="cv=200"):
        LassoCV(cv=200).fit(X, Y)
    spoiled = X.copy()
    spoiled[3, 2] = np.nan
    with pytest.raises(InputError, match="row 3, column 2"):
        LassoCV().fit(spoiled, Y)
    for none in ([], [[0.1, 1.0]], True):
        with pytest.raises(ArgumentError, match="alphas has the shape"):
            ElasticNetCV(l1_ratio=0, alphas=none).fit(X, Y)
        with pytest.raises(ArgumentError, match="Cs has the shape"):
            LogisticRegressionCV(penalty="l2", Cs=none).fit(X, LABELS)
    with pytest.raises(ArgumentError, match="alphas"):
        LassoCV(alphas=[1.0, -1.0]).fit(X, Y)
    with pytest.raises(ArgumentError, match="Cs: "):
        LogisticRegressionCV(Cs=["a"]).fit(X, LABELS)
    with pytest.raises(ArgumentError, match="alphas"):
        LassoCV(alphas=0).fit(X, Y)
    with pytest.raises(ArgumentError, match="Cs"):
        LogisticRegressionCV(Cs=0).fit(X, LABELS)
    with pytest.raises(ArgumentError, match="l1_ratio"):
        ElasticNetCV(l1_ratio=[]).fit(X, Y)
    with pytest.raises(InputError, match="weight 0"):
        LassoCV(cv=KFold(3)).fit(X, Y, np.arange(90) >= 30)
    with pytest.raises(NotFittedError):
        LassoCV().predict(X)


@pytest.mark.few(3)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
@pytest.mark.parametrize("ratios", [None, [0.0, 1.0]])
def test_chooses_what_a_grid_search_does(ratios, scoring, classes):
    rng = np.random.default_rng(7)
    labels = np.argmax(X[:, :classes] + rng.normal(size=(len(X), classes)), axis=1)
    folds, Cs = KFold(4, shuffle=True, random_state=1), [0.01, 0.1, 1.0]
    own = LogisticRegressionCV(Cs=Cs, l1_ratios=ratios, cv=folds, scoring=scoring, tol=1e-9).fit(X, labels)
    search = GridSearchCV(
        LogisticRegression(tol=1e-9), {"l1_ratio": ratios or [1.0], "C": Cs}, cv=folds, scoring=scoring
    ).fit(X, labels)
    shape = (len(ratios or [1.0]), len(Cs))
    assert np.allclose(own.scores_.reshape(4, -1).mean(0).reshape(shape), means_of(search, ratios, Cs), atol=1e-4)
    assert own.scores_.shape == (4, len(ratios or [1]), 3)
    assert own.C_ in Cs
    assert own.l1_ratio_ in (ratios or [1.0])
    assert own.scores_.reshape(4, *shape).mean(0).max() == pytest.approx(search.best_score_, abs=1e-4)
    expected = own.best_estimator_.score(X, labels) if scoring is None else -log_loss(labels, own.predict_proba(X))
    assert own.score(X, labels) == pytest.approx(expected)
    assert own.coef_.shape == (1 if classes == 2 else 3, X.shape[1])


def means_of(search, ratios, Cs):
    """The scores of a search as an array of shape (ratios, Cs)."""
    scores = {
        (each["l1_ratio"], each["C"]): mean
        for each, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
    }
    return np.array([[scores[ratio, C] for C in Cs] for ratio in ratios or [1.0]])


@pytest.mark.parametrize("classes", [2, 3])
def test_without_refit_the_best_models_of_the_folds_are_averaged(classes, tmp_path):
    labels = np.argmax(X[:, :classes], axis=1)
    folds, Cs, ratios = KFold(3), [0.01, 0.1, 1.0], [0.0, 1.0]
    own = LogisticRegressionCV(Cs=Cs, l1_ratios=ratios, cv=folds, refit=False, tol=1e-10).fit(X, labels)
    rows = 1 if classes == 2 else 3
    assert own.coefs_paths_.shape == (3, 2, 3, rows, X.shape[1] + 1)
    assert own.n_iter_.shape == own.scores_.shape == (3, 2, 3)
    assert own.l1_ratios_.tolist() == ratios
    coef, chosen = 0.0, []
    for fold, (train, _) in enumerate(folds.split(X)):
        place, step = np.unravel_index(np.argmax(own.scores_[fold]), (2, 3))
        model = LogisticRegression(C=Cs[step], l1_ratio=ratios[place], tol=1e-10).fit(X[train], labels[train])
        np.testing.assert_allclose(own.coefs_paths_[fold, place, step, :, :-1], model.coef_, atol=1e-3)
        coef = coef + model.coef_ / 3
        chosen.append((Cs[step], ratios[place]))
    np.testing.assert_allclose(own.coef_, coef, atol=1e-3)
    np.testing.assert_allclose((own.C_, own.l1_ratio_), np.mean(chosen, axis=0))
    own.best_estimator_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(LogisticRegression.load(tmp_path / "model.npz").predict(X), own.predict(X))


def test_groups_stay_together():
    groups = np.arange(90) // 6
    model = LassoCV(alphas=5, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    same = LassoCV(alphas=5, cv=list(GroupKFold(3).split(X, Y, groups))).fit(X, Y)
    np.testing.assert_array_equal(model.mse_path_, same.mse_path_)
    with pytest.raises(InputError, match="groups"):
        LassoCV(cv=GroupKFold(3)).fit(X, Y)


def test_ridge_among_the_penalties():
    alphas = [0.01, 0.1, 1.0]
    model = ElasticNetCV(l1_ratio=[0.0, 0.5], alphas=alphas, cv=3, tol=1e-10).fit(X, Y)
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        for step, alpha in enumerate(model.alphas_):
            found = ElasticNet(alpha, l1_ratio=0.0).fit(X[train], Y[train]).predict(X[test])
            assert model.mse_path_[0, step, fold] == pytest.approx(np.mean((found - Y[test]) ** 2))
    assert model.alphas_.tolist() == alphas[::-1]


def test_bad_scores():
    with pytest.raises(ArgumentError, match="scoring='best'"):
        LogisticRegressionCV(scoring="best").fit(X, LABELS)
    with pytest.raises(ArgumentError, match="l1_ratios is empty"):
        LogisticRegressionCV(l1_ratios=[]).fit(X, LABELS)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "model",
    [
        LassoCV(alphas=5, tol=1e-12),
        ElasticNetCV(alphas=5, tol=1e-12),
        LogisticRegressionCV(Cs=[0.01, 1.0], cv=3, tol=1e-12),
    ],
)
def test_scikit_learns_own_checks(model):  # which compare fits to 1e-7: further than the default `tol` goes
    check_estimator(model)


def test_all_folds_count_alike():
    folds = [(np.setdiff1d(np.arange(90), test), test) for test in np.split(np.arange(90), [10, 25])]
    options = {"alphas": np.geomspace(1, 1e-3, 20), "cv": folds, "tol": 1e-10}
    for seed in range(4):
        y = X[:, 0] + 3.0 * np.random.default_rng(seed).normal(size=90)
        assert LassoCV(**options).fit(X, y).alpha_ == peers.LassoCV(**options, max_iter=10**5).fit(X, y).alpha_
