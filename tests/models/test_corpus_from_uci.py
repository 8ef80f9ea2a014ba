"""Bags of words in UCI's format: read as they are, and every malformed line named."""

import bz2
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from strads.errors import InputError
from strads.models import Corpus
from strads.models.corpora import uci_bag_of_words

DOCWORD = "3\n4\n3\n1 1 2\n1 3 1\n3 2 3\n"
matrices = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 3))


def docword_of(array: np.ndarray, order: np.ndarray) -> str:
    entries = np.argwhere(array)[order]
    lines = [f"{d + 1} {w + 1} {array[d, w]}\n" for d, w in entries]
    return f"{array.shape[0]}\n{array.shape[1]}\n{len(entries)}\n" + "".join(lines)


def write(folder: Path, content: str | bytes, name: str = "docword.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@given(matrices.filter(np.any), st.integers(0, 3), st.booleans())
def test_round_trip(tmp_path_factory, array, seed, ordered):
    entries = np.arange(np.count_nonzero(array))
    order = entries if ordered else np.random.default_rng(seed).permutation(entries)
    folder = tmp_path_factory.mktemp("uci")
    names = [f"w{w}" for w in range(array.shape[1])]
    path = write(folder, docword_of(array, order))
    corpus = Corpus.from_uci(path, write(folder, "\n".join(names), "vocab.txt"))
    assert corpus.to_csr().toarray().tolist() == array.tolist()
    assert corpus.vocabulary == names
    assert Corpus.from_uci(path).vocabulary is None


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize(
    "text",
    [
        DOCWORD,
        DOCWORD.rstrip(),
        DOCWORD.replace("\n", "\r\n"),
        DOCWORD.replace(" ", "\t"),
        DOCWORD.replace(" ", "  ").replace("\n", " \n"),
        DOCWORD + "\n\n",
    ],
)
def test_the_same_counts_however_they_are_written(tmp_path, pack, text):
    corpus = Corpus.from_uci(write(tmp_path, pack(text.encode())))
    assert corpus.to_csr().toarray().tolist() == [[2, 0, 1, 0], [0] * 4, [0, 3, 0, 0]]


def test_an_entry_that_comes_twice_is_summed(tmp_path):
    assert Corpus.from_uci(write(tmp_path, "1\n2\n3\n1 2 1\n1 1 1\n1 2 4\n")).counts.tolist() == [1, 5]


def test_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(uci_bag_of_words, "_BLOCK_BYTES", 64)
    array = np.random.default_rng(0).poisson(1.0, (40, 30))
    text = docword_of(array, np.arange(np.count_nonzero(array)))
    assert (Corpus.from_uci(write(tmp_path, text)).to_csr().toarray() == array).all()
    bad = text.splitlines()
    for line in (4, 5, 300, len(bad)):
        wrong = [*bad[: line - 1], "1 31 1", *bad[line:]]
        path = write(tmp_path, "\n".join(wrong))
        with pytest.raises(InputError, match=rf"docword.txt:{line}: word 31 is outside 1 … 30 as line 2 says"):
            Corpus.from_uci(path)
        path = write(tmp_path, "\n".join([*bad[: line - 1], "1 x 1", *bad[line:]]))
        with pytest.raises(InputError, match=rf"docword.txt:{line}: column 'word' \(field 2\)"):
            Corpus.from_uci(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n4\n3\n1 1 2\n", ":1: expected the number of documents, at most 2147483647, found 'x'; the first three"),
        ("3\n4.5\n3\n1 1 2\n", ":2: expected the number of words, at most 2147483647, found '4.5'"),
        ("3\n4\n-3\n1 1 2\n", ":3: expected the number of entries, found '-3'"),
        ("3\n4\n1 1 2\n", ":3: expected the number of entries, found '1 1 2'"),
        ("3\n4\n", ":3: expected the number of entries, found ''"),
        ("3\n\n4\n1 1 2\n", ":2: expected the number of words"),
        ("3000000000\n4\n3\n", ":1: expected the number of documents"),
        ("3\n4\n3\n1 1 2\n1 3 1\n", ":3: 3 entries are announced, but 2 follow; is the file complete?"),
        ("3\n4\n3\n", ":3: 3 entries are announced, but 0 follow"),
        ("3\n4\n1\n1 1 2\n\n1 3 1\n", ":6: there are more entries than the 1 that line 3 announces"),
        ("3\n4\n99999999999999999999\n1 1 2\n", "99999999999999999999 entries are announced, but 1 follow"),
        ("3\n4\n1\n4 1 2\n", ":4: document 4 is outside 1 … 3 as line 1 says"),
        ("3\n4\n2\n\n1 1 2\n\n0 1 2\n", ":7: document 0 is outside 1 … 3"),
        ("3\n4\n1\n1 0 2\n", ":4: word 0 is outside 1 … 4 as line 2 says"),
        ("3\n4\n1\n1 1 0\n", ":4: count 0 is outside 1 … 2147483647"),
        ("3\n4\n1\n1 1 -2\n", ":4: count -2 is outside"),
        (
            "3\n4\n1\n1 1 1.5\n",
            ":4: column 'count' (field 3): expected an integer (int32), found '1.5'; correct the line",
        ),
        ("3\n4\n1\n1 1 nan\n", ":4: column 'count' (field 3): expected an integer (int32), found 'nan'; correct"),
        ("3\n4\n1\n1 1 3000000000\n", ":4: column 'count' (field 3): expected"),
        ("3\n4\n2\n1 1 1\n1 2\n", ":5: expected 3 fields separated by whitespace"),
        ("3\n4\n1\n1 1 1 1\n", ":4: expected 3 fields separated by whitespace"),
        ("3\n4\n0\n", "all 3 documents are empty"),
        ("0\n4\n0\n", "there are no documents"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Corpus.from_uci(path)
    if message.startswith(":"):
        assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        ("a\nb\nc\n", "docword.txt:2: there are 4 words, but 3 in "),
        ("a\nb\nc\nd\ne\n", "docword.txt:2: there are 4 words, but 5 in "),
        ("a\nb\na\nd\n", "vocab.txt:3: 'a' is on line 1 already"),
        ("a\n\nc\nd\n", "vocab.txt:2: the line is blank"),
        ("\n\n", "vocab.txt: the file has no words"),
        (b"a\n\xff\nc\nd\n", "vocab.txt:2: not UTF-8 (byte 0xff)"),
    ],
)
def test_vocabularies_that_do_not_fit(tmp_path, vocab, message):
    path = write(tmp_path, DOCWORD)
    with pytest.raises(InputError, match=re.escape(message)):
        Corpus.from_uci(path, write(tmp_path, vocab, "vocab.txt"))


def test_blank_lines_at_the_end_of_a_vocabulary(tmp_path):
    vocab = write(tmp_path, "a\r\nb \r\nc\r\nd\r\n\r\n", "vocab.txt")
    assert Corpus.from_uci(write(tmp_path, DOCWORD), vocab).vocabulary == ["a", "b", "c", "d"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        Corpus.from_uci(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="no such file"):
        Corpus.from_uci(write(tmp_path, DOCWORD), tmp_path / "missing")
    packed = gzip.compress(DOCWORD.encode() * 10)
    with pytest.raises(InputError, match=r"cannot be read.*is the file complete"):
        Corpus.from_uci(write(tmp_path, packed[:-6], "docword.txt.gz"))
    with pytest.raises(InputError, match=":1: expected the number of documents"):
        Corpus.from_uci(write(tmp_path, gzip.compress(b"", mtime=0), "docword.txt.gz"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DOCWORD, True),
        ("3\n4\n", True),
        ("3\n4\n5\n1 2\n", False),
        ("3\n4\n5\na b c\n", False),
        ("1 2 3\n" * 4, False),
        ("1 2 3\n" * 6, True),
        ("3\n4\n5 5\n1 2 3\n", True),
        ("3\n-4\n5\n1 2 3\n1 x 3\n", True),
        ("4\n5\n1 2 3\n2 3 4\n3 4 5\n4 5 6\n", True),
        ("1987\n12 monkeys\n7 samurai\n", False),
        ("12 15 12 9\n3\n7 7 1\n15 12\n", False),
    ],
)
def test_the_format_is_known_by_its_first_lines(tmp_path, text, expected):
    assert uci_bag_of_words.looks_like_uci(write(tmp_path, text)) == expected
