"""Philox: the authors' test vectors, and what numbers are made of its words."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import strads
from strads.rng.numbers import integer_between
from strads.rng.philox import below, mixed_key, random_half_words, random_words, unit_interval

_MAX = 2**64 - 1
words = st.integers(0, 2**64 - 1)


def _words(*values):
    return tuple(np.uint64(value) for value in values)


# From Random123's `kat_vectors`: counter, key, result.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0), 0, (0xCA00A0459843D731, 0x66C24222C9A845B5)),
        ((_MAX, _MAX), _MAX, (0x65B021D60CD8310F, 0x4D02F3222F86DF20)),
        (
            (0x243F6A8885A308D3, 0x13198A2E03707344),
            0xA4093822299F31D0,
            (0x0A5E742C2997341C, 0xB0F883D38000DE5D),
        ),
    ],
)
def test_published_vectors(counter, key, expected):
    count, stream = counter
    assert random_words(*_words(key, stream, count)) == expected
    halves = random_half_words(*_words(key, stream, count))
    assert [high << 32 | low for high, low in (halves[:2], halves[2:])] == list(expected)


@given(words, st.integers(1, 2**63 - 1))
def test_below_is_the_upper_half_of_the_product(word, bound):
    assert below(np.uint64(word), np.int64(bound)) == (word * bound) >> 64


@given(words)
def test_unit_interval_lies_in_it(word):
    assert unit_interval(np.uint64(word)) == (word >> 11) / 2**53


def test_numbers_are_uniform():
    numbers = np.array([below(np.uint64(random_words(*_words(7, 1, n))[0]), 10) for n in range(20_000)])
    counts = np.bincount(numbers, minlength=10)
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 27.9  # χ² with 9 degrees of freedom, p = 0.001


def test_keys_differ_by_each_part():
    keys = {mixed_key(*_words(s, p, m)) for s in range(4) for p in range(4) for m in range(4)}
    assert len(keys) == 64


@pytest.mark.parametrize("calls", [-1, 2**64, 1.5, "a", None, True])
def test_a_number_of_calls_that_cannot_be(calls):
    numbers = strads.random(1)
    numbers.calls = np.int64(2)
    with pytest.raises(strads.ArgumentError, match="calls="):
        numbers.calls = calls
    assert numbers.calls == 2


@pytest.mark.parametrize("values", [["a"], [1j], [[1], [1, 2]]])
def test_weights_that_are_no_numbers(values):
    with pytest.raises(strads.InputError, match="weights are numbers"):
        strads.weights(values)


@given(words, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63))
@example(2**64 - 1, -(2**63), 2**63)
@example(7, 2**63 - 512, 2**63)
@example(7, 2**63 - 513, 2**63 - 512)
def test_integers_between_any_bounds(word, low, end):
    if low < end:
        bound = np.uint64(end) if end == 2**63 else np.int64(end)
        assert integer_between(np.uint64(word), np.int64(low), bound) == low + ((word * (end - low)) >> 64)
