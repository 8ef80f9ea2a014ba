"""Lasso: agreement with scikit-learn, forms of input, what a user can do wrong."""

import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.linear_model
from hypothesis import given, settings
from regression_problems import FORMS, Data, data
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_info

import strads
from strads.models import CoordinateDescent, ElasticNet, Lasso, WorkingSet, alpha_max

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 30))
Y = X[:, :5] @ [3.0, -2.0, 1.5, 1.0, -1.0] + 0.5 * RNG.normal(size=60) + 2.0


def objective(problem: Data, coef: np.ndarray, intercept: float, alpha: float) -> float:
    residuals = problem.y - problem.exact @ coef - intercept
    scaled = coef * problem.scales
    penalty = problem.l1_ratio * np.abs(scaled).sum() + (1 - problem.l1_ratio) / 2 * (scaled**2).sum()
    return float(np.average(residuals**2, weights=problem.weights) / 2 + alpha * penalty)


def fitted(problem: Data, tol: float, **parameters) -> ElasticNet:
    names = ("l1_ratio", "fit_intercept", "standardize", "positive")
    options = {name: getattr(problem, name) for name in names}
    alpha = problem.share * alpha_max(problem.X, problem.y, problem.weights, **options) or 0.1  # 0: none may leave 0
    return ElasticNet(alpha, **options, tol=tol, **parameters).fit(problem.X, problem.y, problem.weights)


def reference(problem: Data, alpha: float) -> tuple[np.ndarray, float]:
    """Coefficients and intercept by scikit-learn."""
    peer = sklearn.linear_model.ElasticNet(
        alpha,
        l1_ratio=problem.l1_ratio,
        fit_intercept=problem.fit_intercept,
        positive=problem.positive,
        tol=1e-14,
        max_iter=200_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # such a gap may be below the rounding
        peer.fit(problem.exact / problem.scales, problem.y, problem.weights)
    return peer.coef_ / problem.scales, peer.intercept_


@settings(max_examples=40)
@given(data())
def test_agrees_with_scikit_learn(problem):
    model = fitted(problem, 1e-12)
    coef, intercept = reference(problem, model.alpha)
    assert model.coef_.dtype == problem.X.dtype
    assert np.allclose(model.coef_, coef, rtol=1e-6, atol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-6, abs=1e-6)
    assert model.history_[-1]["objective"] == pytest.approx(objective(problem, coef, intercept, model.alpha), rel=1e-9)


@settings(max_examples=30)
@given(data())
def test_the_gap_bounds_the_distance_to_the_minimum(problem):
    model = fitted(problem, 1e-3)
    reached = model.history_[-1]["objective"]
    least = objective(problem, *reference(problem, model.alpha), model.alpha)
    null = problem.y - (np.average(problem.y, weights=problem.weights) if problem.fit_intercept else 0.0)
    scale = np.average(null**2, weights=problem.weights) / 2
    assert reached - least <= model.dual_gap_ + 1e-12 * scale
    assert model.dual_gap_ <= 1e-3 * scale
    assert model.history_[-1]["relative_gap"] == pytest.approx(model.dual_gap_ / scale)
    rounding = 1e-12 if problem.X.dtype == np.float64 else 1e-5
    assert objective(problem, model.coef_, model.intercept_, model.alpha) == pytest.approx(reached, rel=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_forms_agree(dtype):
    sparse = np.where(RNG.random(X.shape) < 0.5, X, 0.0).astype(dtype)
    models = [Lasso(0.1, tol=1e-12).fit(form(sparse), Y) for form in FORMS.values()]
    models.append(Lasso(0.1, tol=1e-12).fit(np.repeat(sparse, 2, axis=1)[:, ::2], Y))  # strided
    models.append(Lasso(0.1, tol=1e-12).fit(scipy.sparse.coo_array(sparse), Y.tolist()))
    assert all(model.coef_.dtype == dtype for model in models)
    assert all(np.allclose(model.coef_, models[0].coef_, atol=1e-6) for model in models)
    assert models[0].predict(sparse.tolist()) == pytest.approx(models[0].predict(scipy.sparse.csr_array(sparse)))


def test_indices_of_64_bits():
    sparse = scipy.sparse.csc_array(np.where(RNG.random(X.shape) < 0.5, X, 0.0))
    long = sparse.copy()
    long.indices, long.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    assert np.array_equal(
        Lasso(0.1, standardize=True).fit(long, Y).coef_, Lasso(0.1, standardize=True).fit(sparse, Y).coef_
    )


def test_integers_and_duplicate_entries():
    counts = RNG.integers(0, 3, (60, 8))
    model = Lasso(0.05, tol=1e-12).fit(counts, Y)
    assert model.coef_.dtype == np.float64
    assert np.allclose(model.coef_, Lasso(0.05, tol=1e-12).fit(counts.astype(float), Y).coef_)
    halves = scipy.sparse.csc_array(np.where(RNG.random(X.shape) < 0.3, X, 0.0))
    split = scipy.sparse.csc_array(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), shape=X.shape
    )
    assert np.allclose(Lasso(0.1, tol=1e-12).fit(split, Y).coef_, Lasso(0.1, tol=1e-12).fit(halves, Y).coef_)
    assert split.nnz == 2 * halves.nnz  # the caller's is as it was


@pytest.mark.parametrize("form", ["C order", "Fortran order", "CSC"])
def test_data_are_neither_copied_nor_changed(form, monkeypatch):
    import strads.models.regression.linear_model as linear_model

    seen = []
    monkeypatch.setattr(linear_model, "as_design", lambda X, make=linear_model.as_design: make(seen.append(X) or X))
    given = FORMS[form](X.astype(np.float32))
    (given.data if form == "CSC" else given).flags.writeable = False
    Lasso(0.1, standardize=True).fit(given, Y)
    (used,) = seen
    assert np.shares_memory(used.data, given.data) if form == "CSC" else np.shares_memory(used, given)


def test_weights_are_counts():
    counts = RNG.integers(0, 4, 60)
    weighted = Lasso(0.1, tol=1e-12).fit(X, Y, counts)
    repeated = Lasso(0.1, tol=1e-12).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    assert np.allclose(weighted.coef_, repeated.coef_)
    assert np.allclose(Lasso(0.1, tol=1e-12).fit(X, Y, 5.0).coef_, Lasso(0.1, tol=1e-12).fit(X, Y).coef_)


def test_standardized_columns_have_no_units():
    units = 10.0 ** RNG.integers(-4, 4, 30)
    plain = Lasso(0.1, standardize=True, tol=1e-12).fit(X, Y)
    scaled = Lasso(0.1, standardize=True, tol=1e-12).fit((X + 1.0) * units, Y)
    assert np.allclose(scaled.coef_ * units, plain.coef_)
    assert np.allclose(scaled.predict((X + 1.0) * units), plain.predict(X))


def test_history():
    model = Lasso(0.05, tol=1e-10).fit(X, Y)
    assert [record["iteration"] for record in model.history_] == list(range(1, model.n_iter_ + 1))
    for name in ("seconds", "samples"):
        values = [record[name] for record in model.history_]
        assert values == sorted(values)
    last = model.history_[-1]
    assert last["gap"] == model.dual_gap_
    assert last["relative_gap"] <= 1e-10
    assert last["active"] == np.count_nonzero(model.coef_) == model.sparse_coef_.nnz
    assert model.sparse_coef_.shape == (1, 30)


def test_from_the_largest_alpha_on_all_coefficients_are_0():
    largest = alpha_max(X, Y)
    assert not Lasso(largest * 1.000001).fit(X, Y).coef_.any()
    assert np.count_nonzero(Lasso(largest * 0.999, tol=1e-9).fit(X, Y).coef_) == 1
    assert alpha_max(X, Y, l1_ratio=0.5) == pytest.approx(2 * largest)


def test_warm_start_continues():
    model = Lasso(0.05, tol=1e-9, warm_start=True).fit(X, Y)
    cold = model.history_[-1]["samples"]
    again = model.set_params(alpha=0.0499).fit(X, Y)
    assert again is model
    assert model.history_[0]["relative_gap"] < 0.1
    assert model.history_[-1]["samples"] <= cold
    fresh = Lasso(0.0499, tol=1e-9).fit(X, Y)
    assert np.allclose(model.coef_, fresh.coef_, atol=1e-4)
    with pytest.raises(strads.InputError, match=r"coefficients of shape \(1, 30\), but X and y ask for \(1, 29\)"):
        model.fit(X[:, 1:], Y)


def test_without_enough_iterations_it_warns_with_the_gap():
    with pytest.warns(
        ConvergenceWarning, match=r"Lasso did not converge in 1 iteration: the relative duality gap is .* max_iter=1"
    ):
        model = Lasso(0.001, max_iter=1, tol=1e-12).fit(X, Y)
    assert model.n_iter_ == 1
    assert np.isfinite(model.predict(X)).all()


def test_on_iteration_stops():
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who stops it knows that it has not converged
        model = Lasso(0.001, tol=0.0).fit(X, Y, on_iteration=lambda record: seen.append(record) or len(seen) == 2)
    assert model.n_iter_ == 2
    assert model.history_ == seen


def test_an_interrupt_leaves_what_was_found(tmp_path):
    def press(record):
        if record["iteration"] == 2:
            signal.raise_signal(signal.SIGINT)

    model = Lasso(0.001, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, on_iteration=press)
    assert len(model.history_) == model.n_iter_ == 2
    model.save(tmp_path / "model.npz")
    assert np.array_equal(Lasso.load(tmp_path / "model.npz").predict(X), model.predict(X))


def test_constant_duplicate_and_empty_columns():
    odd = np.column_stack([X, np.full(60, 7.0), X[:, 0], np.zeros(60)])
    for form in FORMS.values():
        for standardize in (False, True):
            model = Lasso(0.1, standardize=standardize, tol=1e-10).fit(form(odd), Y)
            assert np.allclose(model.coef_[[30, 32]], 0.0)
            plain = Lasso(0.1, standardize=standardize, tol=1e-10).fit(X, Y)
            assert np.allclose(model.predict(odd), plain.predict(X), atol=1e-3)


@pytest.mark.parametrize("shape", [(5, 2000), (3000, 3), (1, 1), (2, 1), (1, 20)])
@pytest.mark.parametrize("form", ["Fortran order", "CSC"])
def test_many_more_columns_or_rows(shape, form):
    many = RNG.normal(size=shape)
    model = Lasso(0.1, tol=1e-8).fit(FORMS[form](many), many[:, 0] + 1.0)
    assert model.history_[-1]["relative_gap"] <= 1e-8


@pytest.mark.parametrize("y", [np.zeros(60), np.full(60, 3.0), np.full(60, 0.1)])
def test_a_response_without_variation(y):
    model = Lasso(0.1).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(y[0])
    assert model.dual_gap_ == pytest.approx(0.0, abs=1e-12)


def test_a_response_far_from_0():
    model = Lasso(0.05, tol=1e-9).fit(X, Y + 1e7)
    assert 0.0 <= model.history_[-1]["relative_gap"] <= 1e-9
    assert np.allclose(model.coef_, Lasso(0.05, tol=1e-12).fit(X, Y).coef_, atol=1e-4)


@pytest.mark.parametrize("form", ["C order", "CSC"])
def test_a_column_that_was_not_constant_before(form):
    model = Lasso(0.05, tol=1e-9, warm_start=True).fit(X, Y)
    changed = X.copy()
    changed[:, 0] = 2.0
    assert model.coef_[0]
    model.fit(FORMS[form](changed), Y)
    assert model.coef_[0] == 0.0
    assert model.history_[-1]["relative_gap"] <= 1e-9


@pytest.mark.parametrize("form", ["C order", "Fortran order", "CSC", "CSR"])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("standardize", [False, True])
def test_not_finite(form, value, name, standardize):
    bad = X.copy()
    bad[17, 4] = bad[20, 3] = value
    with pytest.raises(strads.InputError, match=f"X contains {name} in row 17, column 4"):
        Lasso(0.1, standardize=standardize).fit(FORMS[form](bad), Y)


def test_not_finite_with_a_warm_start():
    model = Lasso(0.05, warm_start=True).fit(X, Y)
    bad = X.copy()
    bad[17, 0] = np.nan
    with pytest.raises(strads.InputError, match="X contains NaN in row 17, column 0"):
        model.fit(bad, Y)


def test_not_finite_columns_are_named():
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(30)])
    model = Lasso(0.1).fit(frame, Y)
    assert model.feature_names_in_[3] == "gene 3"
    frame.iloc[3, 2] = np.nan
    with pytest.raises(strads.InputError, match=r"row 3, column 2 \('gene 2'\)"):
        model.fit(frame, Y)


@pytest.mark.parametrize("form", ["C order", "CSC"])
def test_overflow(form):
    huge = X.copy()
    huge[1, 2] = 1e200
    with pytest.raises(strads.InputError, match=r"X is too large to compute with: 1e\+200 in row 1, column 2"):
        Lasso(0.1, max_iter=5).fit(FORMS[form](huge), Y)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (X, Y[:-1], strads.InputError, "X has 60 rows, but y has 59 entries"),
        (X, None, strads.InputError, "requires y"),
        (X, np.where(np.arange(60) == 7, np.nan, Y), strads.InputError, "y: entry 7 is nan"),
        (X, np.where(np.arange(60) == 7, np.inf, Y), strads.InputError, "y: entry 7 is inf"),
        (X, np.stack([Y, Y], axis=1), strads.InputError, "1d array"),
        (X, ["a"] * 60, strads.InputError, "could not convert string"),
        (X[:0], Y[:0], strads.InputError, "0 sample"),
        (X[:, :0], Y, strads.InputError, r"0 feature"),
        (X[0], Y[:1], strads.InputError, "Reshape your data"),
        (X * 1j, Y, strads.InputError, "Complex data not supported"),
        ([["a"]] * 60, Y, strads.InputError, "could not convert string"),
    ],
)
def test_bad_data(X, y, error, message):
    with pytest.raises(error, match=message):
        Lasso().fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(59), "59 weights, but X has 60 rows"),
        (np.where(np.arange(60) == 3, -1.0, 1.0), "sample_weight: entry 3 is -1"),
        (np.where(np.arange(60) == 3, np.nan, 1.0), "sample_weight: entry 3 is nan"),
        (np.zeros(60), "all weights are zero"),
        (np.ones((60, 2)), "1D array"),
        (-1.0, "entry 0 is -1"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(strads.InputError, match=message):
        Lasso().fit(X, Y, weights)


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1.0},
        {"alpha": float("nan")},
        {"alpha": "auto"},
        {"l1_ratio": -0.1},
        {"l1_ratio": 1.1},
        {"l1_ratio": None},
        {"solver": "fastest"},
        {"solver": WorkingSet},
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"tol": -1e-6},
        {"tol": float("inf")},
    ],
)
def test_bad_parameters(parameters):
    (name,) = parameters
    with pytest.raises(strads.ArgumentError, match=name):
        ElasticNet(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"schedule": "fastest"},
        {"schedule": None},
        {"concurrency": 0},
        {"pipeline_depth": 0},
        {"threshold": 0.0},
        {"random_state": -1},
        {"random_state": "0"},
    ],
)
def test_bad_parameters_of_a_solver(parameters):
    (name,) = parameters
    with pytest.raises(strads.ArgumentError, match=name):
        CoordinateDescent(**parameters)


def test_prediction_needs_a_fit_and_the_same_columns():
    for use in (lambda m: m.predict(X), lambda m: m.sparse_coef_, lambda m: m.save("nowhere.npz")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            use(Lasso())
    model = Lasso(0.1).fit(X, Y)
    with pytest.raises(strads.InputError, match="29 features"):
        model.predict(X[:, 1:])
    with pytest.raises(strads.InputError, match="NaN"):
        model.predict(np.full((1, 30), np.nan))


def test_conventions_of_scikit_learn():
    check_estimator(Lasso())
    check_estimator(ElasticNet())
    model = Lasso(0.1, tol=1e-9).fit(X, Y)
    assert clone(model).get_params() == model.get_params()
    assert model.score(X, Y) > 0.95


def test_new_parameters_do_not_change_what_was_fitted():
    model = Lasso(0.1).fit(X, Y)
    before = model.predict(X)
    model.set_params(alpha=5.0, fit_intercept=False)
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("dtype", "solver"), [(np.float32, WorkingSet()), (np.float64, CoordinateDescent(concurrency=4))], ids=["f4", "f8"]
)
def test_save_and_load(tmp_path, dtype, solver):
    frame = pd.DataFrame(X.astype(dtype), columns=[f"gene {j}" for j in range(30)])
    model = ElasticNet(np.float64(0.1), l1_ratio=0.9, solver=solver).fit(frame, Y)
    model.save(tmp_path / "model.npz")
    loaded = ElasticNet.load(tmp_path / "model.npz")
    assert loaded.get_params() == model.get_params()
    assert loaded.coef_.dtype == dtype
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert (loaded.history_, loaded.n_iter_, loaded.dual_gap_) == (model.history_, model.n_iter_, model.dual_gap_)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.npz"]


def test_a_schedule_that_is_code_cannot_be_saved(tmp_path):
    model = Lasso(0.1).fit(X, Y).set_params(solver=CoordinateDescent(lambda *arguments: None))
    with pytest.raises(strads.ArgumentError, match="schedule is a function"):
        model.save(tmp_path / "model.npz")


def test_damaged_files(tmp_path):
    path = tmp_path / "model.npz"
    Lasso(0.1).fit(X, Y).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for changes in ({"coef": None}, {"coef": np.zeros((2, 2))}, {"intercept": np.zeros(3)}, {"coef": np.array(["a"])}):
        kept = {name: value for name, value in (arrays | changes).items() if value is not None}
        np.savez(path, **kept)
        with pytest.raises(strads.InputError, match="incomplete"):
            Lasso.load(path)
    np.savez(path, **arrays)
    with pytest.raises(strads.InputError, match="holds a Lasso"):
        strads.models.LogisticRegression.load(path)


@pytest.mark.parametrize("schedule", ["cyclic", "random", "priority", "resting", "violation"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array])
@pytest.mark.parametrize("size", [1, 2])
def test_every_schedule_refuses_what_is_not_finite(schedule, form, size):
    X = np.random.default_rng(0).normal(size=(20, 5))
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        X[3, 2] = value
        with strads.init(nodes=size), pytest.raises(strads.InputError, match=f"{name} in row 3, column 2"):
            Lasso(0.1, solver=CoordinateDescent(schedule)).fit(form(X), np.arange(20))


def test_values_of_any_size():
    model = Lasso().fit([[0.0], [1e20]], [0, 1])
    np.testing.assert_allclose(model.coef_, 1e-20)


def test_warm_start_at_given_coefficients():
    X = np.random.default_rng(0).normal(size=(50, 5))
    y = X[:, 0]
    model = Lasso(0.1, warm_start=True)
    model.coef_ = np.array([0.9, 0.0, 0.0, 0.0, 0.0])
    given = model.fit(X, y)
    assert given.history_[0]["active"] == 1
    np.testing.assert_allclose(given.coef_, Lasso(0.1).fit(X, y).coef_, atol=1e-6)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_random_states(random_state, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 5))
    model = Lasso(0.1, solver=CoordinateDescent("random", random_state=random_state)).fit(X, X[:, 0])
    model.save(tmp_path / "model.npz")
    assert Lasso.load(tmp_path / "model.npz").solver.random_state is None


def test_fits_at_once_leave_blas_its_threads():
    X = np.random.default_rng(0).normal(size=(100, 150))

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda alpha: Lasso(alpha).fit(X, X[:, 0]), np.geomspace(1e-3, 0.5, 16)))
    assert threads() == before
