"""BayesianPersonalizedRanking: it finds what users like, says what is wrong, and can be interrupted, saved and read."""

import gzip

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import strads
from strads.errors import ArgumentError, InputError
from strads.models import BayesianPersonalizedRanking

GROUPS = 4


def planted(users: int = 200, items: int = 120, each: int = 14, seed: int = 0) -> tuple:
    """Likes of items of the user's own group, in half of which each user is held out."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(np.arange(user % GROUPS, items, GROUPS), each, replace=False) for user in range(users)]
    pairs = np.stack([np.repeat(np.arange(users), each), np.concatenate(chosen)], 1)
    held = rng.random(len(pairs)) < 0.25
    return pairs[~held], pairs[held]


def model(**parameters: object) -> BayesianPersonalizedRanking:
    defaults = {"factors": 8, "learning_rate": 0.1, "iterations": 30, "n_workers": 3}
    return BayesianPersonalizedRanking(**{**defaults, **parameters})


@pytest.fixture(scope="module")
def fitted() -> BayesianPersonalizedRanking:
    return model().fit(planted()[0])


def test_it_recommends_items_of_the_user_s_group(fitted):
    known, held_out = planted()
    assert fitted.auc(held_out) > 0.91  # 16 of the 106 others cannot be told from what is held out: 0.925 at best
    ids, scores = fitted.recommend(np.arange(200), N=5)
    assert ids.shape == scores.shape == (200, 5)
    assert np.mean(ids % GROUPS == np.arange(200)[:, None] % GROUPS) > 0.95
    assert (np.diff(scores) <= 0).all()
    likes = {tuple(pair) for pair in known.tolist()}
    assert not any((user, item) in likes for user in range(200) for item in ids[user].tolist())


def test_one_user_or_many_get_the_same(fitted):
    many = fitted.recommend([3, 5], N=4)
    for place, user in enumerate((3, 5)):
        ids, scores = fitted.recommend(user, N=4)
        assert ids.tolist() == many[0][place].tolist()
        np.testing.assert_allclose(scores, many[1][place], rtol=1e-5)
        expected = fitted.item_factors_[ids] @ fitted.user_factors_[user] + fitted.item_biases_[ids]
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


def test_which_items_are_candidates(fitted):
    known = planted()[0]
    own = known[known[:, 0] == 7, 1]
    free = fitted.recommend(7, N=120, filter_already_liked_items=False)[0]
    assert sorted(free.tolist()) == list(range(120))
    assert set(fitted.recommend(7, N=120)[0]) == set(range(120)) - set(own)
    best = free[:3].tolist()
    assert not set(fitted.recommend(7, N=9, filter_items=best)[0]) & set(best)
    some = [2, 9, 70]
    assert set(fitted.recommend(7, N=9, items=some, filter_already_liked_items=False)[0]) == set(some)
    other = scipy.sparse.csr_array((np.ones(3), ([0, 0, 0], best)), shape=(1, 120))
    assert set(fitted.recommend(7, other, N=120)[0]) == set(range(120)) - set(best)
    ids, scores = fitted.recommend([7, 8], N=3, items=own[:1])
    assert (ids[0] == -1).all()
    assert (scores[0] == -np.inf).all()


def test_similar_items_and_users(fitted):
    ids, cosines = fitted.similar_items(10, N=6)
    assert ids[0] == 10
    assert cosines[0] == pytest.approx(1.0, abs=1e-5)
    assert (ids % GROUPS == 10 % GROUPS).all()
    ids, _ = fitted.similar_users([4, 9], N=6)
    assert ids[:, 0].tolist() == [4, 9]
    assert (ids % GROUPS == np.array([[0], [1]])).all()


def test_history(fitted):
    likes = len(planted()[0])
    assert [record["iteration"] for record in fitted.history_] == list(range(1, 31))
    assert fitted.history_[-1]["samples"] == 30 * likes
    assert fitted.history_[-1]["objective"] > fitted.history_[0]["objective"]
    assert fitted.history_[-1]["correct"] > 0.9
    assert 0 < fitted.history_[-1]["skipped"] < 0.5


def test_held_out_likes_are_measured_after_each_epoch():
    known, held_out = planted()
    found = model(iterations=3).fit(known, validation=held_out)
    assert found.history_[-1]["validation_auc"] == pytest.approx(found.auc(held_out))
    assert found.score(held_out) == found.auc(held_out)


def test_equal_seeds_equal_models(fitted):
    known = planted()[0]
    again, other = model(n_jobs=2).fit(known), model(random_state=1).fit(known)
    assert (again.item_factors_ == fitted.item_factors_).all()
    assert (other.item_factors_ != fitted.item_factors_).any()


def test_the_number_of_workers_hardly_matters():
    known, held_out = planted()
    areas = [model(n_workers=workers).fit(known).auc(held_out) for workers in (1, 2, 6)]
    assert max(areas) - min(areas) < 0.02


def test_more_workers_than_anything():
    known, _ = planted(users=6, items=8, each=2)
    found = model(n_workers=9, iterations=3).fit(known)
    assert found.item_ids_.tolist() == np.unique(known[:, 1]).tolist()
    assert found.item_factors_.shape == (len(found.item_ids_), 8)


def test_users_and_items_without_likes_stay_0():
    likes = scipy.sparse.csr_array(([1, 1, 1], ([0, 0, 2], [1, 2, 4])), shape=(4, 6))
    found = model(iterations=2).fit(likes)
    assert not found.user_factors_[[1, 3]].any()
    assert not found.item_factors_[[0, 3, 5]].any()
    assert found.recommend(3, N=6)[0].tolist() == np.lexsort((np.arange(6), -found.item_biases_)).tolist()


def test_a_callback_may_use_the_model_and_stop():
    known, held_out = planted()
    found = model()
    areas: list[float] = []

    def look(record: dict) -> bool:
        areas.append(found.auc(held_out))
        return record["iteration"] == 4

    found.fit(known, on_iteration=look)
    assert found.n_iter_ == len(areas) == 4
    assert areas[-1] == found.auc(held_out)


def test_save_and_load(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    read = BayesianPersonalizedRanking.load(tmp_path / "model.npz")
    assert read.get_params() == fitted.get_params()
    assert read.history_ == fitted.history_
    assert read.recommend(3)[0].tolist() == fitted.recommend(3)[0].tolist()


def test_conventions():
    assert clone(model(factors=3)).factors == 3
    with pytest.raises(NotFittedError):
        model().recommend(0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"factors": 0}, "factors=0"),
        ({"iterations": 2.5}, "iterations=2.5"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"regularization": np.nan}, "regularization"),
        ({"verify_negative_samples": "yes"}, "verify_negative_samples"),
        ({"n_workers": 5000}, "1024 are possible"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_invalid_parameters(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        model(**parameters).fit(planted()[0])


@pytest.mark.parametrize(
    ("likes", "message"),
    [
        (scipy.sparse.csr_array((3, 4)), "there are no likes"),
        (scipy.sparse.csr_array(np.ones((3, 1))), "only one item"),
        (scipy.sparse.csr_array([[1, 1, 1], [0, 0, 0]]), "likes all 3 items"),
    ],
)
def test_likes_that_nothing_can_be_learnt_from(likes, message):
    with pytest.raises(InputError, match=message):
        model().fit(likes)


def test_a_user_who_likes_everything_is_left_as_drawn():
    likes = scipy.sparse.csr_array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0]])
    assert model(n_workers=1).fit(likes).history_[-1]["skipped"] >= 0.5


def test_divergence_is_told():
    with pytest.raises(InputError, match="diverged in epoch 1: use a smaller learning_rate"):
        model(learning_rate=1e9).fit(planted()[0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"userid": 200}, InputError, "id 200 was not in the training data: ids are 0 … 199"),
        ({"userid": -1}, InputError, "id -1"),
        ({"userid": "a"}, InputError, "userid: .* whole numbers, but 'a'"),
        ({"userid": [[1]]}, ArgumentError, "one-dimensional"),
        ({"userid": 0, "N": 0}, ArgumentError, "N=0"),
        ({"userid": 0, "items": []}, ArgumentError, "empty"),
        ({"userid": 0, "items": [120]}, InputError, "id 120"),
        ({"userid": 0, "items": [1], "filter_items": [2]}, ArgumentError, "exclude each other"),
        ({"userid": [0, 1], "user_items": scipy.sparse.csr_array((1, 120))}, ArgumentError, "each of the 2 users"),
    ],
)
def test_invalid_requests(fitted, arguments, error, message):
    with pytest.raises(error, match=message):
        fitted.recommend(**arguments)


def test_movielens(movielens):
    with gzip.open(movielens) as file:
        users, items, *_ = np.loadtxt(file, dtype=int).T - 1
    held = np.random.default_rng(0).random(len(users)) < 0.1
    likes, rest = (scipy.sparse.csr_array((np.ones(m.sum()), (users[m], items[m])), (943, 1682)) for m in (~held, held))
    assert BayesianPersonalizedRanking(32).fit(likes).auc(rest) > 0.889


def test_records_and_logical_nodes_give_the_same():
    known = planted()[0]
    table = np.zeros(len(known), [("user", "i4"), ("item", "i4")])
    table["user"], table["item"] = known.T
    here = model(iterations=6).fit(known)
    with strads.init(nodes=3, threads=1):
        there = model(iterations=6).fit(strads.dvector(table))
    assert (here.user_factors_ == there.user_factors_).all()
    assert (here.item_biases_ == there.item_biases_).all()


def test_no_likes_at_all():
    with pytest.raises(ArgumentError, match="give a SciPy sparse matrix, a table"):
        BayesianPersonalizedRanking().fit(None)
