"""Vectors of words: neighbours, evaluation, and the file formats of word2vec."""

import gzip
import struct

import numpy as np
import pytest

from strads.errors import ArgumentError, InputError, UnknownKeyError
from strads.models import WordVectors

WORDS = ["king", "man", "woman", "queen", "ölçü"]
VECTORS = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1], [-1, -1, 0.1]], np.float32)


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(WORDS, VECTORS)


def test_the_most_similar_words_come_first(vectors: WordVectors) -> None:
    found = vectors.most_similar("king", topn=2)
    assert [word for word, _ in found] == ["man", "queen"]
    assert found[0][1] == pytest.approx(vectors.similarity("king", "man"))
    assert found[0][1] == pytest.approx(1 / np.sqrt(2))
    assert len(vectors.most_similar("king", topn=100)) == 4
    assert WordVectors(["alone"], [[1.0]]).most_similar("alone") == []


def test_analogies_add_and_take_directions(vectors: WordVectors) -> None:
    assert vectors.most_similar(["king", "woman"], ["man"], topn=1)[0][0] == "queen"
    assert vectors.most_similar(negative="ölçü", topn=1)[0][0] in {"man", "woman", "king", "queen"}


def test_similar_to_vectors_and_weighted_words(vectors: WordVectors) -> None:
    of_words = vectors.most_similar(["king", "woman"], ["man"])
    weighted = vectors.most_similar([("king", 1.0), VECTORS[2] * 7], [("man", 1)])
    assert dict(weighted)["queen"] == pytest.approx(dict(of_words)["queen"])
    assert vectors.most_similar(VECTORS[3], topn=1)[0][0] == "queen"  # only words are left out
    assert vectors.similar_by_word("king") == vectors.most_similar("king")
    assert vectors.most_similar([("king", 0.0), "woman"], topn=1)[0][0] == "queen"
    cosines = vectors.most_similar("king", topn=None, restrict_vocab=4)
    assert cosines == pytest.approx([vectors.similarity("king", word) for word in WORDS[:4]])
    assert vectors.most_similar("ölçü", restrict_vocab=1) == [
        ("king", pytest.approx(vectors.similarity("ölçü", "king")))
    ]
    for wrong in ([VECTORS[0, :2]], [("king", np.nan)], [("king", "man")], np.full(3, np.inf), np.array([["king"]])):
        with pytest.raises(ArgumentError, match=r"3 finite numbers|no pair of a word|no word"):
            vectors.most_similar(wrong)


def test_an_unknown_word_is_a_missing_key(vectors: WordVectors) -> None:
    for ask in (lambda: vectors["duke"], lambda: vectors.most_similar("duke"), lambda: vectors.get_vector("duke")):
        with pytest.raises(UnknownKeyError, match=r"^'duke' is unknown") as found:
            ask()
        assert isinstance(found.value, KeyError)
        assert isinstance(found.value, InputError)


def test_what_gensim_has_too(vectors: WordVectors, tmp_path) -> None:
    assert vectors.index_to_key[vectors.key_to_index["queen"]] == "queen"
    assert np.linalg.norm(vectors.get_vector("king", norm=True)) == pytest.approx(1)
    assert vectors.get_vector("king").tolist() == vectors["king"].tolist()
    assert vectors.distance("king", "man") == pytest.approx(1 - vectors.similarity("king", "man"))
    assert vectors.similar_by_vector(VECTORS[3], topn=2)[0] == ("queen", pytest.approx(1))
    assert vectors.n_similarity("king", "man") == pytest.approx(vectors.similarity("king", "man"))
    means = np.array(VECTORS[:2]).mean(0), np.array(VECTORS[2:4]).mean(0)
    expected = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert vectors.n_similarity(["king", "man"], ["woman", "queen"]) == pytest.approx(expected)
    assert vectors.doesnt_match(["king", "ölçü", "man", "queen"]) == "ölçü"
    for call in (lambda: vectors.doesnt_match([]), lambda: vectors.similar_by_vector([1.0, np.nan, 0.0])):
        with pytest.raises(ArgumentError, match=r"no words|3 finite numbers"):
            call()
    file = tmp_path / "questions.txt"
    file.write_text(": royal\nMan king woman queen\nman king woman ölçü\n: others\nman duke woman queen\n")
    found = vectors.evaluate_word_analogies(file)
    assert (found.accuracy, found.questions, found.unknown, found.sections) == (0.5, 2, 1, {"royal": 0.5})
    for text, message in (("a b c\n", ":1: expected four words"), ("a b c d\n", "no question has vectors")):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            vectors.evaluate_word_analogies(file)


def test_words_are_looked_up(vectors: WordVectors) -> None:
    assert "king" in vectors
    assert "duke" not in vectors
    assert vectors["man"].tolist() == [1, 0, 0]
    assert len(vectors) == 5
    with pytest.raises(InputError, match="'duke' is unknown: it is none of the 5 words"):
        vectors["duke"]
    with pytest.raises(ArgumentError, match="3 is no word"):
        vectors.similarity("king", 3)
    with pytest.raises(ArgumentError, match="needs a word"):
        vectors.most_similar()
    with pytest.raises(ArgumentError, match="topn=0"):
        vectors.most_similar("king", topn=0)
    with pytest.raises(ArgumentError, match="5 is no word"):
        vectors.most_similar(5)


def test_vectors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match="2 words need as many vectors"):
        WordVectors(["a", "b"], [[1.0]])
    with pytest.raises(InputError, match="the vector of 'b' has a NaN"):
        WordVectors(["a", "b"], [[1.0], [float("nan")]])
    with pytest.raises(InputError, match="twice"):
        WordVectors(["a", "a"], [[1.0], [2.0]])


def test_similarities_are_compared_with_judgements(vectors: WordVectors, tmp_path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("# words\n\nKing\tman\t9\nking\twoman\t1\nman\tqueen\t0.5\nman\tduke\t3\n")
    found = vectors.evaluate_word_pairs(path)
    assert (found.pairs, found.unknown) == (3, 1)
    assert found.spearman == pytest.approx(0.866, abs=1e-3)  # two ties at cosine 0
    path.write_text("king\tduke\t1\n")
    with pytest.raises(InputError, match="0 of 1 pairs have vectors"):
        vectors.evaluate_word_pairs(path)


@pytest.mark.parametrize("separator", ["\t", ",", ", "])
def test_pairs_may_have_a_header_and_other_lines(vectors: WordVectors, tmp_path, separator: str) -> None:
    path = tmp_path / "pairs"
    rows = [("Word 1", "Word 2", "Human (mean)"), ("king", "man", "9"), ("king", "woman", "1"), ("man", "queen", "0.5")]
    lines = [separator.join(row) for row in rows]
    path.write_text("# words\n" + "\n".join(lines))
    expected = vectors.evaluate_word_pairs(path)
    assert (expected.pairs, expected.unknown) == (3, 0)
    path.write_text("\n".join([*lines, "king man 3", separator.join(("king", "man", "nan")), lines[0]]))
    with pytest.warns(
        UserWarning, match=r"^3 lines are not two words and a number.* the first: .*pairs:5: 'king man 3'"
    ):
        assert vectors.evaluate_word_pairs(path) == expected
    path.write_text("king man 3")
    with pytest.raises(InputError, match=r"0 of 0 pairs have vectors.*1 line is not .*pairs:1"):
        vectors.evaluate_word_pairs(path)


def test_equal_judgements_have_no_correlation(vectors: WordVectors, tmp_path) -> None:
    path = tmp_path / "pairs"
    path.write_text("king,man,3\nking,woman,3\n")
    with pytest.warns(UserWarning, match="all judgements are equal") as warned:
        found = vectors.evaluate_word_pairs(path)
    assert len(warned) == 1
    assert np.isnan([found.pearson, found.spearman]).all()
    assert found.pairs == 2


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_files_keep_every_bit(vectors: WordVectors, tmp_path, binary: bool, compressed: bool) -> None:
    rng = np.random.default_rng(0)
    many = WordVectors([f"w{n}é" for n in range(9000)], rng.normal(size=(9000, 7)).astype(np.float32))
    for each in (vectors, many):
        path = tmp_path / "vectors"
        each.save_word2vec_format(path, binary=binary)
        if compressed:
            path.write_bytes(gzip.compress(path.read_bytes()))
        read = WordVectors.load_word2vec_format(path, binary=binary)
        assert read.words == each.words
        assert np.array_equal(read.vectors, each.vectors)


def test_files_have_the_format_of_word2vec(vectors: WordVectors, tmp_path) -> None:
    path = tmp_path / "vectors"
    vectors.save_word2vec_format(path)
    assert path.read_text(encoding="utf-8").splitlines()[:2] == ["5 3", "king 1.0 0.0 1.0"]
    vectors.save_word2vec_format(path, binary=True)
    rows = [word.encode() + b" " + struct.pack("<3f", *row) + b"\n" for word, row in zip(WORDS, VECTORS, strict=True)]
    assert path.read_bytes() == b"5 3\n" + b"".join(rows)
    # word2vec.c and gensim also write rows without line ends between.
    path.write_bytes(b"5 3\n" + b"".join(row[:-1] for row in rows))
    assert WordVectors.load_word2vec_format(path, binary=True).words == WORDS
    with pytest.raises(InputError, match="'New York' has white space"):
        WordVectors(["New York"], [[1.0]]).save_word2vec_format(path)


@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_the_files(vectors: WordVectors, tmp_path, binary: bool) -> None:
    gensim = pytest.importorskip("gensim.models")
    vectors.save_word2vec_format(tmp_path / "ours", binary=binary)
    theirs = gensim.KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert theirs.index_to_key == WORDS
    assert np.array_equal(theirs.vectors, VECTORS)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    ours = WordVectors.load_word2vec_format(tmp_path / "theirs", binary=binary)
    assert ours.words == WORDS
    assert np.array_equal(ours.vectors, VECTORS)


@pytest.mark.parametrize(
    ("content", "binary", "message"),
    [
        (b"words\n", False, "vectors:1: expected the numbers of words"),
        (b"1 2 3\n", True, "vectors:1: expected the numbers of words"),
        (b"2 2\na 1 2\n", False, "2 words are announced, but 1 follow"),
        (b"1 2\na 1 2\nb 1 2\n", False, "vectors:3: there are more lines than the 1 words"),
        (b"1 2\na 1\n", False, "vectors:2: 1 numbers after 'a'; line 1 announces 2"),
        (b"1 2\na 1 x\n", False, "vectors:2: the vector of 'a' is not of numbers"),
        (b"1 2\n\xff 1 2\n", False, "vectors:2: not UTF-8"),
        (b"1 1\na nan\n", False, "the vector of 'a' has a NaN"),
        (b"2 2\na \x00\x00\x80?\x00\x00\x80?\nb \x00", True, "2 words are announced, but 1 follow"),
        (b"1 1\n\xff\xfe \x00\x00\x80?", True, "word 0 is not UTF-8"),
        (b"99999999999 99999999999\n", True, "too many for the memory"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content: bytes, binary: bool, message: str) -> None:
    (tmp_path / "vectors").write_bytes(content)
    with pytest.raises(InputError, match=message):
        WordVectors.load_word2vec_format(tmp_path / "vectors", binary=binary)
