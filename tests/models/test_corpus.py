"""Corpus and as_corpus: every form of counts gives the same corpus, and what is no count is refused by its place."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import strads
from strads.dds import RaggedArray
from strads.errors import ArgumentError, InputError
from strads.models import Corpus
from strads.models.corpora.corpus import as_corpus

COUNTS = np.array([[2, 0, 1, 0], [0, 0, 0, 0], [0, 3, 0, 0]])
FORMS = [
    sp.csr_matrix,
    sp.csr_array,
    sp.csc_matrix,
    sp.csc_array,
    sp.coo_matrix,
    sp.coo_array,
    sp.lil_array,
    sp.dok_array,
    sp.dia_array,
    sp.bsr_array,
    np.array,
    np.asfortranarray,
]
matrices = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 3))


def dense(corpus: Corpus) -> np.ndarray:
    return corpus.to_csr().toarray()


@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        *((form, dtype) for form in FORMS for dtype in ("i1", "u1", "i4", "i8", "u8", "f4", "f8")),
        (np.array, "f2"),  # SciPy has no sparse float16
    ],
)
def test_every_form_and_dtype_gives_the_same_corpus(form, dtype):
    X = form(COUNTS.astype(dtype))
    before = X.copy()
    corpus = as_corpus(X)
    assert corpus.offsets.tolist() == [0, 2, 2, 3]
    assert corpus.words.tolist() == [0, 2, 1]
    assert corpus.counts.tolist() == [2, 1, 3]
    assert (corpus.offsets.dtype, corpus.words.dtype, corpus.counts.dtype) == (np.int64, np.int32, np.int32)
    assert (corpus.n_documents, len(corpus), corpus.n_words, corpus.n_tokens) == (3, 3, 4, 6)
    assert corpus.lengths.tolist() == [3, 0, 3]
    assert corpus.vocabulary is None
    assert repr(corpus) == "Corpus(3 documents, 4 words, 6 tokens)"
    assert (np.asarray(before != X) == 0).all() if isinstance(X, np.ndarray) else (before != X).nnz == 0


def test_bools_are_counts():
    assert (dense(as_corpus(COUNTS > 0)) == (COUNTS > 0)).all()
    assert (dense(as_corpus(sp.csr_array(COUNTS > 0))) == (COUNTS > 0)).all()


@given(matrices, st.sampled_from(FORMS), st.randoms(use_true_random=False))
def test_round_trip_through_any_form(array, form, random):
    corpus = as_corpus(form(array), allow_empty=True)
    assert (dense(corpus) == array).all()
    assert dense(as_corpus(corpus.to_csr(), allow_empty=True)).tolist() == array.tolist()
    documents = [[f"w{w}" for w in np.repeat(np.arange(array.shape[1]), row)] for row in array]
    for document in documents:
        random.shuffle(document)
    names = [f"w{w}" for w in range(array.shape[1])]
    assert dense(as_corpus(documents, names, allow_empty=True)).tolist() == array.tolist()
    assert dense(as_corpus(map(" ".join, documents), names, allow_empty=True)).tolist() == array.tolist()
    numbers = RaggedArray.from_rows([[int(word[1:]) for word in document] for document in documents], "i4")
    for ragged in (numbers, strads.dvector(numbers)):
        from_numbers = as_corpus(ragged, n_words=array.shape[1], allow_empty=True)
        assert dense(from_numbers).tolist() == array.tolist()


@given(matrices.filter(np.any), st.randoms(use_true_random=False), st.sampled_from(["coo", "csr", "csc"]))
def test_duplicates_are_summed_and_zeros_dropped(array, random, form):
    entries = [(d, w) for d, w in np.ndindex(*array.shape) for _ in range(array[d, w])] + [(0, 0)]
    values = [1] * (len(entries) - 1) + [0]
    order = random.sample(range(len(entries)), len(entries))
    rows, columns = np.array([entries[k] for k in order]).T
    data = np.array([values[k] for k in order], "i1")
    if form == "coo":
        X = sp.coo_array((data, (rows, columns)), shape=array.shape)
    else:
        major, minor = (rows, columns) if form == "csr" else (columns, rows)
        length = array.shape[0 if form == "csr" else 1]
        sort = np.argsort(major, kind="stable")
        offsets = np.searchsorted(major[sort], np.arange(length + 1))
        X = getattr(sp, f"{form}_array")((data[sort], minor[sort], offsets), shape=array.shape)
    before = X.data.copy()
    corpus = as_corpus(X)
    assert (dense(corpus) == array).all()
    assert (corpus.counts > 0).all()
    assert (X.data == before).all()
    assert X.nnz == len(entries)


def test_sums_of_narrow_integers_do_not_wrap_around():
    X = sp.coo_array((np.full(3, 100, "i1"), (np.zeros(3, int), np.zeros(3, int))), shape=(1, 1))
    assert as_corpus(X).n_tokens == 300


def test_a_canonical_matrix_is_not_copied():
    X = sp.csr_array(COUNTS.astype(np.int32))
    corpus = as_corpus(X)
    assert np.shares_memory(corpus.words, X.indices)
    assert np.shares_memory(corpus.counts, X.data)
    assert X.data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        corpus.counts[0] = 5


def test_words_that_occur_nowhere_and_empty_documents_stay():
    corpus = as_corpus(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]]), ["a", "b", "c"])
    assert (corpus.n_documents, corpus.n_words, corpus.vocabulary) == (3, 3, ["a", "b", "c"])


def test_word_numbers():
    corpus = as_corpus(strads.dvector([[4, 1, 4], [], [0]]))
    assert dense(corpus).tolist() == [[0, 1, 0, 0, 2], [0] * 5, [1, 0, 0, 0, 0]]
    assert as_corpus(strads.dvector([[1], [1, 0]]), ["a", "b", "c"]).n_words == 3


@pytest.mark.nodes
def test_word_numbers_on_nodes(runtime):
    documents = strads.dvector([[4, 1, 4], [], [0], [2, 2]])
    if not runtime.is_local:
        documents.distribute(runtime.cluster)
    assert dense(as_corpus(documents)).tolist() == [[0, 1, 0, 0, 2], [0] * 5, [1, 0, 0, 0, 0], [0, 0, 2, 0, 0]]


@pytest.mark.parametrize(("bad", "limit"), [(-1, ""), (-0.5, ""), (np.nan, ""), (np.inf, "largest"), (3e9, "largest")])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, np.array])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_is_no_count_is_refused_by_its_place(bad, limit, form, dtype):
    X = np.tile(COUNTS.astype(dtype), (5, 1))
    X[7, 3] = bad
    shown = "NaN" if np.isnan(bad) else re.escape(f"{np.dtype(dtype).type(bad)}")
    with pytest.raises(InputError, match=rf"row 7, column 3 of the counts is {shown}: counts are numbers.*{limit}"):
        as_corpus(form(X))


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, np.array])
def test_fractional_counts_are_rounded_at_random_and_keep_their_mean(form):
    X = np.tile([0.25, 3.0, 1.5, 0.0], (4000, 1)).astype("f4")
    with pytest.warns(UserWarning, match=r"8000 fractional counts, such as 0.25 in row 0, column 0"):
        found = dense(as_corpus(form(X)))
    with pytest.warns(UserWarning, match="fractional"):
        np.testing.assert_array_equal(found, dense(as_corpus(form(X))))
    np.testing.assert_allclose(found.mean(0), X[0], atol=0.04)
    assert [set(column) for column in found.T.tolist()] == [{0, 1}, {3}, {1, 2}, {0}]


def test_columns_of_a_frame_are_words():
    frame = pd.DataFrame(COUNTS, columns=["d", "b", "a", "c"])
    corpus = as_corpus(frame)
    assert corpus.vocabulary == ["d", "b", "a", "c"]
    np.testing.assert_array_equal(dense(as_corpus(frame[["a", "c", "b", "d"]], corpus.vocabulary)), COUNTS)
    np.testing.assert_array_equal(dense(as_corpus(pd.DataFrame(COUNTS))), COUNTS)  # numbers are no words
    with pytest.warns(UserWarning, match="that the vocabulary does not have"):
        as_corpus(frame.rename(columns={"a": "x"}), corpus.vocabulary, allow_empty=True)
    with pytest.raises(InputError, match="twice"):
        as_corpus(pd.DataFrame(COUNTS, columns=["a", "a", "b", "c"]))


@pytest.mark.parametrize("bad", [-3, 2**31])
def test_integers_that_are_no_counts(bad):
    X = COUNTS.copy()
    X[2, 0] = bad
    for form in (sp.csr_array, np.array):
        with pytest.raises(InputError, match=f"row 2, column 0 of the counts is {bad}: "):
            as_corpus(form(X))


def test_infinite_half_precision_numbers():
    with pytest.raises(InputError, match="row 0, column 1 of the counts is inf"):
        as_corpus(np.array([[1, np.inf]], "f2"))


def test_too_large_sums():
    half = np.int32(2**30)
    X = sp.csr_array((np.full(2, half), [1, 1], [0, 0, 2]), shape=(2, 3))
    with pytest.raises(InputError, match="row 1, column 1 of the counts is 2147483648: the largest count is"):
        as_corpus(X)
    with pytest.raises(InputError, match="document 1 has 2147483648 tokens; 2147483647 are possible: split it"):
        as_corpus(np.array([[1, 1], [2**30, 2**30]]))
    assert as_corpus(np.array([[2**30, 2**30 - 1], [2**30, 5]])).n_tokens == 2**31 + 2**30 + 4


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3, 4)), "two axes, documents × words, not 3-D float64"),
        (np.arange(3), "not 1-D int64"),
        (np.ones((2, 2), complex), "Complex data not supported: .*not complex128"),
        (sp.csr_array(np.ones((2, 2), complex)), "not complex128"),
        (np.array([["a", "b"]]), "not 2-D <U1"),
        (np.ma.masked_array(COUNTS, COUNTS > 2), "masked array"),
        ("one text", "this is one text, not a list of documents"),
        (b"one text", "this is one text"),
        (None, "not NoneType"),
        (17, "not int"),
        ([[(0, 2), (3, 1)]], r"document 0 is a list of tuple: give pairs .* as a sparse matrix"),
        ([[1, 2], [3]], r"document 0 is a list of int: give counts as np.array\(X\), word numbers as strads.dvector"),
        ([[], [1.5]], "document 1 is a list of float"),
        ([1, 2], "document 0 is 1, no text or list of words"),
        (["a text", None], "document 1 is None, no text or list of words"),
        (["a text", np.nan], "document 1 is NaN, no text"),
        ([np.nan, "a text"], "document 0 is NaN, no text"),
        ([["a"], [b"b"]], "document 1: word 0 is b'b', not a text"),
        ([["a"], ["b", 2]], "document 1: word 1 is 2, not a text"),
        (strads.dvector([[1, 2], [3, 4]]), "is ragged"),
        (strads.dvector([[0.5], [1.0, 2.0]]), "integers, numbers from 0, not float64"),
    ],
)
def test_what_is_no_corpus(X, message):
    with pytest.raises(ArgumentError, match=message):
        as_corpus(X)


def test_word_numbers_out_of_range():
    with pytest.raises(InputError, match="document 1: word number -2 is outside 0 … 2147483646"):
        as_corpus(strads.dvector([[1], [0, -2, 5]]))
    with pytest.raises(InputError, match="document 0: word number 2147483647 is outside"):
        as_corpus(strads.dvector([[2**31 - 1], []]))


@pytest.mark.parametrize("X", [np.zeros((0, 4)), sp.csr_array((0, 4)), [], strads.dvector(RaggedArray.from_rows([]))])
def test_no_documents(X):
    with pytest.raises(InputError, match="there are no documents"):
        as_corpus(X)


@pytest.mark.parametrize("X", [np.zeros((3, 4)), sp.csr_array((3, 4)), RaggedArray.from_rows([[], [], []], "i4")])
def test_documents_that_are_all_empty(X):
    with pytest.raises(InputError, match="all 3 documents are empty"):
        as_corpus(X)
    assert as_corpus(X, allow_empty=True).n_tokens == 0
    assert as_corpus(X, allow_empty=True).lengths.tolist() == [0, 0, 0]


@pytest.mark.parametrize("X", [COUNTS, sp.csr_array(COUNTS), strads.dvector([[0], [1, 2]])])
def test_a_vocabulary_names_the_columns(X):
    corpus = as_corpus(X, np.array(["d", "c", "b", "a"]))
    assert corpus.vocabulary == ["d", "c", "b", "a"]
    assert {type(word) for word in corpus.vocabulary} == {str}


@pytest.mark.parametrize("length", [3, 5])
def test_a_vocabulary_that_does_not_fit(length):
    names = list("abcde"[:length])
    corpus = Corpus.from_counts(COUNTS)
    fit = f"the vocabulary has {length} words, but the counts have 4: give a word for each column"
    with pytest.raises(InputError, match=fit):
        Corpus(corpus.offsets, corpus.words, corpus.counts, corpus.n_words, names)
    for X in (COUNTS, sp.csr_array(COUNTS), corpus):
        with pytest.raises(InputError, match=fit):
            as_corpus(X, names)
        with pytest.raises(InputError, match=f"X has 4 features, .* expecting {length} features"):
            as_corpus(X, n_words=length)
    with pytest.raises(InputError, match=fit):
        Corpus.from_counts(COUNTS, names)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (["a", "b", "a", "c"], "the vocabulary has 'a' twice, as words 0 and 2"),
        ([], "the vocabulary is empty"),
        (["a", 2, "b", "c"], "word 1 of the vocabulary is 2, not a text"),
        ("abcd", "not a str"),
        ({"a": 0, "b": 1, "c": 2, "d": 3}, r"not a dict \(of a CountVectorizer: get_feature_names_out\(\)\)"),
        ({"a", "b", "c", "d"}, "not a set"),
        (4, "not a int"),
    ],
)
def test_what_is_no_vocabulary(vocabulary, message):
    with pytest.raises(strads.StradsError, match=message):
        as_corpus(COUNTS, vocabulary)


def test_unknown_word_numbers_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="2 tokens are of words that the vocabulary does not have") as caught:
        corpus = as_corpus(strads.dvector([[0, 3, 1], [7], [1, 1]]), n_words=3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert dense(corpus).tolist() == [[1, 1, 0], [0, 0, 0], [0, 2, 0]]


def test_a_corpus_in_other_words():
    corpus = Corpus.from_counts(COUNTS, ["cat", "dog", "the", "never"])
    with pytest.warns(UserWarning, match="^3 tokens .* for instance 'dog'$"):
        other = corpus.in_vocabulary(["new", "cat"])  # "the" is a stop word, "never" never occurs
    assert dense(other).tolist() == [[0, 2], [0, 0], [0, 0]]
    assert other.vocabulary == ["new", "cat"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = as_corpus(corpus, ["never", "the", "dog", "cat"])
        assert as_corpus(corpus, corpus.vocabulary) is corpus
        assert as_corpus(corpus) is corpus
    assert (dense(turned) == COUNTS[:, ::-1]).all()
    with pytest.raises(InputError, match="the corpus has no vocabulary"):
        Corpus.from_counts(COUNTS).in_vocabulary(["cat"])
    assert as_corpus(Corpus.from_counts(COUNTS), list("abcd")).vocabulary == list("abcd")


def arrays(offsets, words, counts):
    return np.array(offsets, np.int64), np.array(words, np.int32), np.array(counts, np.int32)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (arrays([], [], []), "offsets of a Corpus must increase from 0"),
        (arrays([1, 2], [0, 1], [1, 1]), "must increase from 0"),
        (arrays([0, 2, 1, 2], [0, 1], [1, 1]), "must increase from 0"),
        (arrays([0, 3], [0, 1], [1, 1]), "end at 3, but there are 2 words and 2 counts"),
        (arrays([0, 2], [0, 1], [1]), "2 words and 1 counts"),
        (arrays([0, 2], [0, 3], [1, 1]), "entry 1 of the corpus: word 3 is outside 0 … 2"),
        (arrays([0, 2], [-1, 1], [1, 1]), "entry 0 of the corpus: word -1 is outside"),
        (arrays([0, 2], [0, 1], [1, 0]), "entry 1 of the corpus has the count 0"),
        (arrays([0, 2], [1, 0], [1, 1]), "words of a Corpus must be ascending within a document"),
        (arrays([0, 1, 3], [1, 0, 0], [1, 1, 1]), "words of a Corpus must be ascending within a document"),
        ((np.array([0, 1]), np.array([0]), np.array([1])), "one-dimensional ndarray of int32"),
        (([0, 1], *arrays([], [0], [1])[1:]), "offsets of a Corpus must be a one-dimensional ndarray of int64"),
    ],
)
def test_arrays_that_do_not_fit(parts, message):
    with pytest.raises(strads.StradsError, match=message):
        Corpus(*parts, 3)


@given(matrices, st.data())
def test_take(array, data):
    corpus = as_corpus(array, allow_empty=True)
    rows = data.draw(st.lists(st.integers(0, len(array) - 1)))
    assert (dense(corpus.take(rows)) == array[np.array(rows, int)]).all()


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([0, -1], "document -1 is outside 0 … 2"),
        (np.array([3, 5], np.uint64), "document 3 is outside 0 … 2"),
        ([0.7], "not 1-D float64"),
        ([True, False, True], r"not 1-D bool: .* np\.flatnonzero"),
        ([[0, 1]], "not 2-D int64"),
        (0, "not 0-D int64"),
        (["0"], "not 1-D <U1"),
    ],
)
def test_take_of_what_is_no_document(documents, message):
    with pytest.raises(strads.StradsError, match=message):
        Corpus.from_counts(np.eye(3, dtype=int)).take(documents)


@given(matrices.filter(lambda array: len(array) > 1), st.floats(0.01, 0.99), st.integers(0, 5))
def test_held_out(array, share, seed):
    array = np.column_stack([array, np.arange(1, len(array) + 1)])  # tells the documents apart
    corpus = as_corpus(array, [f"w{w}" for w in range(array.shape[1])])
    stay, aside = corpus.held_out(share, seed)
    expected = min(max(round(share * len(array)), 1), len(array) - 1)
    assert aside.n_documents == expected
    assert stay.vocabulary == aside.vocabulary == corpus.vocabulary
    both = np.concatenate([dense(stay), dense(aside)])
    assert (both[np.argsort(both[:, -1])] == array).all()
    for part in (stay, aside):
        assert (np.diff(dense(part)[:, -1]) > 0).all()
    assert (dense(corpus.held_out(share, seed)[1]) == dense(aside)).all()


@given(matrices, st.floats(0.01, 0.99), st.integers(0, 5))
def test_split_tokens(array, share, seed):
    corpus = as_corpus(array, allow_empty=True)
    first, second = corpus.split_tokens(share, seed)
    assert (dense(first) + dense(second) == array).all()
    assert (dense(corpus.split_tokens(share, seed)[0]) == dense(first)).all()


def test_parts_are_as_large_as_asked():
    corpus = as_corpus(np.full((100, 100), 10))
    first, _ = corpus.split_tokens(0.3, seed=1)
    assert first.n_tokens / corpus.n_tokens == pytest.approx(0.3, abs=0.01)
    assert not (dense(first) == dense(corpus.split_tokens(0.3, seed=2)[0])).all()
    stay, aside = corpus.held_out(0.2, np.random.default_rng(0))
    assert (stay.n_documents, aside.n_documents) == (80, 20)


@pytest.mark.parametrize("share", [0, 1, -0.5, 2, np.nan, "0.5"])
def test_shares_that_are_none(share):
    corpus = as_corpus(COUNTS)
    for split in (corpus.held_out, corpus.split_tokens):
        with pytest.raises(ArgumentError, match=r"share=.*: give a number between 0 and 1"):
            split(share)


def test_one_document_cannot_be_divided():
    with pytest.raises(InputError, match="at least 2 documents"):
        as_corpus(COUNTS[:1]).held_out(0.5)
