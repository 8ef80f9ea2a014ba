"""Models that go on learning: batch by batch, from another model, with new users, items, documents and words."""

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import strads
from strads.errors import ArgumentError, InputError
from strads.models import (
    BayesianPersonalizedRanking,
    LatentDirichletAllocation,
    MatrixFactorization,
    Word2Vec,
)
from strads.models.factorization.item_log import ItemLog

MODELS: dict[str, Callable[..., Any]] = {
    "mf": lambda **more: MatrixFactorization(**{"n_components": 4, "max_iter": 2} | more),
    "mf without biases": lambda **more: MatrixFactorization(
        **{"n_components": 4, "max_iter": 2, "biases": False} | more
    ),
    "bpr": lambda **more: BayesianPersonalizedRanking(**{"factors": 4, "iterations": 2} | more),
    "lda": lambda **more: LatentDirichletAllocation(**{"n_components": 4, "max_iter": 3} | more),
    "sparse lda": lambda **more: LatentDirichletAllocation(
        **{"n_components": 4, "max_iter": 3, "sampler": "sparse", "start": "random"} | more
    ),
    "word2vec": lambda **more: Word2Vec(**{"vector_size": 4, "min_count": 1, "epochs": 2} | more),
    "cbow": lambda **more: Word2Vec(**{"vector_size": 4, "min_count": 1, "epochs": 2, "sg": 0} | more),
}
OTHER = {"n_components": 5, "factors": 5, "vector_size": 5}


def batch_for(name: str, number: int, rows: int | None = None) -> tuple[Any, ...]:
    """A batch; with the number, the ids and words grow."""
    rng = np.random.default_rng(number)
    rows = int(rng.integers(5, 60)) if rows is None else rows
    if "lda" in name or name in ("word2vec", "cbow"):
        words = ((rng.random(9) ** 2 * (30 + 10 * number)).astype(int) for _ in range(rows))
        return ([" ".join(f"word{word}" for word in each) for each in words],)
    pairs = rng.integers(0, 20 + 5 * number, rows), rng.integers(0, 30 + number, rows)
    return (pairs, rng.normal(3.0, 1.0, rows)) if "mf" in name else (pairs,)


LOG = [(0, 40), (1, None), (2, 1), (3, 0), (4, None), (1, None), (6, None)]


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def digests(name: str, path: Any = None, **parameters: Any) -> list[str]:
    """Digests after each batch of the log; the model is saved to a path and loaded after each."""
    model, found = MODELS[name](**parameters), []
    for number, rows in LOG:
        model.partial_fit(*batch_for(name, number, rows))
        found.append(model.digest())
        if path is not None:
            model.save(path)
            model = type(model).load(path)
    return found


def test_the_same_batches_give_the_same_bits(name, tmp_path):
    expected = digests(name, n_jobs=1)
    assert len(set(expected)) == len(LOG) - 1  # the empty batch changes nothing
    assert digests(name, n_jobs=2, verbose=True) == expected
    assert digests(name, tmp_path / "model.npz", n_jobs=3) == expected
    with strads.init(nodes=3):
        assert digests(name, tmp_path / "model.npz") == expected
    assert digests(name, random_state=1) != expected


def test_a_fit_goes_on_from_another_model(name, tmp_path):
    early, more = batch_for(name, 2), batch_for(name, 5)
    model = MODELS[name]().fit(*early)
    model.save(tmp_path / "model.npz")
    before = model.digest()
    further = MODELS[name]().fit(*more, init=model)
    assert model.digest() == before
    loaded = type(model).load(tmp_path / "model.npz")
    assert further.digest() == MODELS[name](n_jobs=2).fit(*more, init=loaded).digest()
    assert further.digest() != MODELS[name]().fit(*more).digest()
    assert further.digest() == model.fit(*more, init=model).digest()  # itself
    assert further.n_iter_ == len(further.history_)
    further.partial_fit(*early)
    assert further.history_[-1]["samples"] > further.history_[-2]["samples"]


def test_what_is_no_start_is_refused(name):
    model, batch = MODELS[name](), batch_for(name, 1)
    with pytest.raises(ArgumentError, match="init is not fitted"):
        model.fit(*batch, init=MODELS[name]())
    with pytest.raises(ArgumentError, match="init is a dict"):
        model.fit(*batch, init={})
    model.partial_fit(*batch)
    parameter = next(each for each in OTHER if each in model.get_params())
    with pytest.raises(ArgumentError, match=f"other parameters.*{parameter}.*4.*not.*5"):
        MODELS[name](**{parameter: 5}).fit(*batch, init=model)
    before = model.digest()
    with pytest.raises(ArgumentError, match="other parameters"):
        model.set_params(**{parameter: 5}).partial_fit(*batch)
    assert model.set_params(**{parameter: 4}).digest() == before


def test_a_model_does_not_begin_another_fit_while_it_is_fitted(name):
    model, batch = MODELS[name](), batch_for(name, 1)
    with pytest.raises(ArgumentError, match="is being fitted"):
        model.fit(*batch, on_iteration=lambda record: model.partial_fit(*batch))


def test_an_empty_batch_leaves_a_model_unfitted(name):
    model = MODELS[name]().partial_fit(*batch_for(name, 0, 0))
    assert not model.__sklearn_is_fitted__()


BAD = {
    "mf": [
        ((([2**64], [0]), [1.0]), "user id 18446744073709551616 has more than 63 bits"),
        (((["0"], [0]), [1.0]), "user ids of the model are whole numbers, but '0'"),
        ((([0], [0]), [np.nan]), "score nan"),
        ((([0], [0]), [1e30]), "diverged on this batch, which has changed nothing"),
        ((([0, 1], [0]), [1.0]), "2 users, but 1 items"),
    ],
    "bpr": [
        ((([2**64], [0]),), "user id 18446744073709551616 has more than 63 bits"),
        ((([0], ["0"]),), "item ids of the model are whole numbers, but '0'"),
        ((scipy.sparse.csr_array([[np.nan]]),), "weight nan"),
        ((([0, 1], [0]),), "2 users, but 1 items"),
    ],
    "lda": [
        ((np.ones((1, 999), int),), "999 words without names"),
        ((np.array([[-1]]),), "is -1"),
        (([3],), "3"),
    ],
    "word2vec": [(([3],), "sentence 0 is 3, no text")],
}


@pytest.mark.parametrize(("name", "bad", "message"), [(name, *case) for name in BAD for case in BAD[name]])
def test_a_batch_that_is_refused_changes_nothing(name, bad, message):
    model = MODELS[name]().partial_fit(*batch_for(name, 1, 30))
    before, records = model.digest(), len(model.history_)
    with pytest.raises((ArgumentError, InputError), match=message):
        model.partial_fit(*bad)
    assert (model.digest(), len(model.history_)) == (before, records)
    again = MODELS[name]().partial_fit(*batch_for(name, 1, 30)).partial_fit(*batch_for(name, 2))
    assert model.partial_fit(*batch_for(name, 2)).digest() == again.digest()


@pytest.mark.parametrize("is_taken", [False, True])
def test_an_interrupt_comes_before_a_batch_or_after_it(name, is_taken, monkeypatch):
    first, second = batch_for(name, 1, 30), batch_for(name, 2)
    model, expected = (MODELS[name]().partial_fit(*first) for _ in range(2))
    if is_taken:
        expected.partial_fit(*second)
    changing = type(model)._changing

    @contextmanager
    def interrupted(self: Any) -> Iterator[None]:
        if not is_taken:
            raise KeyboardInterrupt
        with changing(self):
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_changing", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*second)
    monkeypatch.undo()
    assert model.digest() == expected.digest()
    assert model.partial_fit(*first).digest() == expected.partial_fit(*first).digest()


def interrupted(call: Callable[[], Any], function: Callable[..., Any], line: int) -> bool:
    """Make a call that is interrupted before this line that a function runs, and return whether it was."""
    rest, earlier = iter(range(line)), sys.gettrace()

    def at_line(frame: Any, event: str, argument: Any) -> Any:
        if event == "line" and next(rest, None) is None:
            raise KeyboardInterrupt
        return at_line

    sys.settrace(lambda frame, event, argument: at_line if frame.f_code is function.__code__ else None)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(earlier)
    return False


def test_a_log_forgets_entries_after_an_interrupt_at_any_line():
    users, more = np.array([1, 1, 2, 2], np.int32), np.array([1, 2, 5], np.int32)
    for line in itertools.count():
        log = ItemLog(users, users)
        ended = not interrupted(lambda log=log: log.append(more, more), ItemLog.append, line)
        log.shorten(4)
        assert log.last[:3].tolist() == [-1, 1, 3]
        assert (log.last[3:] == -1).all()
        assert len(log.users) == len(log.items) == len(log.before) == 4
        if ended:
            break
    assert line > 5


def test_word_numbers_far_beyond_the_known_ones_are_refused():
    model = LatentDirichletAllocation(n_components=2, max_iter=1).partial_fit(np.ones((3, 4), int))
    far = scipy.sparse.csr_array(([1], ([0], [10**9])), shape=(1, 2 * 10**9))
    with pytest.raises(InputError, match="word id 1999999999 is far beyond the 4 known"):
        model.partial_fit(far)
    with pytest.raises(InputError, match="knows its words by number only"):
        model.partial_fit(["word other"])


@pytest.mark.parametrize("name", ["mf", "bpr"])
def test_a_matrix_far_larger_than_the_model_is_refused(name):
    model = MODELS[name]().partial_fit(scipy.sparse.csr_array(np.ones((3, 4))))
    far = scipy.sparse.csr_array(([1.0], ([0], [0])), shape=(2 * 10**6, 1))
    with pytest.raises(InputError, match="user id 1999999 is far beyond the 3 known"):
        model.partial_fit(far)


def test_rows_start_alike_however_the_growth_is_cut():
    def column(users: int, user: int) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(([3.0], ([user], [0])), (users, 1))

    once = MatrixFactorization(4).partial_fit(column(901, 900))
    cut = MatrixFactorization(4).partial_fit(column(4, 3))
    for user in (4, 100, 500, 900):
        cut.partial_fit(column(user + 1, user))
    untouched = np.setdiff1d(np.arange(900), [3, 4, 100, 500])
    assert np.array_equal(once.user_factors_[untouched], cut.user_factors_[untouched])
    fresh = MatrixFactorization(4, max_iter=1).fit(column(902, 901))
    assert np.array_equal(fresh.user_factors_[:900], once.user_factors_[:900])


def test_a_batch_changes_only_its_own_rows_in_place():
    model = MatrixFactorization(4).partial_fit((np.arange(1000), np.arange(1000) % 50), np.ones(1000))
    model.partial_fit(([1001], [3]), [2.0])  # grows, with room for more
    before, copy = model.user_factors_, model.user_factors_.copy()
    model.partial_fit(([7], [3]), [2.0])
    assert np.shares_memory(before, model.user_factors_)
    assert np.array_equal(np.flatnonzero((model.user_factors_ != copy).any(1)), [7])


def test_what_was_rated_or_liked_in_any_batch_is_not_recommended(tmp_path):
    for model, batches in (
        (MatrixFactorization(4), [(([0, 0], [0, 1]), [5.0, 4.0]), (([0, 1], [2, 5]), [5.0, 1.0])]),
        (BayesianPersonalizedRanking(4), [(([0, 0], [0, 1]),), (([0, 1], [2, 5]),)]),
    ):
        for batch in batches:
            model.partial_fit(*batch)
        model.save(tmp_path / "model.npz")
        for each in (model, type(model).load(tmp_path / "model.npz")):
            assert set(each.recommend(0)[0]) == {5}
            assert set(each.recommend(1)[0]) == {0, 1, 2}
            assert each.recommend([1, 0])[0][1].tolist() == [5, -1, -1, -1]
    assert 0 <= model.auc(([1], [0])) <= 1


def test_ratings_in_batches_are_learnt_as_well_as_at_once():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 300, 20_000), rng.integers(0, 200, 20_000)
    scores = (rng.normal(size=(300, 3)) @ rng.normal(size=(3, 200)))[users, items]
    train, test = slice(0, 18_000), slice(18_000, None)
    model = MatrixFactorization(8, regularization=0.02)
    for _ in range(12):
        for part in np.array_split(np.arange(18_000), 6):
            model.partial_fit((users[part], items[part]), scores[part])
    at_once = MatrixFactorization(8, regularization=0.02, max_iter=12).fit((users[train], items[train]), scores[train])
    truth = (users[test], items[test]), scores[test]
    assert model.rmse(*truth) < 1.15 * at_once.rmse(*truth) < 0.5 * scores.std()


def test_documents_in_batches_are_learnt_as_well_as_at_once():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(100, 0.05), 5)
    counts = np.array([rng.multinomial(50, rng.dirichlet(np.full(5, 0.1)) @ words) for _ in range(500)])
    model = LatentDirichletAllocation(5, max_iter=40)
    for part in np.array_split(counts[:400], 8):
        model.partial_fit(part)
    assert model.topic_word_counts_.sum() == counts[:400].sum()
    at_once = LatentDirichletAllocation(5, max_iter=40).fit(counts[:400])
    assert model.perplexity(counts[400:]) < 1.15 * at_once.perplexity(counts[400:])


@pytest.mark.parametrize(("name", "array"), [("mf", "users"), ("bpr", "items"), ("word2vec", "outputs")])
@pytest.mark.parametrize(
    "spoil", [lambda table: table * np.nan, lambda table: table.astype("f8"), lambda table: table[0]]
)
def test_tables_of_a_file_are_checked(name, array, spoil, tmp_path):
    path = tmp_path / "model.npz"
    MODELS[name]().partial_fit(*batch_for(name, 1)).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays[array] = spoil(arrays[array])
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="model file is incomplete"):
        type(MODELS[name]()).load(path)


def test_of_a_long_history_the_last_records_are_kept():
    model = BayesianPersonalizedRanking(2)
    for _ in range(1005):
        model.partial_fit(([0], [0]))
    assert len(model.history_) == 1000
    assert model.history_[-1]["iteration"] == model.n_iter_ == model.history_[-1]["samples"] == 1005


class Life(RuleBasedStateMachine):
    """Any sequence of calls; a twin takes part in what changes the model, but is never saved and uses one thread."""

    @initialize(name=st.sampled_from(list(MODELS)))
    def begin(self, name: str) -> None:
        self.name = name
        self.model, self.twin = MODELS[name](), MODELS[name](n_jobs=1)

    @rule(number=st.integers(0, 6), rows=st.sampled_from([0, 1, 7, None]))
    def batch(self, number: int, rows: int | None) -> None:
        for each in (self.model, self.twin):
            each.partial_fit(*batch_for(self.name, number, rows))

    @rule(number=st.integers(0, 6), go_on=st.booleans())
    def fit(self, number: int, go_on: bool) -> None:
        batch = batch_for(self.name, number)
        go_on = go_on and self.model.__sklearn_is_fitted__()
        for each in (self.model, self.twin):
            each.fit(*batch, init=each if go_on else None)

    @rule(threads=st.integers(1, 3))
    def threads(self, threads: int) -> None:
        self.model.set_params(n_jobs=threads)

    @rule()
    def save_and_load(self) -> None:
        if self.model.__sklearn_is_fitted__():
            path = self.folder / "model.npz"
            self.model.save(path)
            self.model = type(self.model).load(path)

    @rule()
    def use(self) -> None:
        """What does not change a model."""
        if not self.model.__sklearn_is_fitted__():
            return
        if "mf" in self.name or self.name == "bpr":
            user = self.twin.user_ids_[0]
            assert np.array_equal(self.model.recommend(user)[0], self.twin.recommend(user)[0])
        elif "lda" in self.name:
            assert np.array_equal(
                self.model.transform(self.twin.vocabulary_[:2]), self.twin.transform(self.twin.vocabulary_[:2])
            )
        else:
            word = self.twin.vocabulary_[0]
            assert self.model.most_similar(word) == self.twin.most_similar(word)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "model") and self.twin.__sklearn_is_fitted__():
            assert self.model.digest() == self.twin.digest()


def test_any_life_of_a_model(tmp_path):
    Life.folder = tmp_path
    Life.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
    Life.TestCase("runTest").runTest()
