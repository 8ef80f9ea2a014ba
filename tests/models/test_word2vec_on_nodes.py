"""Word2Vec on nodes: the bits of one machine, on every backend."""

import pytest
from planted import planted_sentences
from test_word2vec import SMALL, digest

import strads
from strads.cluster import Runtime
from strads.models import Word2Vec

MODELS = {"skip-gram": {}, "bag of words": {"sg": 0}, "more workers": {"n_workers": 9, "vector_size": 20}}


def fit(name: str) -> Word2Vec:
    return Word2Vec(**{**SMALL, **MODELS[name]}).fit(planted_sentences(1000))


@pytest.fixture(scope="module")
def on_one_machine() -> dict[str, str]:
    with strads.init("threads", threads=1):
        return {name: digest(fit(name)) for name in MODELS}


@pytest.mark.nodes
@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_as_on_one_machine(on_one_machine: dict[str, str], runtime: Runtime, name: str) -> None:
    model = fit(name)
    assert digest(model) == on_one_machine[name]
    assert [node["rank"] for node in model.history_[0]["nodes"]] == list(range(runtime.cluster.size))
