"""LatentDirichletAllocation as a user sees it."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from planted import matched_cosines, planted_documents
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import strads
from strads.models import Corpus, LatentDirichletAllocation

TEXTS = ["cat dog cat mouse", "dog cat dog mouse", "", "sun moon sun star", "moon sun moon star"] * 20


def planted_model(**options):
    given = {"doc_topic_prior": 0.3, "topic_word_prior": 0.1, "max_iter": 40, "evaluate_every": 0} | options
    return LatentDirichletAllocation(5, **given)


@pytest.fixture(scope="module")
def planted():
    return planted_documents()


@pytest.mark.parametrize(
    ("logical", "sampler"),
    [(1, "dense"), (1, "sparse"), (4, "sparse"), pytest.param(64, "dense", marks=pytest.mark.slow)],
)
def test_planted_topics_are_found_on_any_number_of_logical_nodes(planted, logical, sampler):
    with strads.init("threads", nodes=logical, threads=1):
        model = planted_model(sampler=sampler, max_iter=30, synchronizations=4).fit(planted[0])
    assert matched_cosines(model.components_, planted[1]).min() > 0.95
    assert len(model.history_[0]["nodes"]) == logical


@pytest.mark.few(1)
@pytest.mark.parametrize("first", ["sequential", "random"])
def test_progress_of_many_workers_is_that_of_one(planted, first):
    """At equal tokens, within half a percent (thesis fig. 4.3)."""
    found = []
    for workers in (1, 8, 64):
        model = planted_model(n_workers=workers, evaluate_every=1, start=first).fit(planted[0])
        found.append(model.log_likelihood_)
    for curve in found[1:]:
        assert curve[-1] == pytest.approx(found[0][-1], rel=0.005)


def test_the_likelihood_rises_and_is_kept_per_iteration(planted):
    model = planted_model(evaluate_every=5, max_iter=22).fit(planted[0])
    assert len(model.log_likelihood_) == 5  # iterations 5, 10, 15, 20, and the last
    assert model.log_likelihood_[-1] > model.log_likelihood_[0]
    records = model.history_
    assert [record["iteration"] for record in records] == list(range(1, 23))
    tokens = int(planted[0].sum())
    assert records[-1]["samples"] == 22 * tokens
    assert records[-1]["objective"] == pytest.approx(model.log_likelihood_[-1] / tokens)
    assert "objective" not in records[0]
    assert 0 < records[-1]["s_error"] < 0.05
    for never in (0, -1):
        records = planted_model(evaluate_every=never, max_iter=2).fit(planted[0]).history_
        assert not any("objective" in record for record in records)


def test_same_seed_same_model(planted):
    one, same, other = (planted_model(max_iter=3, random_state=seed).fit(planted[0]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.components_, same.components_)
    assert not np.array_equal(one.components_, other.components_)


def test_components_count_all_tokens(planted):
    model = planted_model(max_iter=2).fit(planted[0])
    counts = model.components_ - 0.1
    np.testing.assert_allclose(counts.sum(0), planted[0].sum(0), atol=1e-9)
    assert model.components_.shape == (5, 200)
    assert model.topic_word_counts_.shape == (200, 5)


def test_texts_their_topics_and_unseen_documents():
    model = LatentDirichletAllocation(2, doc_topic_prior=0.1, max_iter=30).fit(TEXTS)
    assert model.vocabulary_ == ["cat", "dog", "moon", "mouse", "star", "sun"]
    words = sorted(model.top_words(3), key=lambda topic: "cat" in topic)
    assert [set(topic) for topic in words] == [{"moon", "star", "sun"}, {"cat", "dog", "mouse"}]
    with pytest.warns(UserWarning, match="1 token"):
        mixtures = model.transform(["cat dog mouse", "sun star zebra", ""])
    assert mixtures.dtype == np.float32
    np.testing.assert_allclose(mixtures.sum(1), 1, rtol=1e-5)
    animals = int(np.argmax(mixtures[0]))
    assert mixtures[0, animals] > 0.8
    assert mixtures[1, animals] < 0.2
    np.testing.assert_allclose(mixtures[2], 0.5)


def test_fit_transform_is_transform_after_fit(planted):
    mixtures = planted_model().fit_transform(planted[0])
    np.testing.assert_array_equal(mixtures, planted_model().fit(planted[0]).transform(planted[0]))
    assert mixtures.shape == (planted[0].shape[0], 5)
    np.testing.assert_allclose(mixtures.sum(1), 1, rtol=1e-5)


def test_frames_in_a_pipeline(planted):
    counts = planted[0][:300].toarray()
    frame = pd.DataFrame(counts, columns=[f"w{number}" for number in range(200)])
    model = planted_model(max_iter=5).set_output(transform="pandas").fit(frame)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert len(model.get_feature_names_out()) == 5
    mixtures = model.transform(frame)
    assert list(mixtures.columns) == [f"latentdirichletallocation{topic}" for topic in range(5)]
    pd.testing.assert_frame_equal(mixtures, model.transform(frame[frame.columns[::-1]]))
    labels = counts[:, :100].sum(1) > counts[:, 100:].sum(1)
    steps = make_pipeline(planted_model(max_iter=5), StandardScaler()).set_output(transform="pandas")
    assert steps.fit_transform(frame, labels).shape == (300, 5)
    assert steps[0].feature_names_in_.tolist() == frame.columns.tolist()


@pytest.mark.parametrize("generator", [None, np.random.RandomState])
def test_random_state_may_be_a_generator(planted, generator, tmp_path):
    random_state = generator and generator(1)
    model = planted_model(max_iter=2, random_state=random_state).fit(planted[0])
    first = model.components_
    np.testing.assert_array_equal(model.transform(planted[0][:9]), model.transform(planted[0][:9]))
    assert not np.array_equal(first, model.fit(planted[0]).components_)
    if generator is not None:
        again = planted_model(max_iter=2, random_state=generator(1)).fit(planted[0])
        np.testing.assert_array_equal(first, again.components_)
    model.partial_fit(planted[0][:50])
    model.save(tmp_path / "model.npz")
    assert LatentDirichletAllocation.load(tmp_path / "model.npz").random_state is None


def test_perplexity_of_unseen_documents_falls_towards_that_of_the_truth(planted):
    counts, phi = planted_documents(1800, seed=5)
    train, test = counts[:1500], counts[1500:]
    early, late = (planted_model(max_iter=n, start="random").fit(train) for n in (1, 40))
    truth = planted_model(max_iter=1).fit(train)
    truth._counts = type(truth._counts)(scipy.sparse.csr_array(np.round(phi.T * 1e7).astype(np.int32)))
    assert truth.perplexity(test) < late.perplexity(test) < 0.8 * early.perplexity(test)
    assert late.perplexity(test) < 1.15 * truth.perplexity(test)
    assert late.score(test) == pytest.approx(-np.log(late.perplexity(test)))


def test_more_topics_than_words_or_documents():
    model = LatentDirichletAllocation(300, max_iter=3).fit(np.array([[2, 0, 1], [0, 3, 0]]))
    assert model.components_.shape == (300, 3)
    assert model.topic_word_counts_.sum() == 6


def test_asymmetric_priors_are_learnt():
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(200, 0.1), 3)
    alpha = np.array([1.0, 0.4, 0.2])
    counts = np.array([rng.multinomial(80, theta @ phi) for theta in rng.dirichlet(alpha, 1500)])
    model = LatentDirichletAllocation(3, topic_word_prior=0.1, learn_priors="asymmetric", max_iter=100).fit(counts)
    order = np.argmax(phi @ model.components_.T, axis=1)
    np.testing.assert_allclose(model.doc_topic_prior_[order], alpha, rtol=0.2)
    symmetric = LatentDirichletAllocation(3, topic_word_prior=0.1, learn_priors="symmetric", max_iter=20).fit(counts)
    assert len(set(symmetric.doc_topic_prior_.tolist())) == 1
    assert model.log_likelihood_[-1] > symmetric.log_likelihood_[-1]


def test_a_prior_for_each_topic(planted):
    model = planted_model(doc_topic_prior=np.linspace(0.1, 0.8, 5), max_iter=2).fit(planted[0])
    np.testing.assert_allclose(model.doc_topic_prior_, np.linspace(0.1, 0.8, 5))
    assert clone(model).doc_topic_prior is not None


def test_save_and_load(planted, tmp_path):
    model = LatentDirichletAllocation(3, doc_topic_prior=np.array([0.1, 0.2, 0.3]), max_iter=5).fit(TEXTS)
    model.save(tmp_path / "model.npz")
    back = LatentDirichletAllocation.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(back.components_, model.components_)
    np.testing.assert_array_equal(back.transform(TEXTS[:5]), model.transform(TEXTS[:5]))
    assert (back.vocabulary_, back.n_iter_) == (model.vocabulary_, 5)
    assert back.top_words(2) == model.top_words(2)
    np.testing.assert_array_equal(back.log_likelihood_, model.log_likelihood_)
    with np.load(tmp_path / "model.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["topics"] = arrays["topics"] + 1000
    np.savez(tmp_path / "broken.npz", **arrays)
    with pytest.raises(strads.InputError, match=r"broken.npz: the model file is incomplete"):
        LatentDirichletAllocation.load(tmp_path / "broken.npz")


def test_save_while_it_trains(planted, tmp_path):
    model = planted_model(max_iter=4)

    def save_second(record):
        if record["iteration"] == 2:
            model.save(tmp_path / "second.npz")

    model.fit(planted[0], on_iteration=save_second)
    second = LatentDirichletAllocation.load(tmp_path / "second.npz")
    assert (second.n_iter_, model.n_iter_) == (2, 4)
    np.testing.assert_array_equal(second.components_, planted_model(max_iter=2).fit(planted[0]).components_)


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_fitting_stops_when_told_to(planted, kind):
    model = planted_model().fit(planted[0], on_iteration=lambda record: kind(record["iteration"] == 4))
    assert model.n_iter_ == 4


def test_the_model_can_be_asked_while_it_trains(planted):
    model, found = planted_model(max_iter=3, start="random"), []
    for _ in range(2):  # the second time there is an earlier model
        model.fit(planted[0], on_iteration=lambda record: found.append(model.perplexity(planted[0][:100])))
    assert len(set(found)) == 3
    assert found[:3] == found[3:]


def test_a_fit_that_fails_leaves_no_earlier_model(planted):
    model = planted_model(max_iter=1).fit(planted[0])
    with pytest.raises(strads.InputError, match="tokens"):
        model.set_params(n_components=60_000, n_workers=1).fit(np.array([[70_000]]))
    with pytest.raises(NotFittedError):
        model.transform(planted[0])


def test_fits_leave_no_threads_behind(planted):
    planted_model(max_iter=1, n_jobs=3).fit(planted[0])
    before = threading.active_count()
    for _ in range(3):
        planted_model(max_iter=1, n_jobs=3).fit(planted[0])
    assert threading.active_count() == before


def test_words_with_any_characters_are_saved(tmp_path):
    model = LatentDirichletAllocation(2, max_iter=1).fit([["new\nyork", "cat"], ["cat", "naïve"]])
    model.save(tmp_path / "model.npz")
    assert LatentDirichletAllocation.load(tmp_path / "model.npz").vocabulary_ == model.vocabulary_


def test_nothing_to_score_is_said():
    model = LatentDirichletAllocation(2, max_iter=1).fit(TEXTS)
    with (
        pytest.raises(strads.InputError, match="no token is left to score"),
        pytest.warns(UserWarning, match="2 tokens"),
    ):
        model.perplexity(["zzz qqq"])
    with pytest.raises(strads.ArgumentError, match="n=0"):
        model.top_words(0)


def test_an_interrupt_leaves_a_whole_model(planted):
    model = planted_model(max_iter=100_000, evaluate_every=0)

    def interrupt(record):
        if record["iteration"] == 3:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        model.fit(planted[0], on_iteration=interrupt)
    assert model.n_iter_ == len(model.history_) >= 3
    assert model.transform(planted[0][:2]).shape == (2, 5)
    whole = planted_model(max_iter=model.n_iter_).fit(planted[0])
    np.testing.assert_array_equal(model.components_, whole.components_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 70_000}, "65536 topics are possible"),
        ({"doc_topic_prior": -1}, "doc_topic_prior=-1"),
        ({"doc_topic_prior": 1e-50}, "from 1e-10 to 1e\\+10"),
        ({"doc_topic_prior": [[1], [2, 3]]}, "one for each topic"),
        ({"topic_word_prior": 1e39}, "topic_word_prior=1e\\+39"),
        ({"n_workers": 2000}, "1024 are possible"),
        ({"random_state": 1 << 64}, "below 2"),
        ({"doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior has 2 numbers"),
        ({"topic_word_prior": 0}, "topic_word_prior=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"sampler": "fast"}, "sampler='fast'"),
        ({"start": "x"}, "start='x'"),
        ({"learn_priors": True}, "learn_priors=True"),
        ({"n_workers": 0}, "n_workers=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(strads.ArgumentError, match=message):
        LatentDirichletAllocation(**({"n_components": 3} | parameters)).fit(TEXTS)


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        (np.array([[1, -2]]), {}, "-2"),
        (np.array([[1, -0.5]]), {}, "-0.5"),
        (np.array([[1, np.nan]]), {}, "NaN"),
        (np.zeros((3, 4)), {}, "empty"),
        (np.array([[1, 2]]), {"vocabulary": ["one"]}, "1"),
        (
            strads.dvector([[0, 2 * 10**9], [1]]),
            {},
            "the documents: 2,000,000,001 words are far beyond what 3 entries can fill",
        ),
        (scipy.sparse.csr_array(([1], ([0], [1])), (1, 2 * 10**9)), {}, "2,000,000,000 words are far beyond"),
    ],
)
def test_wrong_documents(documents, options, message):
    with pytest.raises(strads.StradsError, match=message):
        LatentDirichletAllocation(2).fit(documents, **options)


def test_documents_too_long_for_so_many_topics():
    documents = np.array([[1, 2], [70_000, 0]])
    with pytest.raises(strads.InputError, match="document 1 has 70,000 tokens; with 60,000 topics at most 65,535"):
        LatentDirichletAllocation(60_000, n_workers=1).fit(documents)
    assert LatentDirichletAllocation(300, max_iter=1).fit(documents).topic_word_counts_.sum() == 70_003


@pytest.mark.filterwarnings("ignore:.* fractional counts", "ignore:Skipping check check_array_api_input")
def test_scikit_learns_own_checks():
    reasons = {
        "check_n_features_in_after_fitting": "partial_fit takes new words",
        "check_transformer_data_not_an_array": "lists of numbers may be counts or word numbers: we ask which",
    }
    check_estimator(LatentDirichletAllocation(2, max_iter=5), expected_failed_checks=reasons, on_skip=None)


def test_before_fit_and_other_widths(planted):
    with pytest.raises(NotFittedError):
        planted_model().transform(planted[0])
    model = planted_model(max_iter=1).fit(planted[0])
    with pytest.raises(strads.StradsError, match="200"):
        model.transform(np.ones((1, 199)))


def test_a_corpus_with_empty_documents_and_words_that_never_occur():
    counts = np.array([[0, 0, 0], [2, 0, 1], [0, 0, 0]])
    model = LatentDirichletAllocation(2, max_iter=2)
    mixtures = model.fit_transform(Corpus.from_counts(counts, ["a", "b", "c"]))
    assert mixtures.shape == (3, 2)
    np.testing.assert_allclose(mixtures[[0, 2]], 0.5)
    assert model.topic_word_counts_[[1]].sum() == 0


def test_a_document_has_the_same_topics_whatever_comes_with_it():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.2, 1.0, (60, 50)))
    model = LatentDirichletAllocation(4, max_iter=20).fit(X)
    expected = model.transform(X)
    np.testing.assert_array_equal(model.transform(X[::-1])[::-1], expected)
    np.testing.assert_array_equal(model.transform(X[7:9]), expected[7:9])
