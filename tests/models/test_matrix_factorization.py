"""MatrixFactorization: what it learns, that the seed alone decides it, and what a user can do wrong."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import strads
from strads.models import MatrixFactorization

N_USERS, N_ITEMS, NOISE = 300, 200, 0.3


def planted(n: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs and scores of rank 3 plus biases, mean 3 and normal noise."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(N_USERS * N_ITEMS, n, replace=False)
    pairs = np.stack(np.divmod(cells, N_ITEMS), axis=1)
    w, h = rng.normal(0, 0.7, (N_USERS, 3)), rng.normal(0, 0.7, (N_ITEMS, 3))
    user_bias, item_bias = rng.normal(0, 0.5, N_USERS), rng.normal(0, 0.5, N_ITEMS)
    users, items = pairs.T
    scores = 3 + user_bias[users] + item_bias[items] + (w[users] * h[items]).sum(1)
    return pairs, scores + rng.normal(0, NOISE, n)


PAIRS, SCORES = planted()
TRAIN, TEST = slice(0, 18_000), slice(18_000, None)


def small(**parameters) -> MatrixFactorization:
    return MatrixFactorization(**{"n_components": 4, "max_iter": 3, **parameters})


@pytest.fixture(scope="module")
def fitted() -> MatrixFactorization:
    return small().fit(PAIRS[TRAIN], SCORES[TRAIN])


@pytest.mark.parametrize(("step", "rate", "epochs"), [("adagrad", 0.1, 60), ("constant", 0.02, 60)])
@pytest.mark.parametrize("biases", [True, False])
def test_planted_factors_are_learnt(step, rate, epochs, biases):
    model = MatrixFactorization(
        4 if biases else 6,
        max_iter=epochs,
        step=step,
        learning_rate=rate,
        regularization=0.02,
        biases=biases,
    )
    model.fit(PAIRS[TRAIN], SCORES[TRAIN])
    error = model.rmse(PAIRS[TEST], SCORES[TEST])
    assert error < 1.5 * NOISE
    assert error < 0.5 * SCORES[TEST].std()
    assert error == pytest.approx(np.sqrt(np.mean((model.predict(PAIRS[TEST]) - SCORES[TEST]) ** 2)), rel=1e-4)
    assert model.score(PAIRS[TEST], SCORES[TEST]) == pytest.approx(1 - error**2 / SCORES[TEST].var(), abs=1e-3)
    assert (model.mean_ != 0) == biases
    assert model.user_biases_.any() == biases


def test_attributes_make_up_the_prediction(fitted):
    users, items = PAIRS[:50].T
    by_hand = (
        fitted.mean_
        + fitted.user_biases_[users]
        + fitted.item_biases_[items]
        + (fitted.user_factors_[users] * fitted.item_factors_[items]).sum(1)
    )
    predicted = fitted.predict(PAIRS[:50])
    assert predicted.dtype == np.float32
    assert np.allclose(predicted, by_hand, rtol=1e-5)
    assert fitted.user_factors_.shape == (N_USERS, 4)
    assert fitted.item_factors_.shape == (N_ITEMS, 4)
    assert fitted.mean_ == pytest.approx(SCORES[TRAIN].mean(), rel=1e-6)


def test_history(fitted):
    assert [record["iteration"] for record in fitted.history_] == [1, 2, 3]
    assert [record["samples"] for record in fitted.history_] == [18_000, 36_000, 54_000]
    seconds = [record["seconds"] for record in fitted.history_]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    objectives = [record["objective"] for record in fitted.history_]
    assert objectives == sorted(objectives, reverse=True)
    assert all(record["rmse"] == pytest.approx(record["objective"] ** 0.5) for record in fitted.history_)
    assert all("validation_rmse" not in record for record in fitted.history_)
    assert fitted.n_iter_ == 3


@pytest.mark.parametrize("step", ["adagrad", "constant"])
def test_bits_depend_on_the_seed_alone(step):
    def bits(seed: int, threads: int) -> bytes:
        model = small(step=step, learning_rate=0.01, random_state=seed, n_jobs=threads)
        return model.fit(PAIRS, SCORES).predict(PAIRS[:1000]).tobytes()

    first = bits(0, 1)
    assert bits(0, 1) == first
    assert bits(0, 2) == first
    assert bits(0, 3) == first
    assert bits(1, 1) != first


def test_fitting_again_starts_anew(fitted):
    again = clone(fitted).fit(PAIRS[:100], SCORES[:100]).fit(PAIRS[TRAIN], SCORES[TRAIN])
    assert np.array_equal(again.predict(PAIRS), fitted.predict(PAIRS))
    assert len(again.history_) == 3


def test_movielens(movielens):
    raw = np.loadtxt(movielens, dtype=np.int64)
    order = np.random.default_rng(0).permutation(len(raw))
    pairs, scores = raw[order, :2], raw[order, 2]
    model = MatrixFactorization().fit(pairs[10_000:], scores[10_000:])
    users, items = len(model.user_factors_), len(model.item_factors_)
    known = (pairs[:10_000, 0] < users) & (pairs[:10_000, 1] < items)
    assert known.mean() > 0.99
    assert model.rmse(pairs[:10_000][known], scores[:10_000][known]) <= 0.925


def test_all_forms_of_ratings_agree(fitted):
    users, items = PAIRS[TRAIN].T
    records = np.rec.fromarrays([users, items, SCORES[TRAIN]], names="user,item,score")
    expected = fitted.predict(PAIRS)
    forms = [
        ((users, items), SCORES[TRAIN]),
        (PAIRS[TRAIN].tolist(), SCORES[TRAIN].tolist()),
        (scipy.sparse.coo_array((SCORES[TRAIN], (users, items))), None),
        (scipy.sparse.coo_matrix((SCORES[TRAIN], (users, items))), None),
        (strads.dvector(records), None),
    ]
    for X, y in forms:
        model = clone(fitted).fit(X, y)
        assert np.allclose(model.predict(PAIRS), expected, atol=1e-4), type(X)
    matrix = scipy.sparse.csr_array((SCORES[TRAIN], (users, items)))  # another order of the ratings
    assert clone(fitted).fit(matrix).rmse(matrix) == pytest.approx(fitted.rmse(matrix), rel=0.02)
    assert np.array_equal(fitted.predict((users, items)), fitted.predict(PAIRS[TRAIN]))
    assert np.array_equal(fitted.predict(strads.dvector(records)), fitted.predict(PAIRS[TRAIN]))


def test_stored_zeros_are_ratings_and_missing_entries_are_not():
    matrix = scipy.sparse.csr_array(([5.0, 0.0, 5.0], ([0, 0, 2], [0, 1, 0])), shape=(3, 4))
    model = small(max_iter=1).fit(matrix)
    assert model.history_[0]["samples"] == 3
    assert model.mean_ == pytest.approx(10 / 3)
    assert model.user_factors_.shape == (3, 4)  # users and items without ratings count too
    assert model.item_factors_.shape == (4, 4)
    assert np.isfinite(model.predict([[1, 3]])).all()


def test_early_stopping_keeps_the_best_epoch():
    overfitting = {
        "max_iter": 60,
        "n_components": 24,
        "learning_rate": 0.1,
        "regularization": 0.0,
        "early_stopping": True,
    }
    pairs, scores = PAIRS[:6000], SCORES[:6000]
    held = PAIRS[TEST], SCORES[TEST]
    model = MatrixFactorization(**overfitting).fit(pairs, scores, validation=held)
    errors = [record["validation_rmse"] for record in model.history_]
    best = int(np.argmin(errors))
    assert model.n_iter_ == len(errors) < 60
    assert best < len(errors) - 1
    assert model.rmse(*held) == pytest.approx(errors[best], rel=1e-5)
    random_part = MatrixFactorization(**overfitting | {"max_iter": 1}).fit(pairs, scores)
    assert random_part.history_[0]["samples"] == 5400
    assert random_part.history_[0]["validation_rmse"] > 0


def test_an_interrupt_of_early_stopping_keeps_the_best_epoch():
    def interrupt(record):
        errors.append(record["validation_rmse"])
        if errors[-1] > min(errors):
            raise KeyboardInterrupt

    errors = []
    held = PAIRS[TEST], SCORES[TEST]
    model = MatrixFactorization(
        24, max_iter=60, learning_rate=0.1, regularization=0.0, early_stopping=True, n_iter_no_change=60
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS[:6000], SCORES[:6000], validation=held, on_iteration=interrupt)
    assert model.rmse(*held) == pytest.approx(min(errors), rel=1e-5)


def test_validation_alone_does_not_stop():
    model = small(max_iter=6).fit(PAIRS[:3000], SCORES[:3000], validation=([[399, 1]], [3.0]))
    assert model.n_iter_ == 6
    assert model.user_ids_[-1] == 399  # held-out ids count
    assert len(model.user_factors_) == len(model.user_ids_) == len(np.unique(PAIRS[:3000, 0])) + 1
    assert all("validation_rmse" in record for record in model.history_)


def test_on_iteration_stops():
    seen = []

    def on_iteration(record):
        seen.append(record["iteration"])
        return record["iteration"] == 2

    model = small(max_iter=10).fit(PAIRS[:3000], SCORES[:3000], on_iteration=on_iteration)
    assert model.n_iter_ == 2
    assert seen[-2:] == [1, 2]


def test_an_interrupted_model_can_be_used(tmp_path):
    def interrupt(record):
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    model = small(max_iter=10, learning_rate_schedule="constant")
    with pytest.raises(KeyboardInterrupt):
        model.fit(PAIRS[TRAIN], SCORES[TRAIN], on_iteration=interrupt)
    assert model.n_iter_ == len(model.history_) == 2
    same = small(max_iter=2, learning_rate_schedule="constant").fit(PAIRS[TRAIN], SCORES[TRAIN])
    assert np.array_equal(model.predict(PAIRS), same.predict(PAIRS))
    model.save(tmp_path / "model.npz")
    assert MatrixFactorization.load(tmp_path / "model.npz").n_iter_ == 2


def test_divergence_is_an_error():
    with pytest.raises(strads.InputError, match=r"diverged in epoch 1: use a smaller learning_rate than 50"):
        small(step="constant", learning_rate=50.0).fit(PAIRS, SCORES)


GOOD = ([0, 1], [1, 0])


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (GOOD, [1.0, np.nan], strads.InputError, r"rating 1 \(user 1, item 0\) has the score nan"),
        (GOOD, [np.inf, 1.0], strads.InputError, r"rating 0 .*score inf"),
        (GOOD, [1e39, 1.0], strads.InputError, r"rating 0 .*score 1e\+39"),
        (
            ([0, 2**63], [1, 0]),
            [1.0, 2.0],
            strads.InputError,
            "row 1: the user id 9223372036854775808 has more than 63 bits",
        ),
        (([0, 1], ["a", None]), [1.0, 2.0], strads.InputError, "row 1: the item id is missing"),
        ((["a", ""], [1, 2]), [1.0, 2.0], strads.InputError, "row 1: the user id is an empty text"),
        ((["a", 3], [1, 2]), [1.0, 2.0], strads.InputError, "row 1: the user id is 3, a int, in a column of texts"),
        ({"who": ["a"], "movieId": [1], "rating": [2.0]}, None, strads.InputError, "hold the user.*'who', 'movieId'"),
        ({"uid": [2], "user_id": [3], "item": [1]}, [2.0], strads.InputError, "several columns may hold the user"),
        (([], []), [], strads.InputError, "there are no ratings"),
        (np.zeros((0, 2), int), [], strads.InputError, "there are no ratings"),
        (scipy.sparse.csr_array((3, 3)), None, strads.InputError, "there are no ratings"),
        (GOOD, [1.0], strads.InputError, "2 pairs of user and item, but 1 scores"),
        (([0, 1], [1]), [1.0, 2.0], strads.InputError, "2 users, but 1 items"),
        (GOOD, [[1.0], [2.0]], strads.ArgumentError, "scores must be a one-dimensional"),
        (GOOD, ["a", "b"], strads.ArgumentError, "array of numbers"),
        (GOOD, None, strads.ArgumentError, "give ratings as"),
        (([0.5, 1], [1, 0]), [1.0, 2.0], strads.ArgumentError, "user ids must be whole numbers"),
        (np.zeros((2, 3), int), [1.0, 2.0], strads.ArgumentError, r"shape \(n, 2\), not \(2, 3\)"),
        (scipy.sparse.eye_array(2), [1.0, 1.0], strads.ArgumentError, "leave y out"),
        (scipy.sparse.eye_array(2, dtype=complex), None, strads.ArgumentError, "complex128"),
        (strads.dvector([[0, 1]]), None, strads.ArgumentError, "need the fields user, item, score"),
    ],
)
def test_bad_ratings(X, y, error, message):
    with pytest.raises(error, match=message):
        small().fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": 2.5},
        {"max_iter": True},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"regularization": -1.0},
        {"regularization": "0.1"},
        {"step": "adam"},
        {"validation_fraction": 1.0},
        {"n_iter_no_change": 0},
        {"tol": -1e-3},
        {"random_state": -1},
        {"random_state": 1.5},
        {"n_jobs": 0},
        {"n_jobs": 1.5},
    ],
)
def test_bad_parameters(parameters):
    (name,) = parameters
    with pytest.raises(strads.ArgumentError, match=name):
        small(**parameters).fit(GOOD, [1.0, 2.0])


def test_bad_validation():
    with pytest.raises(strads.ArgumentError, match="validation"):
        small().fit(GOOD, [1.0, 2.0], validation=(GOOD, [1.0, 2.0], 3))
    with pytest.raises(strads.InputError, match="score nan"):
        small().fit(GOOD, [1.0, 2.0], validation=(GOOD, [1.0, np.nan]))


def test_predict_needs_a_fitted_model_and_known_ids(fitted):
    for use in (lambda m: m.predict([[0, 0]]), lambda m: m.recommend(0), lambda m: m.save("nowhere.npz")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            use(small())
    with pytest.raises(strads.InputError, match=r"row 1: user id 300 was not in the training data: ids are 0 … 299"):
        fitted.predict([[0, 0], [300, 0]])
    with pytest.raises(strads.InputError, match=r"item id -1"):
        fitted.predict([[0, -1]])
    with pytest.raises(strads.InputError, match="user id 300"):
        fitted.recommend(300)
    assert fitted.predict(np.zeros((0, 2), int)).shape == (0,)


def test_recommend(fitted):
    rated = set(PAIRS[TRAIN][PAIRS[TRAIN][:, 0] == 7, 1])
    assert len(rated) > 10
    items, scores = fitted.recommend(7, 5)
    assert len(items) == len(scores) == 5
    assert not rated & set(items)
    everything = fitted.predict((np.full(N_ITEMS, 7), np.arange(N_ITEMS)))
    others = np.array(sorted(set(range(N_ITEMS)) - rated))
    assert items.tolist() == others[np.argsort(-everything[others], kind="stable")][:5].tolist()
    assert np.allclose(scores, everything[items], rtol=1e-5)
    all_items, _ = fitted.recommend(7, 10_000, exclude_rated=False)
    assert sorted(all_items) == list(range(N_ITEMS))
    assert set(fitted.recommend(7, 10_000)[0]) == set(others)
    for n in (0, -1, 2.5, True):
        with pytest.raises(strads.ArgumentError, match="N="):
            fitted.recommend(7, n)
    with pytest.raises(strads.InputError, match="user: the user ids of the model are whole numbers, but '7'"):
        fitted.recommend("7")


def test_recommend_without_remembered_ratings():
    model = small(remember_ratings=False).fit(PAIRS[:3000], SCORES[:3000])
    with pytest.raises(strads.ArgumentError, match="remember_ratings=False"):
        model.recommend(0)
    assert len(model.recommend(0, 3, exclude_rated=False)[0]) == 3


@pytest.mark.parametrize("solver", ["sgd", "ccd"])
def test_recommend_excludes_ratings_that_early_stopping_holds_out(solver):
    model = small(solver=solver, early_stopping=True, max_iter=2).fit(PAIRS[:3000], SCORES[:3000])
    known = model.known_likes().matrix().toarray()
    assert known.sum() == len(np.unique(PAIRS[:3000], axis=0))
    for user in range(20):
        rated = PAIRS[:3000][PAIRS[:3000, 0] == user, 1]
        assert not set(rated) & set(model.recommend(user, 10_000)[0])


def test_recommend_offers_ratings_given_as_validation():
    model = small(max_iter=2).fit(PAIRS[:3000], SCORES[:3000], validation=(PAIRS[3000:4000], SCORES[3000:4000]))
    assert model.known_likes().matrix().sum() == len(np.unique(PAIRS[:3000], axis=0))


def test_parameters_follow_scikit_learn(fitted):
    model = small(step="constant").set_params(n_components=7, random_state=5)
    assert model.get_params()["n_components"] == 7
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(clone(fitted), "user_factors_")
    restored = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(restored.predict(PAIRS), fitted.predict(PAIRS))


def test_new_parameters_do_not_change_what_was_fitted():
    model = small().fit(PAIRS[:3000], SCORES[:3000])
    before = model.predict(PAIRS[:100])
    recommended = model.recommend(0)[0].tolist()
    model.set_params(n_components=50, biases=False)
    assert np.array_equal(model.predict(PAIRS[:100]), before)
    assert model.recommend(0)[0].tolist() == recommended


@pytest.mark.parametrize("remember", [True, False])
def test_save_and_load(tmp_path, remember):
    path = tmp_path / "model.npz"
    model = small(remember_ratings=remember, learning_rate=np.float64(0.1)).fit(PAIRS[:3000], SCORES[:3000])
    model.save(path)
    loaded = MatrixFactorization.load(path)
    assert np.array_equal(loaded.predict(PAIRS[:100]), model.predict(PAIRS[:100]))
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert loaded.n_iter_ == 3
    for exclude in {False, remember}:
        ours, theirs = (m.recommend(3, 9, exclude_rated=exclude) for m in (loaded, model))
        assert np.array_equal(ours[0], theirs[0])
        assert np.array_equal(ours[1], theirs[1])
    assert list(tmp_path.iterdir()) == [path]
    loaded.fit(PAIRS[:3000], SCORES[:3000])
    assert np.array_equal(loaded.predict(PAIRS[:100]), model.predict(PAIRS[:100]))


def test_a_failed_save_leaves_the_file_that_was_there(tmp_path, fitted, monkeypatch):
    path = tmp_path / "model.npz"
    fitted.save(path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        fitted.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _rewrite(path: Path, **changes) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"user,item,score\n1,2,3\n"),
        lambda path: path.write_bytes(path.read_bytes()[:-300]),
        lambda path: path.write_bytes(path.read_bytes()[:4000] + b"\0" * 64 + path.read_bytes()[4064:]),
        lambda path: np.savez(path, a=np.zeros(3)),
        lambda path: np.save(path.open("wb"), np.zeros(3)),
        lambda path: path.write_bytes(pickle.dumps({"kind": "MatrixFactorization"})),
        lambda path: _rewrite(path, header=np.array("[]")),
        lambda path: _rewrite(path, header=np.array("not JSON")),
        lambda path: _rewrite(path, users=None),
        lambda path: _rewrite(path, users=np.zeros((3, 4), np.float32)),
        lambda path: _rewrite(path, items=np.zeros(3, np.float32)),
        lambda path: _rewrite(path, users=np.array([["a"]], object)),
        lambda path: _rewrite(path, rated_items=np.full(18_000, 10**6, np.int32)),
    ],
)
def test_files_that_are_no_models_are_refused(tmp_path, fitted, damage):
    path = tmp_path / "model.npz"
    fitted.save(path)
    damage(path)
    with pytest.raises(strads.InputError, match=r"model\.npz: "):
        MatrixFactorization.load(path)


class Exploit:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code of the file ran')",))


def test_code_in_a_file_does_not_run(tmp_path, fitted):
    path = tmp_path / "model.npz"
    fitted.save(path)
    _rewrite(path, header=np.array([Exploit()], object))
    with pytest.raises(strads.InputError, match="not a model file"):
        MatrixFactorization.load(path)


def test_a_header_that_is_no_text_is_refused(tmp_path, fitted):
    path = tmp_path / "model.npz"
    fitted.save(path)
    _rewrite(path, header=np.array('{"format": 3, "kind": "Matrix\udc6cFactorization", "parameters": {}}'))
    with pytest.raises(strads.InputError, match="not a model file"):
        MatrixFactorization.load(path)


def test_a_model_of_another_class_is_named(tmp_path, fitted):
    class Other(MatrixFactorization):
        pass

    path = tmp_path / "model.npz"
    fitted.save(path)
    with pytest.raises(strads.InputError, match="holds a MatrixFactorization, not a Other"):
        Other.load(path)
