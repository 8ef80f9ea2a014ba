"""LogisticRegression: agreement with scikit-learn, labels and their weights, what a user can do wrong."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from hypothesis import given, reject, settings
from regression_problems import FORMS, Data, data
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

import strads
from strads.models import LogisticRegression, WorkingSet, l1_min_c, logistic_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 20))
Z = X[:, :4] @ [3.0, -2.0, 1.5, 1.0] + 0.5
Y = np.where(Z + RNG.logistic(size=120) > 0, "yes", "no")


def objective(problem: Data, signs: np.ndarray, coef: np.ndarray, intercept: float, C: float) -> float:
    z = problem.exact @ coef + intercept
    scaled = coef * problem.scales
    penalty = problem.l1_ratio * np.abs(scaled).sum() + (1 - problem.l1_ratio) / 2 * (scaled**2).sum()
    return float(C * problem.counts @ np.logaddexp(0.0, -signs * z) + penalty)


def labels(problem: Data) -> np.ndarray:
    """Both occur."""
    return problem.y > np.median(problem.y)


def fitted(problem: Data, tol: float, **parameters) -> LogisticRegression:
    options = {
        "l1_ratio": problem.l1_ratio,
        "fit_intercept": problem.fit_intercept,
        "standardize": problem.standardize,
    }
    C = min(1e3, l1_min_c(problem.X, labels(problem), problem.weights, **options) / problem.share)
    return LogisticRegression(C=C, **options, tol=tol, **parameters).fit(problem.X, labels(problem), problem.weights)


def reference(problem: Data, C: float) -> tuple[np.ndarray, float]:
    """Coefficients and intercept by scikit-learn, exact: by Newton steps from where saga has come to.

    saga is started again from there until the coefficients that it has left nonzero are the right ones.
    """
    signs = np.where(labels(problem), 1.0, -1.0)
    peer = sklearn.linear_model.LogisticRegression(
        C=C,
        l1_ratio=problem.l1_ratio,
        solver="saga",
        fit_intercept=problem.fit_intercept,
        tol=1e-10,
        max_iter=10_000,
        warm_start=True,
    )
    X = np.column_stack([problem.exact / problem.scales, np.full(len(signs), float(problem.fit_intercept))])
    for _ in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is to come in other versions
            peer.fit(X[:, :-1], signs, problem.weights)
        w = np.append(peer.coef_[0], peer.intercept_[0])
        if is_optimum(w := polished(w, X, signs, C * problem.counts, problem), X, signs, C * problem.counts, problem):
            return w[:-1] / problem.scales, float(w[-1])
    reject()  # saga does not find which coefficients are 0: there is nothing to compare with


def slopes(w: np.ndarray, X: np.ndarray, signs: np.ndarray, weights: np.ndarray, problem: Data) -> np.ndarray:
    """Of the objective without the ℓ1 norm; the last coefficient is the intercept."""
    ridge = np.append(np.full(len(w) - 1, 1.0 - problem.l1_ratio), 0.0)
    return ridge * w - X.T @ (weights * signs * expit(-signs * (X @ w)))


def polished(w: np.ndarray, X: np.ndarray, signs: np.ndarray, weights: np.ndarray, problem: Data) -> np.ndarray:
    """Minimize over the coefficients that are not 0, their signs given, by Newton's method."""
    w, support = w.copy(), np.append(w[:-1] != 0.0, problem.fit_intercept)
    pull, ridge = np.append(problem.l1_ratio * np.sign(w[:-1]), 0.0), np.full(len(w), 1.0 - problem.l1_ratio)
    ridge[-1] = 0.0
    for _ in range(20):
        odds = expit(signs * (X @ w))
        bend = (X.T * (weights * odds * (1.0 - odds))) @ X + np.diag(ridge)
        slope = slopes(w, X, signs, weights, problem) + pull
        w[support] -= np.linalg.lstsq(bend[np.ix_(support, support)], slope[support])[0]
    return w


def is_optimum(w: np.ndarray, X: np.ndarray, signs: np.ndarray, weights: np.ndarray, problem: Data) -> bool:
    """Whether the conditions of a minimum hold, but for rounding."""
    slope, most, rounding = slopes(w, X, signs, weights, problem), problem.l1_ratio, 1e-10 * weights.sum()
    wrong = np.where(w[:-1] == 0.0, np.maximum(np.abs(slope[:-1]) - most, 0.0), slope[:-1] + most * np.sign(w[:-1]))
    return bool((np.abs(wrong) <= rounding).all()) and abs(slope[-1]) <= rounding


@settings(max_examples=100)
@given(data())
def test_agrees_with_scikit_learn(problem):
    model = fitted(problem, 1e-13)
    coef, intercept = reference(problem, model.C)
    signs = np.where(labels(problem), 1.0, -1.0)
    theirs = objective(problem, signs, coef, intercept, model.C)
    assert model.history_[-1]["objective"] == pytest.approx(theirs, rel=1e-12)
    assert model.coef_.dtype == problem.X.dtype
    assert np.allclose(model.coef_[0], coef, rtol=1e-6, atol=1e-6)
    assert model.intercept_[0] == pytest.approx(intercept, rel=1e-6, abs=1e-6)


@settings(max_examples=30)
@given(data())
def test_the_gap_bounds_the_distance_to_the_minimum(problem):
    model = fitted(problem, 1e-3)
    signs = np.where(labels(problem), 1.0, -1.0)
    least = objective(problem, signs, *reference(problem, model.C), model.C)
    reached = model.history_[-1]["objective"]
    assert reached - least <= model.dual_gap_ + 1e-9 * reached
    assert model.history_[-1]["relative_gap"] <= 1e-3
    ours = objective(problem, signs, model.coef_[0], model.intercept_[0], model.C)
    assert ours == pytest.approx(reached, rel=1e-12 if problem.X.dtype == np.float64 else 1e-5)


def test_the_gap_is_not_taken_for_smaller_than_it_is():
    """Newton's steps of the intercept ended early where the loss itself is only rounding, and so did the fit."""
    rng = np.random.default_rng(5741)
    X = rng.normal(size=(8, 1))
    X[rng.random(X.shape) < 0.7] = 0.0
    X[:2] = [[1.0], [-1.0]] * rng.uniform(0.5, 1.5, (2, 1))
    X = X.astype(np.float32)
    y = X @ (rng.normal(size=1) * (rng.random(1) < 0.4)) + rng.normal(size=8)
    weights, share = rng.random(8) + 0.1, rng.uniform(0.05, 1.1)
    problem = Data(scipy.sparse.csc_array(X), X.astype(float), y.astype(float), weights, True, True, False, 0.9, share)
    model = fitted(problem, 1e-13)
    signs = np.where(labels(problem), 1.0, -1.0)
    scaled = np.column_stack([problem.exact / problem.scales, np.ones(8)])
    w = np.append(model.coef_[0] * problem.scales, model.intercept_[0])
    w = polished(w, scaled, signs, model.C * problem.counts, problem)
    least = objective(problem, signs, w[:-1] / problem.scales, w[-1], model.C)
    assert model.history_[-1]["objective"] == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("label", [str, int, bool, np.float64, object])
def test_labels_of_any_kind(label):
    positive = Y == "yes"
    y = {str: Y, object: Y.astype(object), bool: positive}.get(label, np.where(positive, 7, 3))
    y = y.astype(label)
    model = LogisticRegression().fit(X, y)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert model.predict(X).dtype == model.classes_.dtype
    assert model.score(X, y) > 0.85
    assert np.allclose(model.coef_, LogisticRegression().fit(X, positive).coef_)


def test_probabilities():
    model = LogisticRegression(C=2.0).fit(X, Y)
    z = model.decision_function(X)
    proba = model.predict_proba(X)
    assert z.shape == (120,)
    assert np.allclose(proba[:, 1], 1 / (1 + np.exp(-z)))
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert np.allclose(model.predict_log_proba(X), np.log(proba))
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()
    assert np.array_equal(model.predict(X), np.where(z > 0, "yes", "no"))
    assert model.coef_.shape == (1, 20)
    assert model.intercept_.shape == (1,)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 3.0}, {"yes": 0.5, "no": 2.0}])
@pytest.mark.parametrize("weights", [None, RNG.random(120)])
def test_class_weights_are_those_of_scikit_learn(class_weight, weights):
    rare = (Y == "yes") & (np.arange(120) % 3 == 0)
    y = np.where(rare, "yes", "no")
    ours = LogisticRegression(C=0.5, class_weight=class_weight, tol=1e-12).fit(X, y, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sklearn.linear_model.LogisticRegression(
            C=0.5, l1_ratio=1.0, solver="saga", class_weight=class_weight, tol=1e-10, max_iter=20_000
        ).fit(X, y, weights)
    assert np.allclose(ours.coef_, peer.coef_, atol=1e-6)
    assert np.allclose(ours.intercept_, peer.intercept_, atol=1e-6)


def test_all_forms_agree():
    sparse = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    models = [LogisticRegression(tol=1e-12).fit(form(sparse), Y) for form in FORMS.values()]
    assert all(np.allclose(model.coef_, models[0].coef_, atol=1e-6) for model in models)


def test_up_to_the_smallest_c_all_coefficients_are_0():
    smallest = l1_min_c(X, Y)
    model = LogisticRegression(C=smallest * 0.999999).fit(X, Y)
    assert not model.coef_.any()
    share = np.mean(Y == "yes")
    assert model.intercept_[0] == pytest.approx(np.log(share / (1 - share)))
    assert np.count_nonzero(LogisticRegression(C=smallest * 1.001, tol=1e-9).fit(X, Y).coef_) == 1


def test_separable_classes():
    y = X[:, 0] > 0
    model = LogisticRegression(C=100.0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.history_[-1]["relative_gap"] <= 1e-6


def test_warm_start():
    model = LogisticRegression(C=1.0, tol=1e-9, warm_start=True).fit(X, Y)
    model.set_params(C=1.01).fit(X, Y)
    assert model.history_[0]["relative_gap"] < 0.1
    assert np.allclose(model.coef_, LogisticRegression(C=1.01, tol=1e-9).fit(X, Y).coef_, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_warm_starts_go_on_from_the_coefficients(l1_ratio, classes, fit_intercept):
    labels = np.digitize(Z, [-0.5, 0.5]) if classes == 3 else Y
    far = X + 1e6 * fit_intercept * (np.arange(X.shape[1]) == 1)  # a column that is moved towards 0
    options = {"l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "tol": 1e-9}
    expected = LogisticRegression(**options).fit(far, labels)
    model = LogisticRegression(**options, warm_start=True, max_iter=3).fit(far, labels)
    near = model.history_[-1]["objective"]
    model.fit(far, labels)
    assert model.history_[0]["objective"] <= near * (1 + 1e-9)
    model.set_params(max_iter=1000).fit(far, labels)
    np.testing.assert_allclose(model.predict_proba(far), expected.predict_proba(far), atol=1e-3)
    assert model.fit(far, labels).n_iter_.tolist() == [1]
    if classes == 3 or l1_ratio == 0.0:
        with pytest.raises(strads.InputError, match="warm_start=True, and the earlier fit had"):
            model.fit(far[:, 1:], labels)


def test_a_warm_start_from_more_classes_is_refused():
    message = f"had coefficients of shape (3, {X.shape[1]}), but X and y ask for (1, "
    for wide in (X, np.hstack([X] * 3)):  # as many features as there were coefficients
        model = LogisticRegression(warm_start=True).fit(X, np.digitize(Z, [-0.5, 0.5]))
        with pytest.raises(strads.InputError, match=re.escape(f"{message}{wide.shape[1]}): fit a new estimator")):
            model.fit(wide, Y)


def test_a_warm_start_that_is_worse_than_0():
    model = LogisticRegression(C=1.0, warm_start=True).fit(X, Y)
    far = model.fit(1e6 * X, Y)
    assert far.history_[-1]["relative_gap"] <= 1e-6
    assert far.n_iter_ == LogisticRegression(C=1.0).fit(1e6 * X, Y).n_iter_


def test_without_enough_iterations_it_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"LogisticRegression did not converge in 1 iteration:"):
        LogisticRegression(C=100.0, max_iter=1, tol=1e-12).fit(X, Y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.full(120, "yes"), strads.InputError, "only one class, 'yes': give samples of two classes"),
        (Z, strads.InputError, "continuous"),
        (Y[:-1], strads.InputError, "X has 120 rows, but y has 119"),
        (None, strads.InputError, "requires y"),
        (np.where(np.arange(120) == 3, np.nan, 1.0), strads.InputError, "NaN"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        LogisticRegression().fit(X, y)


@pytest.mark.parametrize("form", ["Fortran order", "CSC"])
def test_not_finite(form):
    bad = X.copy()
    bad[17, 4] = np.nan
    with pytest.raises(strads.InputError, match="X contains NaN in row 17, column 4"):
        LogisticRegression().fit(FORMS[form](bad), Y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": 0.0}, strads.ArgumentError, "C=0.0"),
        ({"C": float("-inf")}, strads.ArgumentError, "C=-inf"),
        ({"penalty": "ridge"}, strads.ArgumentError, "penalty='ridge' is unknown; choose one of l1, l2, elasticnet"),
        ({"l1_ratio": 0.5, "penalty": "l1"}, strads.ArgumentError, 'l1_ratio=0.5 is not penalty="l1"'),
        ({"l1_ratio": -0.5}, strads.ArgumentError, "l1_ratio=-0.5: give a number from 0 to 1"),
        ({"penalty": "l2", "standardize": True}, strads.ArgumentError, "put a StandardScaler in front"),
        ({"C": float("inf"), "solver": WorkingSet()}, strads.ArgumentError, "is for penalties with an ℓ1 norm"),
        ({"class_weight": "equal"}, strads.ArgumentError, "class_weight='equal'"),
        ({"class_weight": {"maybe": 2.0}}, strads.InputError, "no class 'maybe' in y, but 'no' and 'yes'"),
        ({"class_weight": {"yes": -2.0}}, strads.ArgumentError, "class_weight of 'yes' is -2.0"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        LogisticRegression(**parameters).fit(X, Y)


@pytest.mark.few(4)
@pytest.mark.nodes
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", ["C order", "CSC"])
@pytest.mark.parametrize("C", [0.01, 30.0, np.inf])
def test_ridge_and_no_penalty_as_in_scikit_learn(runtime, C, form, fit_intercept):
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(X))
    labels = np.where(np.random.default_rng(2).random(len(X)) < 0.2, "no", Y)  # not separable
    options = {"C": C, "fit_intercept": fit_intercept, "class_weight": {"no": 2.0}}
    model = LogisticRegression(l1_ratio=0.0, tol=1e-11, **options).fit(FORMS[form](X), labels, weights)
    peer = sklearn.linear_model.LogisticRegression(tol=1e-10, max_iter=10_000, **options).fit(X, labels, weights)
    assert np.allclose(model.coef_, peer.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, peer.intercept_, atol=1e-4)
    same = LogisticRegression(None if np.isinf(C) else "l2", tol=1e-11, **options).fit(FORMS[form](X), labels, weights)
    assert same.coef_.tobytes() == model.coef_.tobytes()
    if np.isinf(C):
        same = LogisticRegression(l1_ratio=0.0, tol=1e-11, **options | {"C": np.float32(C)})
        assert same.fit(FORMS[form](X), labels, weights).coef_.tobytes() == model.coef_.tobytes()
    assert model.coef_.shape == (1, X.shape[1])


def test_the_gap_of_a_ridge_bounds_the_suboptimality(tmp_path):
    def value(model):
        signs, w = np.where(Y == "yes", 1.0, -1.0), model.coef_.ravel()
        return 3.0 * np.logaddexp(0.0, -signs * (X @ w + model.intercept_[0])).sum() + 0.5 * w @ w

    best = value(LogisticRegression("l2", C=3.0, tol=1e-12).fit(X, Y))
    with pytest.warns(ConvergenceWarning, match="in 2 iterations: the relative duality gap is") as warned:
        model = LogisticRegression("l2", C=3.0, max_iter=2).fit(X, Y)
    assert warned[0].filename == __file__
    assert 0.0 < value(model) - best <= model.dual_gap_
    assert model.history_[-1]["objective"] == pytest.approx(value(model), rel=1e-5)
    model.save(tmp_path / "model.npz")
    loaded = LogisticRegression.load(tmp_path / "model.npz")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


def test_paths_need_an_l1_norm():
    with pytest.raises(strads.ArgumentError, match="an ℓ1 penalty is needed"):
        logistic_path(X, Y, l1_ratio=0.0)


def test_a_class_without_weight():
    with pytest.raises(strads.InputError, match=r"all samples of class 'yes' have weight 0"):
        LogisticRegression().fit(X, Y, Y == "no")


def test_conventions_of_scikit_learn():
    check_estimator(LogisticRegression())
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        LogisticRegression().predict_proba(X)


@pytest.mark.few(5)
@pytest.mark.parametrize("form", ["C order", "CSC"])
@pytest.mark.parametrize(
    ("parameters", "peer"),
    [
        ({"l1_ratio": 0.0, "C": 0.3}, {"C": 0.3}),
        ({"l1_ratio": 0.4, "C": 0.5}, {"l1_ratio": 0.4, "C": 0.5}),
        ({"l1_ratio": 0.9, "fit_intercept": False}, {"l1_ratio": 0.9, "fit_intercept": False}),
        ({"C": 0.3, "class_weight": "balanced"}, {"l1_ratio": 1.0, "C": 0.3, "class_weight": "balanced"}),
        ({"penalty": "l1", "fit_intercept": False}, {"l1_ratio": 1.0, "fit_intercept": False}),
        ({"penalty": None}, {"C": np.inf}),
    ],
)
def test_several_classes(parameters, peer, form, tmp_path):
    rng = np.random.default_rng(3)
    labels = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 2.0 * rng.normal(size=(len(X), 3)), axis=1)]
    weights = rng.uniform(0.5, 2.0, len(X))
    model = LogisticRegression(**parameters, tol=1e-9).fit(FORMS[form](X), labels, weights)
    other = sklearn.linear_model.LogisticRegression(
        **peer, solver="saga" if "l1_ratio" in peer else "lbfgs", tol=1e-8, max_iter=100_000
    ).fit(X, labels, weights)
    assert model.coef_.shape == (3, X.shape[1])
    assert np.allclose(model.predict_proba(X), other.predict_proba(X), atol=2e-3)
    if parameters.get("penalty", "") is not None:
        assert np.allclose(model.coef_, other.coef_, atol=2e-3)
    assert np.array_equal(model.predict(X), other.predict(X))
    assert model.decision_function(X).shape == (len(X), 3)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    model.save(tmp_path / "model.npz")
    loaded = LogisticRegression.load(tmp_path / "model.npz")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert loaded.sparsify().predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"standardize": True}, "standardize=True is for two classes"),
        ({"solver": WorkingSet()}, "is for two classes"),
    ],
)
def test_what_is_for_two_classes_only(parameters, message):
    with pytest.raises(strads.ArgumentError, match=message):
        LogisticRegression(**parameters).fit(X, np.arange(120) % 3)


def test_several_classes_one_against_the_rest():
    y = np.digitize(Z, [-1.0, 1.0])
    assert OneVsRestClassifier(LogisticRegression()).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("y", [Y, Y.astype(object), (Y == "yes").astype(int), Y == "yes"])
def test_save_and_load(tmp_path, y):
    weights = {np.unique(y)[1]: 2.0}
    model = LogisticRegression(l1_ratio=0.7, class_weight=weights).fit(X.astype(np.float32), y)
    model.save(tmp_path / "model.npz")
    loaded = LogisticRegression.load(tmp_path / "model.npz")
    assert loaded.get_params() == model.get_params()
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.coef_.shape == (1, 20)
    assert loaded.coef_.dtype == np.float32
    assert loaded.fit(X.astype(np.float32), y).history_[-1]["objective"] == model.history_[-1]["objective"]
