"""Subsampling and windows, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.models.kernels.word_windows import SENTENCE_END, find_pairs, subsample

BITS, BLOCKS = 3, 4
TEXTS = st.lists(st.integers(-1, (BLOCKS << BITS) - 1), max_size=60).map(lambda codes: np.array(codes, np.int32))


def subsampled(text, keep, window=5, shrink=True, stream=0):
    words, reaches = np.empty(len(text), np.int32), np.empty(len(text), np.uint8)
    key = np.uint64(7)
    count = subsample(text, keep, window, shrink, key, np.uint64(stream), words, reaches)
    return words[:count], reaches[:count]


@given(TEXTS)
def test_all_words_and_one_end_after_another_are_kept(text):
    words, reaches = subsampled(text, np.full(BLOCKS << BITS, 2**32, np.uint64))
    expected = [w for i, w in enumerate(text) if w != SENTENCE_END or (any(text[:i] >= 0) and text[i - 1] >= 0)]
    assert words.tolist() == expected
    assert all((1 <= r <= 5) == (w >= 0) for w, r in zip(words, reaches, strict=True))


def test_words_are_kept_as_often_as_they_should_and_reaches_are_uniform():
    text = np.tile(np.array([0, 1], np.int32), 100_000)
    words, reaches = subsampled(text, np.array([2**32, 2**30], np.uint64))
    assert (words == 0).sum() == 100_000
    assert (words == 1).sum() == pytest.approx(25_000, rel=0.03)
    assert np.bincount(reaches, minlength=6)[1:] == pytest.approx([25_000] * 5, rel=0.03)


def test_windows_that_do_not_shrink_reach_to_the_end():
    _, reaches = subsampled(np.zeros(10, np.int32), np.array([2**32], np.uint64), window=255, shrink=False)
    assert (reaches == 255).all()


@given(TEXTS, st.integers(1, 4))
def test_every_pair_of_a_window_is_found_once(text, window):
    rng = np.random.default_rng(0)
    reaches = np.where(text >= 0, rng.integers(1, window + 1, len(text)), 0).astype(np.uint8)
    expected = []
    for middle, reach in enumerate(reaches):
        for direction in (-1, 1):
            for distance in range(1, reach + 1):
                other = middle + direction * distance
                if not 0 <= other < len(text) or text[other] == SENTENCE_END:
                    break
                expected.append((text[other], text[middle]))
    found = []
    inputs, outputs = np.empty(2 * window * len(text), np.int32), np.empty(2 * window * len(text), np.int32)
    for block in range(BLOCKS):
        positions = np.flatnonzero(text >> BITS == block).astype(np.int32)
        count = find_pairs(text, reaches, positions, window, inputs, outputs)
        found += zip(inputs[:count], outputs[:count], strict=True)
    assert sorted(found) == sorted(expected)
