"""Documents as texts or lists of words: tokenization, and the choice of words to count."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from strads.dds.files import FilePath, check_file, line_blocks
from strads.errors import ArgumentError, InputError
from strads.models.corpora.counts import Counts, counts_of_sparse
from strads.models.corpora.vocabulary import UnknownWords, check_vocabulary

TWO_OR_MORE = r"(?u)\b\w\w+\b"
"""Words of two or more letters, digits or underscores, as in scikit-learn."""

_BLOCK_BYTES = 1 << 20  # read at a time


class NothingGiven(InputError):
    """There are no documents or sentences, or they have no words."""


def count_words(
    documents: Iterable[Any],
    vocabulary: Any = None,
    *,
    min_df: float = 1,
    max_df: float = 1.0,
    max_features: int | None = None,
    stop_words: Any = None,
    token_pattern: str = TWO_OR_MORE,
) -> tuple[Counts, list[str]]:
    """Count the words of documents; see `Corpus.from_text`.

    Returns
    -------
    The counts, and the vocabulary: the given one, or the remaining words, sorted.
    """
    documents = documents_of(documents)
    if vocabulary is not None:
        if (min_df, max_df, max_features) != (1, 1.0, None):
            raise ArgumentError("a given vocabulary says which words count: leave min_df, max_df, max_features out")
        vocabulary = check_vocabulary(vocabulary)
    words = _Words(_check_pattern(token_pattern), check_stop_words(stop_words), vocabulary)
    vectorizer = CountVectorizer(
        analyzer=words,
        vocabulary=vocabulary,
        min_df=min_df,
        max_df=max_df,
        max_features=max_features,
        dtype=np.int32,
    )
    try:
        matrix = vectorizer.fit_transform(documents)
    except (InputError, ArgumentError):
        raise
    except ValueError as error:
        _explain(error, words)
    if matrix.shape[0] == 0:
        raise NothingGiven("there are no documents")
    words.unknown.warn()
    names: NDArray[Any] = vectorizer.get_feature_names_out()
    return counts_of_sparse(matrix), names.tolist() if vocabulary is None else vocabulary


def check_stop_words(stop_words: Any) -> frozenset[str]:
    """The words to leave out: "english" is scikit-learn's list, None means none."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise ArgumentError(f"stop_words={stop_words!r} is unknown; give 'english', a list of words or None")
        return ENGLISH_STOP_WORDS
    words: list[Any] = list(stop_words) if isinstance(stop_words, Iterable) else [None]
    if not all(isinstance(word, str) for word in words):
        raise ArgumentError(f"stop_words={stop_words!r:.60}: give 'english', a list of words or None")
    return frozenset(words)


def documents_of(
    X: Any, kinds: str = "documents are counts (a sparse matrix or ndarray), texts, lists of words, or a Corpus"
) -> Iterator[Any]:
    """The documents of an iterable, if they are texts or lists of words.

    `kinds`: what a message says that they can be.

    Raises
    ------
    ArgumentError
        If it is something else, judging by the first document with a word.
    """
    if isinstance(X, str | bytes):
        raise ArgumentError(
            "this is one text, not a list of documents: put it into a list; a file is read by Corpus.from_file(path)"
        )
    if not isinstance(X, Iterable):
        raise ArgumentError(f"{kinds}, not {type(X).__name__}")
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        raise ArgumentError(f"a {type(X).__name__} would be read as its names: give one column, such as X['text']")
    documents = iter(X)
    seen = []
    for document in documents:
        seen.append(document)
        if isinstance(document, list | tuple) and len(document) and not isinstance(document[0], str | bytes):
            advice = "give counts as np.array(X), word numbers as strads.dvector(X)"
            if isinstance(document[0], tuple):
                advice = "give pairs of word number and count as a sparse matrix, as gensim.matutils.corpus2csc(X).T is"
            raise ArgumentError(f"document {len(seen) - 1} is a list of {type(document[0]).__name__}: {advice}")
        if isinstance(document, str) or not hasattr(document, "__len__") or len(document):
            break
    return chain(seen, documents)


def _check_pattern(pattern: Any) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ArgumentError(f"token_pattern={pattern!r:.60} is no regular expression: {error}") from error
    if not isinstance(compiled.pattern, str) or compiled.groups > 1:
        raise ArgumentError(f"token_pattern={pattern!r:.60}: give a text with at most one group, which is the word")
    return compiled


def read_lines(path: FilePath) -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or compressed with gzip, bz2, zstd or lz4, without line ends.

    Raises
    ------
    InputError
        If the file is missing, empty or corrupt, or at a line that is not UTF-8; names file and line.
    """
    return chain.from_iterable(read_blocks_of_lines(path))


def read_blocks_of_lines(path: FilePath) -> Iterator[list[str]]:
    """The same as `read_lines`, in lists of about a megabyte."""
    name = check_file(path)
    line = 1
    for block in line_blocks(name, _BLOCK_BYTES):
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line += block.count(b"\n", 0, error.start)
            raise InputError(
                f"{name}:{line}: not UTF-8 (byte {block[error.start]:#04x}): convert the file, for instance with iconv"
            ) from error
        line += block.count(b"\n")
        # Not splitlines, which also splits at characters other than line ends.
        yield [each.removesuffix("\r") for each in text.removesuffix("\n").split("\n")]


class _Words:
    """Returns the words of a document that are not stop words and, if a vocabulary is given, are in it."""

    def __init__(self, pattern: re.Pattern[str], stop_words: frozenset[str], vocabulary: list[str] | None):
        self.documents = 0
        self.unknown = UnknownWords()
        self._pattern = pattern
        self._stop_words = stop_words
        self._known = None if vocabulary is None else frozenset(vocabulary)

    def __call__(self, document: Any) -> list[str]:
        number, self.documents = self.documents, self.documents + 1
        is_text = isinstance(document, str)
        words = self._pattern.findall(document.lower()) if is_text else _checked(document, number)
        if self._stop_words:
            words = [word for word in words if word not in self._stop_words]
        if self._known is not None:
            for word in words:
                if word not in self._known:
                    self.unknown.add(word)
        return words


def _checked(document: Any, number: int) -> list[str]:
    if not isinstance(document, list | tuple | np.ndarray):
        raise ArgumentError(
            f'document {number} is {document!r:.60}, no text or list of words: an empty document is "" or []'
        )
    for place, word in enumerate(document):
        if not isinstance(word, str):
            raise ArgumentError(f"document {number}: word {place} is {word!r:.60}, not a text")
    return list(document)


def _explain(error: ValueError, words: _Words) -> NoReturn:
    """Raise the vectorizer's error with our own message."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        raise InputError(f"document {words.documents} is not UTF-8 ({error}): decode it first") from error
    if text.startswith("np.nan"):
        raise ArgumentError(f'document {words.documents} is NaN, no text: an empty document is ""') from error
    if text.startswith("empty vocabulary"):
        if words.documents == 0:
            raise NothingGiven("there are no documents") from error
        raise NothingGiven(
            f"none of the {words.documents} documents has a word: are they empty, or do they have stop words only?"
        ) from error
    if text.startswith(("After pruning", "max_df corresponds")):
        raise InputError("min_df and max_df leave no word: lower min_df, or raise max_df") from error
    raise ArgumentError(text) from error


def read_vocabulary(path: FilePath) -> list[str]:
    """Read a file of words, one per line.

    Raises
    ------
    InputError
        If the file is missing or has no words, at a blank line, or at a duplicate word.
    """
    words = [line.strip() for line in read_lines(path)]
    while words and not words[-1]:
        words.pop()
    lines: dict[str, int] = {}
    for line, word in enumerate(words, 1):
        if not word:
            raise InputError(f"{path}:{line}: the line is blank; there is one word on each")
        if word in lines:
            raise InputError(f"{path}:{line}: {word!r} is on line {lines[word]} already")
        lines[word] = line
    if not words:
        raise InputError(f"{path}: the file has no words")
    return words
