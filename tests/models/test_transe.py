"""TransE learns translations, the same whatever it runs on; wrong input is refused by name."""

import hashlib
import warnings

import numpy as np
import pandas as pd
import planted_graph
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import strads
from strads.models import TransE, read_triples
from strads.models.knowledge_graphs.blocks import count_blocks

TRAIN, TEST = planted_graph.split(planted_graph.cube())
QUICK = {"n_components": 20, "max_iter": 5}


@pytest.fixture(scope="module")
def fitted():
    return TransE(20, max_iter=60, n_jobs=2).fit(TRAIN)


def fingerprint(model):
    return hashlib.sha256(model.entity_vectors_.tobytes() + model.relation_vectors_.tobytes()).hexdigest()


def test_planted_translations_are_found(fitted):
    figures = fitted.evaluate(TEST, known=TRAIN)
    assert figures.filtered.hits_at_10 > 0.99
    assert figures.filtered.mrr > 0.95
    untrained = TransE(20, max_iter=1, learning_rate=1e-6).fit(TRAIN).evaluate(TEST, known=TRAIN)
    assert untrained.filtered.mrr < 0.1


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "logistic"},
        {"norm": 1, "margin": 10.0},
        {"negatives": "bernoulli"},
        {"normalization": "sphere", "margin": 0.5},
        {"normalization": "ball", "margin": 1.0},
        {"adversarial_temperature": 0.0},
        {"n_negatives": 1},
    ],
    ids=str,
)
def test_every_option_learns(parameters):
    figures = TransE(20, max_iter=60, **parameters).fit(TRAIN).evaluate(TEST, known=TRAIN)
    assert figures.filtered.hits_at_10 > 0.9


@pytest.mark.parametrize("names", [("head", "relation", "tail"), ("H", "R", "T"), ("subject", "predicate", "object")])
def test_columns_of_tables_are_found_by_name(names):
    head, relation, tail = zip(*TRAIN, strict=True)
    columns = dict(zip(names, (head, relation, tail), strict=True))
    table = pd.DataFrame({"weight": 1.0} | {name: columns[name] for name in (names[2], names[0], names[1])})
    expected = fingerprint(TransE(4, max_iter=1).fit(TRAIN))
    assert fingerprint(TransE(4, max_iter=1).fit(table)) == expected
    assert fingerprint(TransE(4, max_iter=1).fit(pa.Table.from_pandas(table))) == expected
    without_names = pd.DataFrame({0: head, 1: relation, 2: tail})
    assert fingerprint(TransE(4, max_iter=1).fit(without_names)) == expected
    with pytest.raises(strads.InputError, match=r"columns 'weight', 'x', .* name those of head, relation and tail so"):
        TransE(4).fit(table.rename(columns={names[2]: "x"}))


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_same_bits_on_any_number_of_threads(threads):
    assert fingerprint(TransE(**QUICK, n_jobs=threads).fit(TRAIN)) == fingerprint(TransE(**QUICK, n_jobs=2).fit(TRAIN))


@pytest.fixture
def many_blocks(monkeypatch):
    """So many blocks that nodes have several, and enough epochs to deal entities anew twice."""
    monkeypatch.setattr("strads.models.knowledge_graphs.training.count_blocks", lambda facts, entities: 16)
    return {"n_components": 20, "max_iter": 12}


@pytest.mark.parametrize("threads", [1, 4, 16])
def test_same_bits_with_many_blocks(threads, many_blocks):
    found = TransE(**many_blocks, n_jobs=threads).fit(TRAIN)
    assert fingerprint(found) == fingerprint(TransE(**many_blocks, n_jobs=2).fit(TRAIN))


@pytest.mark.nodes
def test_same_bits_on_any_nodes(runtime, many_blocks):
    on_nodes = TransE(**many_blocks).fit(TRAIN)
    strads.shutdown()
    assert fingerprint(on_nodes) == fingerprint(TransE(**many_blocks).fit(TRAIN))


def test_repeated_runs_agree_and_seeds_differ():
    first, second = (fingerprint(TransE(**QUICK).fit(TRAIN)) for _ in range(2))
    assert first == second != fingerprint(TransE(**QUICK, random_state=1).fit(TRAIN))


def test_labels_give_what_ids_give(fitted):
    model = TransE(20, max_iter=60).fit(planted_graph.named(TRAIN))
    assert model.entities_[3] == "e003"
    assert fingerprint(model) == fingerprint(fitted)
    labels, scores = model.predict_tails("e005", "r0", topn=3)
    numbers, same = fitted.predict_tails(5, 0, topn=3)
    assert list(labels) == [f"e{number:03}" for number in numbers]
    assert (scores == same).all()


def test_predictions_agree_with_scores(fitted):
    head, relation, tail = TEST[0]
    everyone = np.arange(len(fitted.entities_))
    scores = fitted.score_triples(np.stack([np.full(128, head), np.full(128, relation), everyone], 1))
    expected = -np.linalg.norm(
        fitted.entity_vectors_[head] + fitted.relation_vectors_[relation] - fitted.entity_vectors_, axis=1
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    found, best = fitted.predict_tails(head, relation, topn=128)
    assert (found == np.argsort(-scores, kind="stable")).all()
    assert (best == scores[found]).all()
    heads, scores = fitted.predict_heads(relation, tail, topn=5)
    np.testing.assert_allclose(
        scores, fitted.score_triples([(entity, relation, tail) for entity in heads]), rtol=1e-4, atol=1e-5
    )


def test_known_answers_are_left_out(fitted):
    head, relation, tail = TRAIN[0]
    with_known, _ = fitted.predict_tails(head, relation, topn=1000)
    without, _ = fitted.predict_tails(head, relation, topn=1000, exclude=TRAIN)
    assert set(with_known) - set(without) == {tail}


def test_entities_without_triples_have_vectors():
    model = TransE(**QUICK).fit(TRAIN, entities=200, relations=9)
    assert model.entity_vectors_.shape == (200, 20)
    assert model.relation_vectors_.shape == (9, 20)
    model.evaluate([(150, 8, 199)])


@pytest.mark.parametrize("count", [2, 3, 5, 17])
def test_small_graphs(count):
    triples = [(entity, 0, (entity + 1) % count) for entity in range(count)]
    assert np.isfinite(TransE(4, max_iter=3).fit(triples).entity_vectors_).all()


def test_history_and_callback():
    seen = []
    model = TransE(**QUICK).fit(TRAIN, on_iteration=lambda record: seen.append(record) or len(seen) == 3)
    assert model.n_iter_ == 3
    assert seen == model.history_
    assert [record["samples"] for record in seen] == [len(TRAIN), 2 * len(TRAIN), 3 * len(TRAIN)]
    assert seen[2]["objective"] < seen[0]["objective"]


def test_the_callback_may_use_the_model():
    def look(record):
        assert model.entity_vectors_ is not None if record["iteration"] > 1 else True
        figures.append(model.evaluate(TEST, TRAIN).filtered.mrr)

    figures = []
    model = TransE(**QUICK)
    model.fit(TRAIN, on_iteration=look)
    assert figures[-1] == model.evaluate(TEST, TRAIN).filtered.mrr


@pytest.mark.parametrize("names", [False, True])
def test_saved_models_come_back(tmp_path, names):
    train = planted_graph.named(TRAIN) if names else TRAIN
    test = planted_graph.named(TEST) if names else TEST
    model = TransE(**QUICK).fit(train)
    model.save(tmp_path / "model.npz")
    loaded = TransE.load(tmp_path / "model.npz")
    assert fingerprint(loaded) == fingerprint(model)
    assert loaded.get_params() == model.get_params()
    assert (loaded.entities_ == model.entities_).all()
    assert loaded.evaluate(test, train) == model.evaluate(test, train)


def test_damaged_files_are_refused(tmp_path):
    model = TransE(**QUICK).fit(TRAIN)
    model._entities = type(model._entities)(np.arange(7), "entity")
    model.save(tmp_path / "model.npz")
    with pytest.raises(strads.InputError, match="incomplete"):
        TransE.load(tmp_path / "model.npz")


def test_clone_and_not_fitted():
    model = clone(TransE(7, margin=2.0))
    assert (model.n_components, model.margin) == (7, 2.0)
    for use in (lambda: model.predict_tails(0, 0), lambda: model.entities_, lambda: model.evaluate(TEST)):
        with pytest.raises(NotFittedError):
            use()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"norm": 3}, "norm=3"),
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"margin": 0}, "margin=0"),
        ({"n_negatives": 1.5}, "n_negatives=1.5"),
        ({"negatives": "hard"}, "negatives='hard'"),
        ({"adversarial_temperature": -1}, "adversarial_temperature=-1"),
        ({"normalization": "unit"}, "normalization='unit'"),
        ({"learning_rate": float("nan")}, "learning_rate=nan"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"random_state": 1.5}, "random_state=1.5"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(strads.ArgumentError, match=message):
        TransE(**parameters).fit(TRAIN)


@pytest.mark.parametrize(
    ("triples", "options", "message"),
    [
        ([], {}, "empty"),
        (np.zeros((0, 3), int), {}, "empty"),
        (np.zeros((4, 2), int), {}, r"shape \(4, 2\)"),
        ("text", {}, "are a str"),
        ([(0, 0)], {}, "row 0 has 2 values"),
        ([(0, 0, 1), (0, -1, 1)], {}, "row 1 is"),
        ([(0, 0, 2**31)], {}, "row 0 is"),
        (np.array([[0.0, 1.0, np.nan]]), {}, "integer ids"),
        ([("a", "r", "b"), ("a", "r", None)], {}, "row 1 has the tail None"),
        ([("a", "r", "b"), ("a", "", "b")], {}, "row 1 has the relation ''"),
        ([("a", "r", 3)], {}, "row 0 has the tail 3"),
        ([(0, 0, 0)], {}, "a single entity"),
        (
            [(0, 0, 2_000_000_000)],
            {},
            "triples: 2,000,000,001 ids of kind entity are far beyond what 1 entries can fill",
        ),
        ([(0, 2_000_000_000, 1)], {}, "triples: 2,000,000,001 ids of kind relation are far beyond"),
        ([(0, 0, 5)], {"entities": 5}, "row 0: entity 5 is outside 0 … 4"),
        ([("a", "r", "b")], {"entities": ["a", "c"]}, "there is no entity 'b'"),
        ([("a", "r", "b")], {"entities": ["a", "b", "a"]}, "'a' occurs twice"),
        ([("a", "r", "b")], {"entities": 2}, "need a list of labels"),
        ([(0, 0, 1)], {"relations": 0}, "give 1 or more"),
        ([(0, 0, 1)], {"relations": [1, 2]}, "list of strings"),
    ],
    ids=str,
)
def test_wrong_triples_are_refused(triples, options, message):
    with pytest.raises((strads.ArgumentError, strads.InputError), match=message):
        TransE(**QUICK).fit(triples, **options)


def test_duplicates_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="2 triples are duplicates"):
        model = TransE(**QUICK).fit(np.concatenate([TRAIN, TRAIN[:2]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fingerprint(model) == fingerprint(TransE(**QUICK).fit(TRAIN))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda model: model.predict_tails(0, 7), "relation 7 is outside 0 … 6"),
        (lambda model: model.predict_tails(128, 0), "entity 128 is outside 0 … 127"),
        (lambda model: model.predict_tails("e001", "r0"), "is a string, but the model has ids"),
        (lambda model: model.predict_heads(0, 0, topn=0), "topn=0"),
        (lambda model: model.evaluate([(0, 0, 999)]), "test: row 0: entity 999"),
        (lambda model: model.evaluate(TEST, [TRAIN, [(0, 99, 0)]]), "known: row 0: relation 99"),
        (lambda model: model.score_triples([]), "empty"),
    ],
    ids=range(7),
)
def test_wrong_questions_are_refused(fitted, use, message):
    with pytest.raises((strads.ArgumentError, strads.InputError), match=message):
        use(fitted)


def test_a_diverging_run_says_so():
    with pytest.raises(strads.InputError, match="diverged"):
        TransE(4, learning_rate=1e38, max_iter=20).fit(TRAIN)


def test_blocks_depend_on_data_only():
    assert count_blocks(272_115, 14_541) == 16
    assert count_blocks(10, 10**6) == 2
    assert count_blocks(10**9, 10**8) == 64
    assert count_blocks(10**9, 40) == 4


@pytest.mark.slow
def test_real_facts_are_predicted(fb15k237):
    """Half of the default epochs are enough for this."""
    train, valid, test = (read_triples(fb15k237 / f"{part}2id.txt.gz") for part in ("train", "valid", "test"))
    model = TransE(max_iter=50).fit(train, entities=14_541, relations=237)
    figures = model.evaluate(test, [train, valid]).filtered
    assert figures.hits_at_10 > 0.42
    assert figures.mrr > 0.26
