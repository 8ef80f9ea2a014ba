"""Corpora of texts, lists of words and text files: what is a word, which words count, and what goes wrong."""

import bz2
import gzip
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from strads.errors import InputError, StradsError
from strads.models import Corpus
from strads.models.corpora.corpus import as_corpus

TEXTS = ["The cat sat; the CAT!", "", "a dog and 2 cats, 42 dogs", "Über_naïve dog's cat"]
IMDB = Path(__file__).parents[2] / "../shared/data/imdb/reviews.tsv.gz"


def table(corpus: Corpus) -> dict[str, list[int]]:
    assert corpus.vocabulary is not None
    return dict(zip(corpus.vocabulary, corpus.to_csr().toarray().T.tolist(), strict=True))


def test_words_of_texts():
    assert table(Corpus.from_text(TEXTS)) == {
        "42": [0, 0, 1, 0],
        "and": [0, 0, 1, 0],
        "cat": [2, 0, 0, 1],
        "cats": [0, 0, 1, 0],
        "dog": [0, 0, 1, 1],
        "dogs": [0, 0, 1, 0],
        "sat": [1, 0, 0, 0],
        "the": [2, 0, 0, 0],
        "über_naïve": [0, 0, 0, 1],
    }


@pytest.mark.filterwarnings("ignore:Your stop_words may be inconsistent")
@given(
    st.lists(st.text("aAbBé_1 .'\n", max_size=30), min_size=1, max_size=8),
    st.sampled_from([{}, {"min_df": 2}, {"max_df": 0.5}, {"max_features": 2}, {"stop_words": ["ab", "aa", "a"]}]),
    st.sampled_from([r"(?u)\b\w\w+\b", r"[a-z]+", r"(\w)\w"]),
)
def test_the_options_are_those_of_scikit_learn(texts, options, pattern):
    options |= {"token_pattern": pattern}
    try:
        expected = CountVectorizer(**options)
        counts = expected.fit_transform(texts)
    except ValueError:
        with pytest.raises(InputError):
            Corpus.from_text(texts, **options)
        return
    corpus = Corpus.from_text(iter(texts), **options)
    assert corpus.vocabulary == expected.get_feature_names_out().tolist()
    assert corpus.to_csr().toarray().tolist() == counts.toarray().tolist()


@pytest.mark.parametrize("form", [list, tuple, iter, np.array, lambda X: np.array(X, object), lambda X: map(str, X)])
def test_forms_of_texts(form):
    expected = table(Corpus.from_text(TEXTS))
    assert table(Corpus.from_text(form(TEXTS))) == expected
    assert table(as_corpus(form(TEXTS))) == expected
    assert table(as_corpus([text.encode() for text in TEXTS])) == expected


def test_lists_of_words_are_taken_as_they_are():
    documents = [["The cat", "x"], [], ("x",), np.array(["x", "é"])]
    expected = {"The cat": [1, 0, 0, 0], "x": [1, 0, 1, 1], "é": [0, 0, 0, 1]}
    assert table(Corpus.from_text(documents)) == expected
    assert table(as_corpus(iter(documents))) == expected
    assert as_corpus([[], ["a"]]).n_documents == 2


def test_english_stop_words():
    assert set(table(Corpus.from_text(TEXTS, stop_words="english"))) == set(table(Corpus.from_text(TEXTS))) - {
        "the",
        "and",
    }


def test_a_given_vocabulary():
    with pytest.warns(UserWarning, match=r"^5 tokens are of words .* left out, for instance 'sat', 'cats', '42'$") as w:
        corpus = Corpus.from_text(TEXTS, vocabulary=["dog", "nowhere", "cat"])  # "the" and "and" are stop words
    assert (len(w), w[0].filename) == (1, __file__)
    assert table(corpus) == {"dog": [0, 0, 1, 1], "nowhere": [0, 0, 0, 0], "cat": [2, 0, 0, 1]}
    with pytest.warns(UserWarning, match="^1 token is of a word that the vocabulary does not have"):
        as_corpus([["cat", "bird"]], ["cat"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_corpus(["the cat of a cat"], ["cat"])
        Corpus.from_text(["cat bird"], vocabulary=["cat"], stop_words=["bird"])


def test_documents_of_unknown_words_only():
    with pytest.warns(UserWarning, match="2 tokens"):
        assert as_corpus(["bird bird", ""], ["cat"], allow_empty=True).lengths.tolist() == [0, 0]
    with pytest.warns(UserWarning, match="1 token"), pytest.raises(InputError, match="all 1 documents are empty"):
        as_corpus(["bird"], ["cat"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_words": "german"}, "stop_words='german' is unknown; give 'english', a list of words or None"),
        ({"stop_words": [1]}, r"stop_words=\[1\]: give"),
        ({"stop_words": 5}, "stop_words=5: give"),
        ({"token_pattern": "("}, r"token_pattern='\(' is no regular expression"),
        ({"token_pattern": None}, "token_pattern=None is no regular"),
        ({"token_pattern": b"x"}, "give a text with at most one group"),
        ({"token_pattern": "(a)(b)"}, "at most one group"),
        ({"min_df": -1}, "min_df"),
        ({"max_df": 1.5}, "max_df"),
        ({"max_features": 0}, "max_features"),
        ({"vocabulary": ["cat"], "min_df": 2}, "leave min_df, max_df, max_features out"),
        ({"vocabulary": {"cat": 0}}, "a list of words in the order of their numbers, not a dict"),
        ({"vocabulary": ["cat", "cat"]}, "'cat' twice"),
        ({"min_df": 10}, "min_df and max_df leave no word"),
        ({"min_df": 4, "max_df": 2}, "min_df and max_df leave no word"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(StradsError, match=message):
        Corpus.from_text(TEXTS, **options)


@pytest.mark.parametrize("texts", [["", " "], ["a b !"], [[], []]])
def test_no_words(texts):
    with pytest.raises(InputError, match=f"none of the {len(texts)} documents has a word"):
        Corpus.from_text(texts)


def test_bytes_that_are_not_utf8():
    with pytest.raises(InputError, match=r"document 1 is not UTF-8 .*: decode it first"):
        Corpus.from_text([b"cat", b"\xff\xfe"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_has_a_document_on_each_line(tmp_path, pack, end):
    path = tmp_path / "texts"
    path.write_bytes(pack(("\ufeff" + end.join(TEXTS) + end).encode()))
    assert table(Corpus.from_file(path)) == table(Corpus.from_text(TEXTS))
    path.write_bytes(pack(end.join(TEXTS).encode()))
    assert table(Corpus.from_file(str(path), min_df=2)) == {"cat": [2, 0, 0, 1], "dog": [0, 0, 1, 1]}


def test_only_line_ends_end_documents(tmp_path):
    path = tmp_path / "texts"
    path.write_text("one\u2028two\x0cthree\x85four\n\nfive\n", encoding="utf-8")
    assert Corpus.from_file(path).lengths.tolist() == [4, 0, 1]


def test_lines_across_blocks(tmp_path):
    path = tmp_path / "texts"
    lines = [f"w{n} " * 1000 for n in range(600)]  # more than two blocks
    path.write_text("\n".join(lines))
    corpus = Corpus.from_file(path)
    assert corpus.lengths.tolist() == [1000] * 600
    assert len(corpus.vocabulary) == 600
    path.write_bytes("\n".join(lines).encode().replace(b"w500 ", b"\xe4 "))
    with pytest.raises(InputError, match=re.escape(f"{path}:501: not UTF-8 (byte 0xe4): convert the file")):
        Corpus.from_file(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        Corpus.from_file(tmp_path / "missing")
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="the file is empty"):
        Corpus.from_file(tmp_path / "empty")
    (tmp_path / "short.gz").write_bytes(gzip.compress(b"some words\n" * 100)[:-8])
    with pytest.raises(InputError, match=r"short.gz: cannot be read.*is the file complete"):
        Corpus.from_file(tmp_path / "short.gz")
    (tmp_path / "docword").write_text("3\n2\n1\n1 1 1\n")
    with pytest.raises(InputError, match="docword: this is a bag of words in UCI's format: use Corpus"):
        Corpus.from_file(tmp_path / "docword")


@pytest.mark.skipif(not IMDB.exists(), reason="needs ../shared/data/imdb/reviews.tsv.gz")
def test_film_reviews():
    corpus = Corpus.from_file(IMDB, min_df=5, stop_words="english", token_pattern=r"\b[a-z]{2,}\b")
    assert (corpus.n_documents, corpus.n_words, corpus.n_tokens) == (50_000, 36_258, 5_168_706)
    assert (corpus.lengths == 0).sum() < 10
