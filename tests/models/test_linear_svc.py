"""LinearSVC against scikit-learn's, which is liblinear."""

import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import LinearSVC as Peer
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.estimator_checks import check_estimator

from strads.engine.dynamic import coordinate_rounds
from strads.errors import ArgumentError, InputError
from strads.models import LinearSVC


def data(seed, kind="dense", dtype=np.float64, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 12)).astype(dtype)
    if kind == "sparse":
        X[rng.uniform(size=X.shape) < 0.6] = 0.0
    y = np.digitize(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=80), np.linspace(-1, 1, classes + 1)[1:-1])
    return (sp.csr_matrix(X) if kind == "sparse" else X), np.array(["no", "perhaps", "yes"])[y]


def stacked(model, row):
    """The coefficients of a class, and that of the constant feature of `intercept_scaling`."""
    intercepts = np.broadcast_to(model.intercept_, len(model.coef_))  # a number without an intercept
    return np.append(model.coef_[row].astype(np.float64), intercepts[row] / model.intercept_scaling)


def objective(X, is_positive, w, weights, options):
    features = sp.csr_matrix(X).astype(np.float64).toarray()
    margins = np.where(is_positive, 1.0, -1.0) * (features @ w[:-1] + options["intercept_scaling"] * w[-1])
    slack = np.maximum(0.0, 1.0 - margins) ** (1 if options["loss"] == "hinge" else 2)
    return 0.5 * w @ w + options["C"] * weights @ slack


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@given(
    st.integers(0, 1000),
    st.sampled_from([2, 3]),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, "balanced", {"no": 3.0}]),
)
@settings(max_examples=5)
def test_agrees_with_scikit_learn(loss, kind, seed, classes, intercept, dtype, class_weight):
    X, y = data(seed, kind, dtype, classes)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    options = {
        "loss": loss,
        "C": 0.1,
        "fit_intercept": intercept,
        "intercept_scaling": 2.0,
        "class_weight": class_weight,
    }
    own = LinearSVC(**options, tol=1e-13, max_iter=100_000).fit(X, y, sample_weight=weights)
    peer = Peer(**options, dual=True, tol=1e-9, max_iter=10**6).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(own.decision_function(X), peer.decision_function(X), atol=1e-3)
    codes = np.searchsorted(own.classes_, y)
    for row, label in enumerate(own.classes_[-len(own.coef_) :]):
        of_class = compute_class_weight(class_weight, classes=own.classes_, y=y, sample_weight=weights)[codes]
        factors = weights * np.where((classes == 2) | (y == label), of_class, 1.0)  # as in liblinear
        ours, theirs = (stacked(model, row) for model in (own, peer))
        reached, found = (objective(X, y == label, w, factors, options) for w in (ours, theirs))
        rounding = reached * (1e-6 if dtype == np.float32 else 1e-12)
        assert reached <= found + own.dual_gap_ + rounding
        # The objective less ½‖w‖² is convex: so far is a solution from the minimum at most.
        above = own.dual_gap_ + rounding, max(found - reached, 0.0) + own.dual_gap_ + rounding
        assert np.linalg.norm(ours - theirs) <= np.sqrt(2.0 * np.array(above)).sum()
    assert own.coef_.dtype == dtype
    assert own.coef_.shape == peer.coef_.shape
    assert own.dual_gap_ <= 1e-6


def test_the_seed_decides_not_the_threads(monkeypatch):
    monkeypatch.setattr(coordinate_rounds, "_WORTH_A_THREAD", 1)  # else so little is for one thread
    X, y = data(1)
    model = LinearSVC(concurrency=2, loss="hinge", C=0.1, tol=1e-3)
    found = [clone(model).set_params(n_jobs=threads).fit(X, y).coef_ for threads in (1, 2, -1)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0] != clone(model).set_params(random_state=1).fit(X, y).coef_).any()


def test_history_and_saving(tmp_path):
    X, y = data(2, classes=3)
    y = np.searchsorted(["no", "perhaps", "yes"], y)
    model = LinearSVC(tol=1e-6, class_weight={1: 2.0}).fit(X, y)
    assert {record["class_index"] for record in model.history_} == {0, 1, 2}
    last = model.history_[-1]
    assert last["objective"] > 0.0
    assert 0 <= last["gap"] <= 1e-6 * len(y)
    assert 0 < last["active"] <= len(y)
    assert model.n_iter_ == max(record["iteration"] for record in model.history_)
    model.save(tmp_path / "model.npz")
    again = LinearSVC.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert clone(model).get_params() == model.get_params()


def test_files_keep_the_names_of_features(tmp_path):
    X, y = data(2)
    X = pd.DataFrame(X, columns=list("abcdefghijkl"))
    LinearSVC().fit(X, y).save(tmp_path / "model.npz")
    LinearSVC.load(tmp_path / "model.npz").predict(X)
    with pytest.raises(InputError, match="feature names"):
        LinearSVC.load(tmp_path / "model.npz").predict(X[X.columns[::-1]])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_gap_bounds_the_distance_to_the_minimum(loss):
    X, y = data(6)
    signs = np.where(y == "perhaps", 1.0, -1.0)
    found = {tol: LinearSVC(C=0.5, loss=loss, tol=tol, max_iter=100_000).fit(X, y) for tol in (1e-2, 1e-12)}

    def objective(model):
        losses = np.maximum(1.0 - signs * model.decision_function(X), 0.0) ** (2 if loss == "squared_hinge" else 1)
        return 0.5 * (model.coef_ @ model.coef_.T).item() + 0.5 * model.intercept_.item() ** 2 + 0.5 * losses.sum()

    rough = found[1e-2]
    assert 0.0 < objective(rough) - objective(found[1e-12]) <= rough.dual_gap_ <= 1e-2 * 0.5 * len(y)
    last = rough.history_[-1]
    assert last["objective"] == pytest.approx(objective(rough), rel=1e-12)
    assert last["gap"] == rough.dual_gap_ == pytest.approx(last["relative_gap"] * 0.5 * len(y))


def test_a_warm_start_goes_on_from_the_last():
    X, y = data(7)
    model = LinearSVC(C=0.1, loss="hinge", warm_start=True, tol=1e-9, max_iter=100_000).fit(X, y)
    assert model.fit(X, y).n_iter_ == 0
    model.set_params(C=0.05).fit(X, y)  # some variables were above the new bound
    expected = LinearSVC(C=0.05, loss="hinge", tol=1e-9, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
    model = LinearSVC(C=1e6, warm_start=True, tol=1e-2, max_iter=10_000).fit(X, y)
    model.set_params(C=1e-3, tol=1e-9).fit(X, y)  # from far below the objective at w = 0
    np.testing.assert_allclose(model.coef_, LinearSVC(C=1e-3, tol=1e-9).fit(X, y).coef_, atol=1e-4)
    with pytest.raises(InputError, match=r"shape \(1, 80\), but 1 problems of 79 samples"):
        model.fit(X[:79], y[:79])


def test_callbacks_and_interrupts_end_a_fit():
    X, y = data(8, classes=3)
    seen = []
    model = LinearSVC(tol=1e-15).fit(X, y, on_iteration=lambda record: seen.append(record) or len(seen) == 3)
    assert seen == model.history_
    assert [record["iteration"] for record in seen] == [0, 1, 2]
    assert model.coef_[0].any()
    assert not model.coef_[1:].any()
    assert model.dual_gap_ == 80.0  # of the classes that it has not come to

    def interrupt(record):
        if record["iteration"] == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        (interrupted := LinearSVC(tol=1e-15)).fit(X, y, on_iteration=interrupt)
    np.testing.assert_array_equal(interrupted.coef_, model.coef_)


def test_data_are_not_changed():
    X, y = data(3, "sparse")
    expected = LinearSVC().fit(X, y).coef_
    for row in range(80):  # the entries of a row in falling order of their columns
        own = slice(X.indptr[row], X.indptr[row + 1])
        X.indices[own], X.data[own] = X.indices[own][::-1].copy(), X.data[own][::-1].copy()
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    X.data.flags.writeable = X.indices.flags.writeable = X.indptr.flags.writeable = False
    before = X.indices.copy()
    np.testing.assert_array_equal(LinearSVC().fit(X, y).coef_, expected)
    np.testing.assert_array_equal(X.indices, before)
    dense, rows = X.toarray(), np.zeros((160, 24))
    rows[::2, ::2] = dense
    peer = Peer(dual=True, tol=1e-9, max_iter=10**6).fit(dense, y)
    np.testing.assert_allclose(LinearSVC(tol=1e-12).fit(rows[::2, ::2], y).coef_, peer.coef_, atol=1e-5)


def test_entries_of_csr_may_be_in_several_parts():
    X, y = data(3)
    parts = sp.csr_matrix((np.repeat(X.ravel() / 8, 8), np.tile(np.arange(96) // 8, 80), np.arange(81) * 96), X.shape)
    np.testing.assert_allclose(
        LinearSVC(C=10.0).fit(parts, y).coef_, LinearSVC(C=10.0).fit(sp.csr_array(X), y).coef_, rtol=1e-9
    )
    assert parts.nnz == 8 * X.size


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_samples_that_have_only_the_intercept_in_common(loss):
    X, y = np.eye(64), np.arange(64) % 3 > 0
    together = LinearSVC(loss=loss, concurrency=16, tol=1e-9, max_iter=10_000).fit(X, y)
    one_by_one = LinearSVC(loss=loss, tol=1e-9, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(together.coef_, one_by_one.coef_, atol=1e-3)
    assert together.history_[-1]["relative_gap"] <= 1e-9


def test_scikit_learns_own_checks():
    within_tol = (
        "two orders of the samples end at two points within tol; weights are compared with scikit-learn's above"
    )
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    check_estimator(LinearSVC(), expected_failed_checks=dict.fromkeys(names, within_tol))


def test_bad_input_is_named():
    X, y = data(4)
    with pytest.raises(InputError, match="y has only one class, 'no'"):
        LinearSVC().fit(X, ["no"] * 80)
    with pytest.raises(InputError, match="contains NaN"):
        LinearSVC().fit(np.where(X > 2.0, np.nan, X), y)
    with pytest.raises(InputError, match="contains NaN"):
        LinearSVC().fit(X, y).predict(np.where(X > 2.0, np.nan, X))
    with pytest.raises(InputError, match="X has 80 rows, but y has 79"):
        LinearSVC().fit(X, y[:79])
    with pytest.raises(InputError, match="too large to compute with: row 0"):
        LinearSVC().fit(1e200 * X, y)
    with pytest.raises(InputError, match="no class 'maybe' in y, but 'no' and 'perhaps'"):
        LinearSVC(class_weight={"maybe": 2.0}).fit(X, y)
    with pytest.raises(ArgumentError, match="class_weight of 'no' is -1"):
        LinearSVC(class_weight={"no": -1}).fit(X, y)
    for name, value in (
        ("C", 0.0),
        ("C", 1e200),
        ("intercept_scaling", 1e200),
        ("tol", -1.0),
        ("max_iter", 0),
        ("loss", "log"),
        ("concurrency", 0),
    ):
        with pytest.raises(ArgumentError, match=name):
            LinearSVC(**{name: value}).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        LinearSVC(tol=1e-15, max_iter=2).fit(X, y)


@pytest.mark.slow
def test_samples_that_depend_on_each_other_are_not_updated_together():
    same = np.ones((50, 1)) + 1e-3 * np.random.default_rng(0).normal(size=(50, 600))
    labels = np.arange(50) % 2
    assert LinearSVC(concurrency=50, C=1e-4).fit(same, labels).dual_gap_ <= 1e-4 * 50 * 1e-4
    same[:, ::2] = 0.0  # of many features only some are looked at: here those that are 0
    with pytest.raises(InputError, match="smaller one"):
        (model := LinearSVC(concurrency=50, C=1e6, fit_intercept=False)).fit(same, labels)
    with pytest.raises(NotFittedError):
        model.predict(same)


def l1_objective(model, X, labels, strengths):
    intercept = np.ravel(model.intercept_)[0]
    z = X @ model.coef_.ravel() + intercept
    weight = abs(intercept) / model.intercept_scaling if model.fit_intercept else 0.0
    return np.abs(model.coef_).sum() + weight + strengths @ np.maximum(1.0 - labels * z, 0.0) ** 2


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("C", [0.02, 1.0])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"intercept_scaling": 10.0}])
def test_l1_reaches_liblinears_objective(kind, C, options):
    X, y = data(3, kind)
    labels, weights = np.where(y == "perhaps", 1.0, -1.0), np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = LinearSVC(C, penalty="l1", tol=1e-9, **options).fit(X, y, weights)
    peer = Peer(penalty="l1", dual=False, C=C, tol=1e-9, max_iter=1_000_000, random_state=0, **options)
    peer.fit(X, y, weights)
    dense_X = X.toarray() if kind == "sparse" else X
    found, best = (l1_objective(each, dense_X, labels, C * weights) for each in (model, peer))
    assert found - best <= model.dual_gap_ + 1e-9 * best
    assert 0 < np.count_nonzero(model.coef_) < 12 or C == 1.0


def test_l1_of_several_classes_warm_starts_and_files(tmp_path):
    X, y = data(5, classes=3)
    model = LinearSVC(0.1, penalty="l1", warm_start=True).fit(X, y)
    assert model.coef_.shape == (3, 12)
    assert np.mean(model.coef_ == 0.0) > 0.2
    assert model.fit(X, y).n_iter_ == 1
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(LinearSVC.load(tmp_path / "model.npz").predict(X), model.predict(X))
    with pytest.raises(InputError, match="warm_start=True, and the earlier fit had coefficients"):
        model.fit(X[:, 1:], y)
    for wrong in ({"loss": "hinge"}, {"concurrency": 4}):
        with pytest.raises(ArgumentError, match='penalty="l1" needs'):
            LinearSVC(penalty="l1", **wrong).fit(X, y)
    with pytest.raises(ArgumentError, match="penalty='l0'"):
        LinearSVC(penalty="l0").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="LinearSVC did not converge in 2 iterations"):
        LinearSVC(penalty="l1", max_iter=2, tol=1e-12).fit(X, y)
    with pytest.raises(InputError, match="contains NaN"):
        LinearSVC(penalty="l1").fit(np.where(X > 2.0, np.nan, X), y)


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_scikit_learns_own_checks_of_l1():
    check_estimator(LinearSVC(penalty="l1", tol=1e-10), on_skip=None)
