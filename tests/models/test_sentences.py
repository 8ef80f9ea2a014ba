"""Sentences from texts, lists of words and files."""

import gzip

import numpy as np
import pandas as pd
import pytest

from strads.errors import ArgumentError, InputError
from strads.models import Sentences


def words_of(sentences):
    return [
        [sentences.vocabulary[word] for word in sentences.words[low:high]]
        for low, high in zip(sentences.offsets[:-1], sentences.offsets[1:], strict=True)
    ]


def test_texts_are_split_into_words_in_lower_case():
    sentences = Sentences.from_text(["Don't stop, ÉLAN_1!", "", "  a\ta ", "日本 語"])
    assert words_of(sentences) == [["don", "t", "stop", "élan_1"], [], ["a", "a"], ["日本", "語"]]
    assert dict(zip(sentences.vocabulary, sentences.counts, strict=True))["a"] == 2
    assert (len(sentences), sentences.n_tokens, sentences.n_words) == (4, 8, 7)
    assert repr(sentences) == "<Sentences: 4 of 8 tokens, 7 words>"


def test_white_space_can_separate_words_and_case_can_stay():
    sentences = Sentences.from_text(["New-York  is\u00a0big "], lowercase=False, tokens="whitespace")
    assert words_of(sentences) == [["New-York", "is", "big"]]


def test_lists_of_words_are_taken_as_they_are():
    given = [["New York", "is"], [], ("big",), np.array(["is", "Big"])]
    assert words_of(Sentences.from_text(given)) == [["New York", "is"], [], ["big"], ["is", "Big"]]


def test_a_generator_is_read_once_and_in_batches():
    count = 20_000
    sentences = Sentences.from_text(f"word{number % 7} x" for number in range(count))
    assert len(sentences) == count
    assert sentences.counts.sum() == 2 * count
    assert words_of(sentences)[8200] == [f"word{8200 % 7}", "x"]


@pytest.mark.parametrize("compressed", [False, True])
def test_files_have_a_sentence_a_line(tmp_path, compressed):
    path = tmp_path / "text"
    text = b"One two\r\n\ntwo three\n"
    path.write_bytes(gzip.compress(text) if compressed else text)
    assert words_of(Sentences.from_file(path)) == [["one", "two"], [], ["two", "three"]]


def test_the_rarest_words_are_forgotten_where_there_are_too_many():
    rare = [f"rare{number}" for number in range(3000)]
    sentences = Sentences.from_text([["often"] * 10, rare, *[["again"] * 3] * 9000], max_vocab_size=100)
    counts = dict(zip(sentences.vocabulary, sentences.counts, strict=True))
    assert counts["often"] == 10
    assert counts["again"] >= 3 * (9000 - 8192)
    assert sum(count > 0 for count in counts.values()) == 100


@pytest.mark.parametrize(
    ("sentences", "most", "kept"),
    [
        ([["a", "b", "c"]], 2, {"a": 1, "b": 1}),
        ([["c", "c", "b", "a", "b", "d"]], 3, {"c": 2, "b": 2, "a": 1}),
        ([["graph", "system"]] * 3 + [["system", "eps"], ["minors"] * 3], 2, {"graph": 3, "system": 4}),
        ([["a", "b"]], 2, {"a": 1, "b": 1}),
    ],
)
def test_no_more_words_are_forgotten_than_must_be(sentences, most, kept):
    found = Sentences.from_text(sentences, max_vocab_size=most)
    counts = dict(zip(found.vocabulary, found.counts.tolist(), strict=True))
    assert {word: count for word, count in counts.items() if count} == kept


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("one text", ArgumentError, "one text"),
        ([], InputError, "there are no sentences"),
        (["a", 3], ArgumentError, "sentence 1 is 3, not a text"),
        (["a", ["b"]], ArgumentError, r"sentence 1 is \['b'\], not a text like"),
        ([["a"], "b"], ArgumentError, "sentence 1 is 'b', no text or list of words"),
        ([["a"], ["b", None]], ArgumentError, "sentence 1: word 1 is None, not a text"),
        ([[1, 2]], ArgumentError, "document 0 is a list of int"),
        (["a", float("nan")], ArgumentError, "sentence 1 is nan"),
        (7, ArgumentError, "sentences are texts, lists of words, or the path of a file, not int"),
        (None, ArgumentError, "sentences are texts, lists of words, or the path of a file, not NoneType"),
        (["a", "b \udcff"], InputError, r"'b \\udcff' .* lone surrogate"),
        ([["a"], ["\udcff"]], InputError, r"'\\udcff' .* lone surrogate"),
        (pd.DataFrame({"text": ["a b"]}), ArgumentError, r"DataFrame .* X\['text'\]"),
        ({"a b": 1}, ArgumentError, "dict"),
    ],
)
def test_what_is_no_text_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        Sentences.from_text(given)


def test_files_that_are_not_utf8_name_the_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo\nth\xffree\n")
    with pytest.raises(InputError, match=r"text:3: not UTF-8 \(byte 0xff\)"):
        Sentences.from_file(path)
    with pytest.raises(ArgumentError, match="tokens='letters' is unknown"):
        Sentences.from_text(["a"], tokens="letters")
