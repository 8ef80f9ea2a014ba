"""Word2Vec: what it learns, the same bits on any threads, more text, files, and what it refuses."""

import hashlib

import numpy as np
import pytest
from planted import planted_sentences, share_of_neighbours
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import strads
from strads.errors import ArgumentError, InputError
from strads.models import MatrixFactorization, Sentences, Word2Vec, WordVectors

SMALL = {"vector_size": 24, "epochs": 4, "alpha": 0.1, "sample": 0, "n_workers": 4}
MODELS = {"skip-gram": {}, "bag of words": {"sg": 0}, "more negatives": {"negative": 8, "shrink_windows": False}}


@pytest.fixture(scope="module")
def text() -> Sentences:
    return Sentences.from_text(planted_sentences())


def digest(model: Word2Vec) -> str:
    """A hash of all that a model has learnt, and of what its history tells, apart from times."""
    figures = [(record["iteration"], record["samples"], record["objective"]) for record in model.history_]
    tables = model.vectors_.tobytes() + model._outputs.tobytes()
    return hashlib.sha256(tables + repr((figures, model.vocabulary_)).encode()).hexdigest()


@pytest.mark.parametrize("name", MODELS)
def test_words_of_a_topic_are_similar(text: Sentences, name: str) -> None:
    model = Word2Vec(**{**SMALL, "epochs": 10, **MODELS[name]}).fit(text)
    assert share_of_neighbours(model) > 0.95
    losses = [record["objective"] for record in model.history_]
    assert losses[-1] < losses[0]
    assert model.n_iter_ == 10
    assert [record["samples"] for record in model.history_] == [text.n_tokens * n for n in range(1, 11)]
    assert model.vectors_.shape == (len(model.vocabulary_), 24)
    assert model.vectors_.dtype == np.float32
    assert model.word_counts_.tolist() == sorted(model.word_counts_, reverse=True)


@pytest.mark.parametrize("parameters", [{}, {"sg": 0}])
def test_without_determinism_it_learns_as_well(text: Sentences, parameters: dict[str, int]) -> None:
    model = Word2Vec(**{**SMALL, "epochs": 10, **parameters}, deterministic=False).fit(text)
    assert share_of_neighbours(model) > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_on_any_number_of_threads_and_nodes(text: Sentences, name: str) -> None:
    found = []
    for threads, nodes in [(1, 1), (2, 1), (3, 1), (8, 1), (16, 1), (1, 2), (2, 4)]:
        with strads.init("threads", threads=threads, nodes=nodes):
            found.append(digest(Word2Vec(**{**SMALL, **MODELS[name]}).fit(text)))
    assert len(set(found)) == 1


def test_text_of_several_segments_gives_the_same_bits(text: Sentences, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strads.models.embeddings.training._PAIR_PLACES", 50_000)
    found = [digest(Word2Vec(**SMALL, n_jobs=threads).fit(text)) for threads in (1, 3)]
    assert found[0] == found[1]
    assert share_of_neighbours(Word2Vec(**{**SMALL, "epochs": 10}).fit(text)) > 0.95


def test_another_seed_gives_other_vectors_of_the_same_quality(text: Sentences) -> None:
    one, other = (Word2Vec(**{**SMALL, "epochs": 10}, random_state=seed).fit(text) for seed in (0, 1))
    assert not np.array_equal(one.vectors_, other.vectors_)
    assert share_of_neighbours(other) > 0.95


def test_small_texts() -> None:
    assert Word2Vec(8, min_count=1, sample=0).fit(["a b"]).vectors_.shape == (2, 8)
    assert Word2Vec(8, min_count=1, sample=0).fit(["alone"]).vectors_.shape == (1, 8)
    assert Word2Vec(8, min_count=0, sample=0).fit(["a b"]).vocabulary_ == ["a", "b"]
    assert np.isfinite(Word2Vec(3, min_count=1, sg=0).fit(["a b", "", "b a a"] * 3).vectors_).all()
    assert Word2Vec(8, min_count=1, n_workers=7, epochs=1).fit(["a b c", "b a d"]).vectors_.shape == (4, 8)


def test_long_sentences_are_cut_and_their_words_learnt() -> None:
    words = [word for sentence in planted_sentences(2500) for word in sentence]
    assert len(words) > 20_000
    model = Word2Vec(**SMALL).fit([words])
    assert model.history_[-1]["samples"] == 4 * len(words)


def test_rare_words_are_left_out() -> None:
    texts = ["a b c d e"] * 3 + ["a b c"] * 4 + ["a b"]
    assert Word2Vec(8, min_count=7, epochs=1).fit(texts).vocabulary_ == ["a", "b", "c"]
    assert Word2Vec(8, min_count=1, max_final_vocab=2, epochs=1).fit(texts).vocabulary_ == ["a", "b"]


def test_a_file_gives_the_model_of_its_texts(tmp_path) -> None:
    texts = [" ".join(words) for words in planted_sentences(400)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join(texts) + "\n")
    found = [digest(Word2Vec(**SMALL).fit(given)) for given in (path, str(path), texts, iter(texts))]
    assert len(set(found)) == 1


def test_more_text_brings_new_words(text: Sentences) -> None:
    model = Word2Vec(**{**SMALL, "epochs": 8}).fit(text)
    before = model.vocabulary_, model.word_counts_, model.history_[-1]["samples"]
    more = [[word.replace("7_", "new_") for word in words] for words in planted_sentences(3000, seed=1)]
    for _ in range(6):
        model.partial_fit(more)
    assert model.vocabulary_[: len(before[0])] == before[0]
    assert {f"new_{n}" for n in range(10)} <= set(model.vocabulary_)
    assert (model.word_counts_[: len(before[0])] >= before[1]).all()
    assert [record["iteration"] for record in model.history_] == list(range(1, 15))
    assert model.history_[8]["samples"] == before[2] + sum(map(len, more))
    assert {word.split("_")[0] for word, _ in model.most_similar("new_0", topn=3)} == {"new"}


def test_parts_of_a_text_one_after_another_begin_as_a_fit(text: Sentences) -> None:
    whole, parts = Word2Vec(**{**SMALL, "epochs": 1}).fit(text), Word2Vec(**SMALL).partial_fit(text)
    assert digest(whole) == digest(parts)
    assert digest(parts.partial_fit(text)) != digest(Word2Vec(**SMALL).partial_fit(text))
    with pytest.raises(ArgumentError, match=r"other parameters: {\"vector_size\": 24}, not"):
        parts.set_params(vector_size=5).partial_fit(text)


def test_models_are_saved_and_loaded(text: Sentences, tmp_path) -> None:
    model = Word2Vec(**SMALL).fit(text)
    model.save(tmp_path / "model.npz")
    loaded = Word2Vec.load(tmp_path / "model.npz")
    assert digest(loaded) == digest(model)
    assert loaded.get_params() == model.get_params()
    assert digest(loaded.partial_fit(text)) == digest(model.partial_fit(text))
    with pytest.raises(InputError, match="holds a Word2Vec"):
        MatrixFactorization.load(tmp_path / "model.npz")
    model.save_word2vec_format(tmp_path / "vectors.bin", binary=True)
    vectors = WordVectors.load_word2vec_format(tmp_path / "vectors.bin", binary=True)
    assert np.array_equal(vectors.vectors, model.vectors_)


def test_a_callback_sees_the_model_and_stops_it(text: Sentences) -> None:
    seen = []

    def stop_after_two(record: dict) -> bool:
        seen.append(model.similarity("0_0", "0_1"))
        return len(seen) == 2

    model = Word2Vec(**SMALL)
    model.fit(text, on_iteration=stop_after_two)
    assert model.n_iter_ == 2
    assert seen[1] == model.similarity("0_0", "0_1")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"vector_size": 0}, "vector_size=0"),
        ({"window": 256}, "window=256: give at most 255"),
        ({"negative": 0}, "negative=0"),
        ({"min_count": 1.5}, "min_count=1.5"),
        ({"alpha": -1}, "alpha=-1"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"min_alpha": 0.1}, "min_alpha=0.1 is above alpha=0.025"),
        ({"sample": 2}, "sample=2: give a share"),
        ({"sample": -0.1}, "sample=-0.1"),
        ({"ns_exponent": "x"}, "ns_exponent='x'"),
        ({"ns_exponent": 1000}, "ns_exponent=1000: give a number from -10 to 10"),
        ({"deterministic": "no"}, "deterministic='no': give True or False"),
        ({"cbow_mean": None}, "cbow_mean=None: give True or False"),
        ({"shrink_windows": 2}, "shrink_windows=2: give True or False"),
        ({"sg": 2}, "sg=2: give 1 for skip-gram"),
        ({"epochs": 0}, "epochs=0"),
        ({"max_final_vocab": 0}, "max_final_vocab=0"),
        ({"n_workers": 2000}, "n_workers=2000: at most 1024"),
        ({"random_state": -1}, "random_state=-1"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Word2Vec(**parameters).fit(["a b"])


def test_text_without_words_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"no word occurs min_count=5 times in 3 tokens \(the most frequent one 2"):
        Word2Vec().fit(["a b a"])
    with pytest.raises(InputError, match="none of the 2 sentences has a word"):
        Word2Vec().fit(["", "..."])
    with pytest.raises(InputError, match="no such file"):
        Word2Vec().fit(tmp_path / "nowhere.txt")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match=r"latin:1: not UTF-8"):
        Word2Vec().fit(tmp_path / "latin")


def test_unknown_words_and_unfitted_models(text: Sentences) -> None:
    model = Word2Vec(**SMALL)
    with pytest.raises(NotFittedError):
        model.most_similar("0_0")
    model.fit(text)
    with pytest.raises(InputError, match="'nobody' is unknown: it is none of the"):
        model.most_similar("nobody")
    with strads.init("threads", nodes=2), pytest.raises(ArgumentError, match="needs a single process"):
        Word2Vec(deterministic=False).fit(text)


def test_divergence_is_reported(text: Sentences) -> None:
    with pytest.raises(InputError, match="smaller alpha"):
        Word2Vec(**{**SMALL, "alpha": 1e20}).fit(text)


def test_it_can_be_cloned() -> None:
    assert clone(Word2Vec(7, window=3)).get_params() == Word2Vec(7, window=3).get_params()
