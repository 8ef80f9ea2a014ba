"""Coherence of topics against its plain definition."""

import math
from itertools import combinations

import numpy as np
import pytest

from strads.errors import ArgumentError, InputError
from strads.models import LatentDirichletAllocation

RNG = np.random.default_rng(0)
TEXTS = [" ".join(f"{topic}{word}" for word in RNG.integers(0, 12, 15)) for topic in "abc" * 40]
MIXED = [" ".join(f"{'abc'[RNG.integers(3)]}{word}" for word in RNG.integers(0, 12, 15)) for _ in range(120)]


def npmi(words: list[str], documents: list[set[str]]) -> float:
    def share(*some: str) -> float:
        return np.mean([set(some) <= document for document in documents])

    values = []
    for v, w in combinations([word for word in words if share(word)], 2):
        both = share(v, w)
        values.append(-1.0 if both == 0 else math.log(both / (share(v) * share(w))) / -math.log(both))
    return float(np.mean(values))


def test_coherence_is_the_mean_npmi_of_pairs():
    model = LatentDirichletAllocation(3, max_iter=30).fit(TEXTS)
    documents = [set(text.split()) for text in TEXTS]
    expected = [npmi(words, documents) for words in model.top_words(6)]
    assert np.allclose(model.coherence(TEXTS, 6), expected)
    assert model.coherence(TEXTS).min() > 0.2
    mixed = LatentDirichletAllocation(3, max_iter=30).fit(MIXED)
    assert mixed.coherence(MIXED).max() < 0.2


def test_words_that_are_always_or_never_there():
    model = LatentDirichletAllocation(1, max_iter=2).fit(["aa bb cc"] * 5)
    assert model.coherence(["aa bb cc"] * 3).tolist() == [1.0]
    assert model.coherence(["aa", "bb", "cc"]).tolist() == [-1.0]
    assert np.isnan(model.coherence(["aa"])).all()
    with pytest.raises(ArgumentError, match="n=1"):
        model.coherence(["aa"], 1)
    with pytest.raises(InputError, match="no documents"):
        model.coherence([])
