"""Wrong documents and options of `strads train lda` end in one readable line, exit code 2, and nothing on disk."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from outputs import refusal

UCI = "2\n3\n3\n1 1 2\n1 3 1\n2 2 4\n"
TEXT = "cat dog cat\ndog cat dog\n" * 5


@pytest.fixture
def refused(strads: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> Callable[..., str]:
    """What standard error says of options."""
    out = tmp_path / "out"
    return lambda *options: refusal(strads("train", "lda", "--out", out, *options), out)


@pytest.mark.parametrize(
    ("content", "place", "problem"),
    [
        (b"", "", "the file is empty"),
        (b"\n\n\n", "", "none of the 3 documents has a word"),
        (b"the\nand\n", "", "has a word"),
        (b"cat dog\ndog cat\n", "", "--min-df and --max-df leave no word: lower --min-df"),
        (b"caf\xe9\n", ":1:", "not UTF-8"),
        (b"\x1f\x8bnot gzip", "", "cannot be read"),
        (b"2\n3\n3\n1 1 2\n1 4 1\n2 2 4\n", ":5:", "word 4 is outside 1"),
        (b"2\n3\n9\n1 1 2\n1 3 1\n2 2 4\n", ":3:", "is the file complete?"),
        (b"1\n3\n2\n1 1 2\n1 2 1\n", "", "--holdout 0"),
        (b"2\n3\n1\n1 1 2\n", "", "--holdout 0"),
    ],
)
def test_documents_that_cannot_be_used(
    refused: Callable[..., str], tmp_path: Path, content: bytes, place: str, problem: str
) -> None:
    file = tmp_path / "documents.txt"
    file.write_bytes(content)
    message = refused("--data", file)
    assert problem in message
    assert f"{file}{place}" in message or not place


def test_files_that_cannot_be_opened(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "nowhere.txt: no such file" in refused("--data", "nowhere.txt")
    assert "is a folder" in refused("--data", tmp_path)


@pytest.mark.parametrize(
    ("vocabulary", "data", "problem"),
    [
        ("cat\ndog\n", UCI, "there are 3 words, but 2 in"),
        ("cat\ndog\ncat\n", UCI, ":3: 'cat' is on line 1 already"),
        ("cat\ndog\ncat\n", TEXT, ":3: 'cat' is on line 1 already"),
        ("cat\n\ndog\n", TEXT, ":2: the line is blank"),
        ("\n", TEXT, "has no words"),
        ("bird\n", TEXT, "documents are empty"),
    ],
)
def test_vocabularies_that_do_not_fit(
    refused: Callable[..., str], tmp_path: Path, vocabulary: str, data: str, problem: str
) -> None:
    file, vocab = tmp_path / "documents.txt", tmp_path / "vocab.txt"
    file.write_text(data)
    vocab.write_text(vocabulary)
    assert problem in refused("--data", file, "--vocab", vocab)


@pytest.mark.parametrize(
    ("data", "options", "problem"),
    [
        (TEXT, ("--topics", 0), "--topics"),
        (TEXT, ("--topics", 100_000), "65536"),
        (TEXT, ("--iterations", 0), "--iterations"),
        (TEXT, ("--alpha", 0), "--alpha"),
        (TEXT, ("--beta", "nan"), "--beta"),
        (TEXT, ("--holdout", 1), "--holdout"),
        (TEXT, ("--learn-priors", "yes"), "--learn-priors"),
        (TEXT, ("--sampler", "fast"), "--sampler"),
        (TEXT, ("--stop-words", "german"), "--stop-words"),
        (TEXT, ("--min-df", "many"), "give a number of documents, such as 5"),
        (TEXT, ("--max-df", "1.5"), "or a share of them, such as 0.5"),
        (TEXT, ("--min-df", "9", "--max-df", "2"), "lower --min-df"),
        (TEXT, ("--vocab", "nowhere.txt"), "nowhere.txt: no such file"),
        (TEXT, ("--frobnicate",), "--frobnicate"),
        (UCI, ("--min-df", 2), "words are chosen already: leave out --min-df"),
        (UCI, ("--stop-words", "english"), "leave out --stop-words"),
        (UCI, ("--rank", 2), "--rank"),
    ],
)
def test_wrong_options(
    refused: Callable[..., str], tmp_path: Path, data: str, options: tuple[object, ...], problem: str
) -> None:
    file = tmp_path / "documents.txt"
    file.write_text(data)
    assert problem in refused("--data", file, *options)


def test_a_vocabulary_leaves_nothing_to_choose(refused: Callable[..., str], tmp_path: Path) -> None:
    file, vocab = tmp_path / "documents.txt", tmp_path / "vocab.txt"
    file.write_text(TEXT)
    vocab.write_text("cat\n")
    message = refused("--data", file, "--vocab", vocab, "--max-df", 0.9, "--max-features", 3)
    assert "leave out --max-df, --max-features" in message
