"""MultinomialLogisticRegression against scikit-learn's, and against conditions of optimality computed apart."""

import hashlib
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.utils.estimator_checks import check_estimator

import strads
from strads.errors import ArgumentError, InputError
from strads.models import LogisticRegression, MultinomialLogisticRegression
from strads.models.multinomial import lbfgs, preconditioner, row_blocks

NAMES = np.array(["no", "perhaps", "sometimes", "yes"])


def data(seed, kind="dense", dtype=np.float64, classes=3, samples=90, features=11):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, features)).astype(dtype)
    if kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.6] = 0.0
    y = np.digitize(X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=samples), np.linspace(-1, 1, classes + 1)[1:-1])
    return (sp.csr_array(X) if kind == "sparse" else X), NAMES[y]


def objective(model, X, y, weights=None):
    """The objective in double precision, from the coefficients alone."""
    W = model.coef_.astype(np.float64)
    z = X @ W.T + model.intercept_.astype(np.float64)
    weights = np.ones(len(y)) if weights is None else weights
    loss = -(weights * log_softmax(z, axis=1)[np.arange(len(y)), np.searchsorted(model.classes_, y)]).sum()
    penalty = {"l2": 0.5 * (W**2).sum(), "l1": np.abs(W).sum(), None: 0.0}[model.penalty]
    return model.C * loss + penalty


def digest(model):
    content = model.coef_.tobytes() + model.intercept_.tobytes() + repr(model.dual_gap_).encode()
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(
    st.integers(0, 1000),
    st.sampled_from([3, 4]),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, "balanced", {"no": 3.0}]),
    st.sampled_from([0.01, 1.0, 30.0]),
)
@settings(max_examples=8)
def test_ridge_agrees_with_scikit_learn(kind, seed, classes, intercept, dtype, class_weight, C):
    X, y = data(seed, kind, dtype, classes)
    weights = np.random.default_rng(seed).uniform(0.0, 2.0, len(y))
    options = {"C": C, "fit_intercept": intercept, "class_weight": class_weight}
    own = MultinomialLogisticRegression(**options, tol=1e-11).fit(X, y, sample_weight=weights)
    peer = Peer(**options, tol=1e-10, max_iter=10_000).fit(X.astype(np.float64), y, sample_weight=weights)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=2e-4 * max(1.0, np.abs(peer.coef_).max()))
    np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(X.astype(np.float64)), atol=1e-4)
    assert own.coef_.dtype == own.intercept_.dtype == dtype
    assert own.history_[-1]["relative_gap"] <= 1e-11
    if not intercept:
        assert not own.intercept_.any()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(st.integers(0, 1000), st.sampled_from([2, 3, 4]), st.booleans(), st.sampled_from([0.02, 0.2, 3.0]))
@settings(max_examples=8)
def test_l1_satisfies_the_conditions_of_optimality(kind, seed, classes, intercept, C):
    X, y = data(seed, kind, classes=classes)
    weights = np.random.default_rng(seed).uniform(0.0, 2.0, len(y))
    model = MultinomialLogisticRegression("l1", C, fit_intercept=intercept, tol=1e-10).fit(X, y, weights)
    r = C * weights[:, None] * (model.predict_proba(X) - (y[:, None] == model.classes_))
    slopes = np.asarray(X.T @ r).T
    support = model.coef_ != 0.0
    assert np.abs(slopes).max() <= 1.0 + 1e-3
    np.testing.assert_allclose(slopes[support], -np.sign(model.coef_[support]), atol=1e-3)
    if intercept:
        np.testing.assert_allclose(r.sum(0), 0.0, atol=1e-6)
    assert 0.0 <= model.dual_gap_ <= 1e-10 * C * 2.0 * len(y)


def test_l1_agrees_with_saga():
    X, y = data(4)
    own = MultinomialLogisticRegression("l1", 0.3, tol=1e-11).fit(X, y)
    peer = Peer(l1_ratio=1.0, C=0.3, solver="saga", tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-4)


def test_two_classes_are_one_vector_of_logistic_regression():
    X, y = data(5, classes=2)
    two = MultinomialLogisticRegression("l1", 0.3, tol=1e-11).fit(X, y)
    one = LogisticRegression("l1", 0.3, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(two.coef_[1] - two.coef_[0], one.coef_[0], atol=1e-4)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-3)
    ridge = MultinomialLogisticRegression(C=0.2, tol=1e-12).fit(X, y)
    peer = Peer(C=0.4, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ridge.coef_[1] - ridge.coef_[0], peer.coef_[0], atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_gap_bounds_the_distance_to_the_minimum(penalty, intercept):
    X, y = data(6, classes=4)
    options = {"penalty": penalty, "C": 0.5, "fit_intercept": intercept}
    least = objective(MultinomialLogisticRegression(**options, tol=1e-12).fit(X, y), X, y)
    for tol in (1e-1, 1e-2, 1e-3):
        model = MultinomialLogisticRegression(**options, tol=tol).fit(X, y)
        assert -1e-9 <= objective(model, X, y) - least <= model.dual_gap_ + 1e-9
        for limit in (1, 3):
            with pytest.warns(ConvergenceWarning) if limit < model.n_iter_ else _nothing():
                early = clone(model).set_params(max_iter=limit).fit(X, y)
            assert -1e-9 <= objective(early, X, y) - least <= early.dual_gap_ + 1e-9


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.parametrize("intercept", [False, True])
def test_single_precision_ends_in_double(monkeypatch, intercept):
    monkeypatch.setattr(lbfgs, "_WORTH_SINGLE", 1)
    X, y = data(7, classes=4, samples=300)
    single = MultinomialLogisticRegression(C=5.0, fit_intercept=intercept, tol=1e-10).fit(X, y)
    monkeypatch.undo()
    double = MultinomialLogisticRegression(C=5.0, fit_intercept=intercept, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-4)
    assert single.history_[-1]["relative_gap"] <= 1e-10


def test_without_penalty_the_gradient_vanishes():
    X, y = data(8)
    model = MultinomialLogisticRegression(None, tol=1e-7).fit(X, y)
    r = model.predict_proba(X) - (y[:, None] == model.classes_)
    assert np.abs(X.T @ r).max() < 1e-4
    assert model.dual_gap_ == np.inf
    X, y = data(8, samples=12, features=30)  # separable: there is no minimum
    separable = MultinomialLogisticRegression(None, tol=1e-3).fit(X, y)
    assert (separable.predict(X) == y).all()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("worth_single", [1, 1 << 62])
def test_without_penalty_the_minimum_may_be_where_training_starts(monkeypatch, kind, worth_single):
    monkeypatch.setattr(lbfgs, "_WORTH_SINGLE", worth_single)
    half, _ = data(9, kind, samples=100)
    X = (sp.vstack if kind == "sparse" else np.vstack)([half, half])
    y = np.repeat([0, 1], 100)  # does not depend on X
    for classifier in (MultinomialLogisticRegression, LogisticRegression):
        model = classifier(None).fit(X, y)
        assert np.max(model.n_iter_) <= 2
        np.testing.assert_allclose(model.coef_, 0, atol=1e-6)


def test_many_features_are_preconditioned_by_the_diagonal(monkeypatch):
    monkeypatch.setattr(preconditioner, "_MAX_FEATURES", 4)
    for kind in ("dense", "sparse"):
        X, y = data(9, kind)
        diagonal = MultinomialLogisticRegression(tol=1e-10).fit(X, y)
        expected = Peer(tol=1e-10).fit(X, y)
        np.testing.assert_allclose(diagonal.coef_, expected.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("penalty", ["l2", "l1", None])
def test_one_model_for_any_number_of_threads_and_nodes(monkeypatch, penalty, kind):
    monkeypatch.setattr(row_blocks, "_MIN_WORK", 1)  # 16 blocks of rows
    X, y = data(10, kind, classes=4, samples=500)
    found = set()
    for threads in (1, 2, 3, 8, 16):
        found.add(digest(MultinomialLogisticRegression(penalty, n_jobs=threads).fit(X, y)))
    for nodes in (2, 4):
        with strads.init(nodes=nodes, threads=2):
            found.add(digest(MultinomialLogisticRegression(penalty).fit(X, y)))
    assert len(found) == 1


def test_probabilities_and_labels():
    X, y = data(11)
    model = MultinomialLogisticRegression().fit(X, y)
    z = model.decision_function(X)
    assert z.shape == (len(y), 3)
    np.testing.assert_allclose(model.predict_proba(X), softmax(z, axis=1))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    np.testing.assert_array_equal(model.predict(X), NAMES[:3][z.argmax(1)])
    assert model.score(X, y) > 0.6
    codes = np.searchsorted(NAMES, y)
    for labels in (codes * 10 - 5, codes.astype(np.float64), y.astype(object), codes.astype(np.uint8)):
        other = MultinomialLogisticRegression().fit(X, labels)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert set(other.predict(X)) <= set(labels)


def test_weights_count_as_repetitions():
    X, y = data(12)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    for penalty in ("l2", "l1"):
        model = MultinomialLogisticRegression(penalty, tol=1e-11)
        weighted = clone(model).fit(X, y, sample_weight=weights)
        repeated = clone(model).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("penalty", ["l2", "l1", None])
def test_a_class_without_weight_has_no_probability(kind, penalty, tmp_path):
    X, y = data(13, kind, classes=4)
    weights = (y != "perhaps").astype(float)
    options = {"class_weight": "balanced", "tol": 1e-3}
    model = MultinomialLogisticRegression(penalty, **options).fit(X, y, weights)
    rows = np.flatnonzero(weights)
    without = MultinomialLogisticRegression(penalty, **options).fit(X[rows], y[rows])
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.coef_, np.insert(without.coef_, 1, 0, axis=0))
    np.testing.assert_allclose(model.intercept_.sum(), 0, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), np.insert(without.predict_proba(X), 1, 0, axis=1), atol=1e-12)
    model.save(tmp_path / "model.npz")
    loaded = MultinomialLogisticRegression.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict(X), without.predict(X))


def test_a_class_without_weight_and_without_intercepts_is_as_in_scikit_learn():
    X, y = data(14)
    weights = (y != "perhaps").astype(float)
    model = MultinomialLogisticRegression(fit_intercept=False, tol=1e-11).fit(X, y, weights)
    peer = Peer(fit_intercept=False, tol=1e-9, solver="newton-cg").fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)


def test_history_and_saving(tmp_path):
    X, y = data(13)
    model = MultinomialLogisticRegression("l1", 0.2, class_weight={"no": 2.0}).fit(X, y)
    last = model.history_[-1]
    assert last["active"] == np.count_nonzero(model.coef_)
    assert last["gap"] == model.dual_gap_
    assert [record["iteration"] for record in model.history_] == list(range(1, model.n_iter_ + 1))
    model.save(tmp_path / "model.npz")
    again = MultinomialLogisticRegression.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    with pytest.raises(InputError, match="holds a MultinomialLogisticRegression"):
        LogisticRegression.load(tmp_path / "model.npz")


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_callbacks_and_interrupts_end_a_fit(penalty):
    X, y = data(14)
    seen = []
    model = MultinomialLogisticRegression(penalty, C=0.3, tol=0.0)
    model.fit(X, y, on_iteration=lambda record: seen.append(model.score(X, y)) or len(seen) == 2)
    assert model.n_iter_ == len(seen) == 2
    assert seen[-1] == model.score(X, y)

    def interrupt(record):
        if record["iteration"] == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, on_iteration=interrupt)
    assert model.predict(X).shape == y.shape


def test_constant_and_empty_columns_get_no_coefficient():
    X, y = data(15)
    X[:, 2] = 0.0
    for penalty in ("l2", "l1"):
        model = MultinomialLogisticRegression(penalty).fit(X, y)
        np.testing.assert_allclose(model.coef_[:, 2], 0.0, atol=1e-9)
    nothing = MultinomialLogisticRegression("l1", C=1e-4).fit(X, y)
    assert not nothing.coef_.any()
    shares = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(nothing.predict_proba(X[:1])[0], shares)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"penalty": "elasticnet"}, "penalty='elasticnet' is unknown"),
        ({"C": 0.0}, "C=0.0"),
        ({"C": np.nan}, "C=nan"),
        ({"C": 1e200}, "1e\\+100 at most"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"class_weight": "even"}, "class_weight='even'"),
    ],
)
def test_bad_parameters(options, problem):
    X, y = data(16)
    with pytest.raises(ArgumentError, match=problem):
        MultinomialLogisticRegression(**options).fit(X, y)


def test_bad_data():
    X, y = data(17)
    model = MultinomialLogisticRegression()
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(InputError, match="only one class, 'no'"):
        model.fit(X, ["no"] * len(y))
    with pytest.raises(InputError, match="X has 90 rows, but y has 89"):
        model.fit(X, y[:-1])
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = X.copy()
        bad[3, 4] = value
        with pytest.raises(InputError, match=name):
            model.fit(bad, y)
    for weight, problem in ((-1.0, "entry 0 is -1.0"), (np.nan, "entry 0 is nan")):
        with pytest.raises(InputError, match=problem):
            model.fit(X, y, sample_weight=np.where(np.arange(len(y)) == 0, weight, 1.0))
    with pytest.raises(InputError, match="all samples of class 'no' have weight 0"):
        model.fit(X, y, sample_weight=(y == "perhaps").astype(float))
    with pytest.raises(InputError, match="89 weights, but X has 90 rows"):
        model.fit(X, y, sample_weight=np.ones(89))
    for penalty in ("l2", "l1"):
        with pytest.raises(InputError, match="too large to compute with"):
            MultinomialLogisticRegression(penalty).fit(X * 1e300, y)
    with pytest.raises(InputError, match="features"):
        model.fit(X, y).predict(X[:, :-1])


@pytest.mark.few(1)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_follows_the_conventions_of_scikit_learn(penalty):
    check_estimator(MultinomialLogisticRegression(penalty, tol={"l2": 1e-20, "l1": 1e-12}[penalty]))


@pytest.mark.parametrize(("features", "samples", "most"), [(200, 4000, 9), (40, 20_000, 36)])
def test_a_sample_of_the_rows_does_not_mislead_the_first_steps(features, samples, most):
    """Independent features looked correlated in four rows for each; skewed ones need more rows than that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, features))
    if features == 40:
        X = np.exp(1.5 * X)
    W = rng.normal(size=(features, 3)) / np.std(X) / np.sqrt(features)
    y = (X @ W + rng.gumbel(size=(samples, 3))).argmax(1)
    assert len(MultinomialLogisticRegression(max_iter=500).fit(X, y).history_) <= most
