"""Ids of users and items: whole numbers and texts of any kind, the rows of a model, tables, and files."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

import strads
from strads.errors import InputError
from strads.models import BayesianPersonalizedRanking, MatrixFactorization
from strads.models.interactions.column_names import choose, role_of
from strads.models.interactions.id_column import IdColumn, is_whole_number
from strads.models.interactions.id_index import IdIndex

NUMBERS = st.lists(st.one_of(st.integers(0, 9), st.integers(-(2**63), 2**63 - 1)), max_size=30)
TEXTS = st.lists(st.text(min_size=1, max_size=4), max_size=30)
KINDS = {
    "list": lambda ids: ids,
    "array": lambda ids: np.array(ids) if ids else np.zeros(0, int),
    "objects": lambda ids: np.array(ids, object),
    "arrow": lambda ids: pa.array(ids) if ids else pa.array([], pa.int64()),
    "dictionary": lambda ids: (
        pa.chunked_array([pa.array(ids).dictionary_encode()]) if ids else pa.array([], pa.int64())
    ),
}


@settings(deadline=None, max_examples=200)
@given(batches=st.lists(NUMBERS, max_size=4) | st.lists(TEXTS, max_size=4), kind=st.sampled_from(sorted(KINDS)))
def test_an_index_gives_each_id_a_row(batches, kind):
    batches = [[each.replace("\0", "0") for each in ids] if ids and isinstance(ids[0], str) else ids for ids in batches]
    index, known = IdIndex("user"), {}
    for ids in batches:
        column = IdColumn.of("user", KINDS[kind](ids))
        numbered = index.number(column)
        expected = dict(known)
        for each in sorted(set(ids) - set(known)):
            expected[each] = len(expected)
        assert numbered.rows.tolist() == [expected[each] for each in ids]
        assert index.rows(column).tolist() == [known.get(each, -1) for each in ids]
        assert len(index) == len(known)
        index.append(numbered)
        known = expected
        assert index.names.tolist() == list(known)
        assert index.known_rows(column).tolist() == numbered.rows.tolist()
    again = IdIndex.restored("user", index.saved(), len(index))
    assert again.names.tolist() == list(known)
    assert again.are_texts == index.are_texts


def test_ids_that_are_the_numbers_of_rows_cost_nothing():
    index = IdIndex("user")
    ids = np.array([2, 0, 1, 2], np.int32)
    numbered = index.number(IdColumn.of("user", ids))
    assert numbered.rows is ids
    index.append(numbered)
    assert index.is_plain
    index.append(index.number(IdColumn.of("user", [3, 4])))
    assert index.is_plain
    index.append(index.number(IdColumn.of("user", [9, -1])))
    assert index.names.tolist() == [0, 1, 2, 3, 4, -1, 9]


@pytest.mark.parametrize("texts", [["7", "-3", "0"], ["9223372036854775807"]])
def test_texts_of_a_file_that_are_whole_numbers_are_numbers(texts):
    found = IdColumn.of("user", texts).with_numbers()
    assert [found.id_of(row) for row in range(len(texts))] == list(map(int, texts))


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_texts_in_any_layout_of_arrow(kind):
    if not hasattr(pa, kind):
        pytest.skip("an older Arrow")
    texts = pa.array(["é", "a b", "é"], getattr(pa, kind)())
    for values in (texts, pa.chunked_array([texts[:1], texts[1:]]), texts.dictionary_encode()):
        assert [IdColumn.of("user", values).id_of(row) for row in range(3)] == texts.to_pylist()


@pytest.mark.parametrize("text", ["007", "+7", "7.0", "9223372036854775808", "--7", "7-", "", "٣", "-0", "1_0"])
def test_other_texts_stay_texts(text):
    assert not is_whole_number(text)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *[(name, "user") for name in ("user", "userId", "USER_ID", "User-ID", "reviewerID", "customer_id")],
        *[(name, "item") for name in ("item", "movieId", "item_id", "ISBN", "parent_asin", "business id")],
        *[(name, "score") for name in ("score", "rating", "Book-Rating", "stars", "overall")],
        *[(name, "timestamp") for name in ("timestamp", "unixReviewTime", "date")],
        *[(name, None) for name in ("title", "genres", "id", "", "useful")],
    ],
)
def test_known_names(name, role):
    assert role_of(name) == role


def test_a_name_that_is_exact_wins():
    columns = ["user", "user_id", "item", "score", "stars"]
    assert choose(columns, scored=True, advice="") == {"user": "user", "item": "item", "score": "score"}
    with pytest.raises(InputError, match="several columns may hold the score: X names it among"):
        choose(["user", "item", "rating", "stars"], scored=True, advice="X")
    times = ["user", "item", "time", "date"]
    for timed in (False, None):
        assert choose(times, scored=None, timed=timed, advice="X") == {"user": "user", "item": "item"}
    assert choose(times[:3], scored=None, advice="X")["timestamp"] == "time"
    with pytest.raises(InputError, match="several columns may hold the timestamp: X names it among"):
        choose(times, scored=None, timed=True, advice="X")
    with pytest.raises(InputError, match="no column is known to hold the timestamp: X names it among"):
        choose(times[:2], scored=None, timed=True, advice="X")
    with pytest.raises(InputError, match="several columns are called 'who': rename them"):
        choose(["who", "item", "who"], scored=False, given={"user": "who"}, advice="X")


USERS_WITH_GAPS = {
    "objects": lambda ids, missing: np.array([*ids, missing], object),
    "list": lambda ids, missing: [*ids, missing],
    "pandas": lambda ids, missing: pd.Series([*ids, missing]),
}


@pytest.mark.parametrize("form", USERS_WITH_GAPS)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=str)
@pytest.mark.parametrize("ids", [[0, 7, 0], ["a", "b", "a"]], ids=["numbers", "texts"])
def test_a_missing_id_is_named_by_its_row(form, missing, ids):
    with pytest.raises(InputError, match="row 3: the user id is missing"):
        IdColumn.of("user", USERS_WITH_GAPS[form](ids, missing))
    with pytest.raises(InputError, match="row 1: the user id is missing"):
        IdColumn.of("user", pd.array([5, pd.NA], "Int64"))


@pytest.mark.parametrize("form", [np.array, list, pa.array, pd.Series, lambda ids: np.array(ids, object)])
def test_floats_are_ids_if_they_are_whole(form):
    assert IdColumn.of("user", form([3.0, -7.0])).codes.tolist() == [3, -7]
    for wrong in (2.5, 1e17, float("inf")):
        with pytest.raises(strads.StradsError, match=r"whole numbers or texts"):
            IdColumn.of("user", form([3.0, wrong]))


RNG = np.random.default_rng(0)
USERS, ITEMS = RNG.integers(0, 40, 800), RNG.integers(0, 30, 800)
SCORES = np.clip(np.round(3 + RNG.normal(size=40)[USERS] + RNG.normal(size=30)[ITEMS]), 1, 5)
USER_NAMES = np.array([f"user {number:02}" for number in range(40)], object)
ITEM_NUMBERS = np.sort(RNG.integers(-(2**62), 2**62, 30))


def table(kind: str) -> Any:
    columns = {"rating": SCORES, "movieId": ITEM_NUMBERS[ITEMS], "when": ["x"] * 800, "userId": USER_NAMES[USERS]}
    if kind == "dict":
        return columns
    arrow = pa.table(columns)
    if kind == "arrow":
        return arrow

    class Frame:  # as data frames of pandas and polars are read
        def __init__(self) -> None:
            self.columns = arrow.column_names

        def __getitem__(self, name: str) -> Any:
            return np.asarray(columns[name])

    return Frame()


def mf(**more: Any) -> MatrixFactorization:
    return MatrixFactorization(4, max_iter=4, **more)


@pytest.mark.parametrize("kind", ["dict", "arrow", "frame"])
def test_a_table_gives_the_model_of_dense_ids(kind, tmp_path):
    dense = mf().fit((USERS, ITEMS), SCORES)
    model = mf().fit(table(kind))
    assert np.array_equal(model.user_factors_, dense.user_factors_)
    assert model.user_ids_.tolist() == USER_NAMES.tolist()
    model.save(tmp_path / "model.npz")
    for each in (model, MatrixFactorization.load(tmp_path / "model.npz")):
        assert each.digest() == model.digest()
        assert np.array_equal(each.predict((USER_NAMES[USERS], ITEM_NUMBERS[ITEMS])), dense.predict((USERS, ITEMS)))
        items, scores = each.recommend("user 07", 5)
        expected = dense.recommend(7, 5)
        assert items.tolist() == ITEM_NUMBERS[expected[0]].tolist()
        assert np.array_equal(scores, expected[1])
        assert each.similar_items(ITEM_NUMBERS[3])[0][0] == ITEM_NUMBERS[3]
        assert each.similar_users("user 03", 3)[0].tolist() == USER_NAMES[dense.similar_users(3, 3)[0]].tolist()
    assert mf().fit(table(kind)).rmse(table(kind)) == dense.rmse((USERS, ITEMS), SCORES)


def test_likes_by_names():
    dense = BayesianPersonalizedRanking(4, iterations=3).fit((USERS, ITEMS))
    model = BayesianPersonalizedRanking(4, iterations=3).fit({"user": USER_NAMES[USERS], "item": ITEM_NUMBERS[ITEMS]})
    assert model.recommend("user 03")[0].tolist() == ITEM_NUMBERS[dense.recommend(3)[0]].tolist()
    held_out = (["user 01", "stranger", "user 02"], [ITEM_NUMBERS[3], ITEM_NUMBERS[4], 17])
    assert model.auc(held_out) == pytest.approx(dense.auc(([1], [3])), nan_ok=True)
    with pytest.raises(InputError, match="userid: user id 'stranger' was not in the training data"):
        model.recommend(["user 01", "stranger"])


def test_no_row_for_an_id_that_does_not_occur():
    model = mf().fit(([1, 193_609], [5, 100_000]), [4.0, 2.0])
    assert model.user_factors_.shape == (2, 4)
    assert set(model.recommend(1, exclude_rated=False)[0].tolist()) == {5, 100_000}
    with pytest.raises(InputError, match="row 1: item id 6 was not in the training data"):
        model.predict(([1, 1], [5, 6]))
    with pytest.raises(InputError, match="user: user id 2 was not"):
        model.recommend(2)


def test_unknown_ids_are_predicted_by_what_is_known():
    model = mf().fit(table("dict"))
    pairs = [("user 01", 5), ("nobody", int(ITEM_NUMBERS[2])), ("nobody", 5), ("user 01", int(ITEM_NUMBERS[2]))]
    found = model.predict(pairs, unknown="mean", clip=False)
    mean, user, item = model.mean_, model.user_biases_[1], model.item_biases_[2]
    assert np.allclose(found[:3], [mean + user, mean + item, mean])
    assert found[3] == model.predict(pairs[3:], clip=False)[0]
    with pytest.raises(strads.ArgumentError, match="unknown='zero'"):
        model.predict(pairs, unknown="zero")


def test_predictions_stay_within_the_scores():
    model = mf().fit(table("dict"))
    pairs = np.repeat(USER_NAMES, 30), np.tile(ITEM_NUMBERS, 40)
    raw, clipped = model.predict(pairs, clip=False), model.predict(pairs)
    assert model.score_range_ == (1.0, 5.0)
    assert raw.max() > 5
    assert np.array_equal(clipped, np.clip(raw, 1, 5))
    items, scores = model.recommend("user 01", 30, exclude_rated=False)
    assert np.allclose(scores, model.predict((["user 01"] * 30, items)), rtol=1e-5)
    model.partial_fit({"user": ["user 01"], "item": [ITEM_NUMBERS[0]]}, [9.0])
    assert model.score_range_ == (1.0, 9.0)


def test_cross_validation_with_items_that_a_fold_has_not_seen():
    pairs = np.stack([USERS, ITEMS], 1)
    pairs[0] = 1000, 2000
    found = cross_val_score(mf(), pairs, SCORES, cv=4)
    assert np.isfinite(found).all()


def test_new_ids_in_batches_get_the_next_rows():
    model = mf().partial_fit((["b", "d"], [7, 7]), [1.0, 2.0])
    model.partial_fit((["c", "a", "b"], [7, -7, 3]), [1.0, 2.0, 3.0])
    assert model.user_ids_.tolist() == ["b", "d", "a", "c"]
    assert model.item_ids_.tolist() == [7, -7, 3]
    before = model.digest()
    with pytest.raises(InputError, match="diverged"):
        model.partial_fit((["e"], [7]), [1e30])
    assert (model.digest(), len(model.user_ids_)) == (before, 4)
    further = mf().fit((["f"], [9]), [2.0], init=model)
    assert further.user_ids_.tolist() == ["b", "d", "a", "c", "f"]
    assert model.digest() == before


def test_a_sparse_matrix_has_positions_as_ids():
    matrix = scipy.sparse.csr_array(([5.0, 1.0], ([0, 2], [0, 1])), shape=(4, 6))
    model = mf().fit(matrix)
    assert model.user_ids_.tolist() == [0, 1, 2, 3]
    assert model.item_ids_.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda arrays: arrays.update(user_id_ends=arrays["user_id_ends"][:-1]),
        lambda arrays: arrays.update(user_id_ends=arrays["user_id_ends"][::-1].copy()),
        lambda arrays: arrays.update(user_id_bytes=arrays["user_id_bytes"] | 128),
        lambda arrays: arrays.update(item_ids=arrays["item_ids"] * 0),
        lambda arrays: arrays.update(item_ids=arrays["item_ids"].astype(float)),
        lambda arrays: arrays.pop("user_id_bytes"),
    ],
)
def test_ids_of_a_file_are_checked(spoil, tmp_path):
    mf().fit(table("dict")).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    spoil(arrays)
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(InputError, match="model file is incomplete"):
        MatrixFactorization.load(tmp_path / "model.npz")


def test_texts_that_are_not_unicode_are_refused():
    for kind, pairs in {"user": (["a", "\udcff"], ["x", "y"]), "item": (["a", "b"], ["x", "\udcff"])}.items():
        for model, scores in ((MatrixFactorization(2), [[1.0, 2.0]]), (BayesianPersonalizedRanking(), [])):
            with pytest.raises(InputError, match=f"row 1: the {kind} id .* lone surrogate"):
                model.fit(pairs, *scores)
