"""Sentences as sequences of word numbers, from texts, lists of words and files."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from strads.dds.files import FilePath
from strads.errors import ArgumentError, InputError
from strads.models._unicode import LONE_SURROGATE
from strads.models.corpora.documents import NothingGiven, documents_of, read_blocks_of_lines

TOKENS = ("words", "whitespace")
_NOT_IN_WORDS = r"[^\pL\pM\pN_]+"  # RE2
_BATCH = 8192  # sentences that are read at a time


@dataclass(frozen=True, eq=False, repr=False)
class Sentences:
    """Texts as sequences of word numbers, in the order of the text; 4 bytes a word.

    Create one with `from_text` or `from_file`. A sentence is whatever was one item or one line: windows do not reach
    beyond it.

    Parameters
    ----------
    words : int32 ndarray of shape (tokens,)
        Word numbers.
    offsets : int64 ndarray of shape (sentences + 1,)
        Sentence s has the tokens `offsets[s]:offsets[s + 1]`.
    vocabulary : list of str
        The words by their numbers, in no particular order.
    counts : int64 ndarray of shape (words,)
        Number of tokens of each word.
    """

    words: NDArray[np.int32]
    offsets: NDArray[np.int64]
    vocabulary: list[str]
    counts: NDArray[np.int64]

    @classmethod
    def from_text(
        cls,
        sentences: Iterable[Any],
        *,
        lowercase: bool = True,
        tokens: str = "words",
        max_vocab_size: int | None = None,
    ) -> Self:
        """Read sentences one after another, for instance from a generator; only word numbers are kept.

        Parameters
        ----------
        sentences : iterable of str, or of lists of str
            Texts, which are split into words; or lists of words, which are taken as they are.
        lowercase : bool
            Whether to convert texts to lower case.
        tokens : {"words", "whitespace"}
            "words" are runs of letters, digits and underscores; "whitespace" splits at white space only, for texts
            whose words are apart already.
        max_vocab_size : int, optional
            Bounds the number of distinct words while reading: whenever there are more, the rarest are forgotten (of
            equally rare ones those that came last), and counted from 0 if they come again.

        Raises
        ------
        ArgumentError, InputError
            If there are no sentences, or for one that is not text; names the first.
        """
        reader = _Reader(lowercase, tokens, max_vocab_size)
        remaining = documents_of(sentences, "sentences are texts, lists of words, or the path of a file")
        while batch := list(islice(remaining, _BATCH)):
            reader.read(batch)
        if not reader.sentences:
            raise NothingGiven("there are no sentences")
        return cls(*reader.result())

    @classmethod
    def from_file(
        cls,
        path: FilePath,
        *,
        lowercase: bool = True,
        tokens: str = "words",
        max_vocab_size: int | None = None,
    ) -> Self:
        """Read a text file, one sentence per line, plain or compressed (gzip, bz2, zstd, lz4).

        The other parameters are those of `from_text`.

        Raises
        ------
        InputError
            If the file cannot be read, or at a line that is not UTF-8; names file and line.
        """
        reader = _Reader(lowercase, tokens, max_vocab_size)
        for lines in read_blocks_of_lines(path):
            reader.read(lines)
        return cls(*reader.result())

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return len(self.words)

    @property
    def n_words(self) -> int:
        """Number of distinct words."""
        return len(self.vocabulary)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Sentences: {len(self):,} of {self.n_tokens:,} tokens, {self.n_words:,} words>"


def as_sentences(X: Any, max_vocab_size: int | None = None) -> Sentences:
    """Return anything that `Word2Vec.fit` accepts as sentences."""
    if isinstance(X, Sentences):
        return X
    if isinstance(X, str) or hasattr(X, "__fspath__"):
        return Sentences.from_file(X, max_vocab_size=max_vocab_size)
    return Sentences.from_text(X, max_vocab_size=max_vocab_size)


class _Reader:
    """Numbers words in order of appearance, by Arrow's hash tables within a batch and a dict across batches."""

    def __init__(self, lowercase: bool, tokens: str, max_vocab_size: int | None):
        if tokens not in TOKENS:
            raise ArgumentError(f"tokens={tokens!r} is unknown; choose one of {', '.join(TOKENS)}")
        self.sentences = 0
        self._lowercase, self._tokens, self._most = lowercase, tokens, max_vocab_size
        self._numbers: dict[str, int] = {"": 0}
        self._counts = np.zeros(1, np.int64)
        self._words: list[NDArray[np.int32]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def read(self, batch: list[Any]) -> None:
        """Read some sentences: all texts, or all lists of words."""
        words, lengths = self._flat(batch)
        encoded = words.dictionary_encode()
        found = encoded.dictionary.to_pylist()
        numbers = self._numbers
        own = np.fromiter((numbers.setdefault(word, len(numbers)) for word in found), np.int32, len(found))
        tokens = own[encoded.indices.to_numpy(zero_copy_only=False)]
        kept = tokens > 0  # empty ones come from splitting
        ends = np.cumsum(lengths)
        before = np.concatenate([[0], np.cumsum(kept)])
        self._lengths.append(np.diff(before[np.concatenate([[0], ends])]))
        self._words.append(tokens[kept].astype(np.int32))
        self._count(self._words[-1])
        self.sentences += len(batch)

    def _count(self, tokens: NDArray[np.int32]) -> None:
        """Count words, and forget the rarest if there are too many; tokens of these keep their numbers."""
        size = len(self._numbers)
        counts = np.bincount(tokens, minlength=size)
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        if self._most is None:
            return
        excess = int(np.count_nonzero(counts[1:])) - self._most
        if excess > 0:
            by_count = np.argsort(counts[1:][::-1], kind="stable")  # of equal ones the last first
            rarest = size - 1 - by_count
            counts[rarest[counts[rarest] > 0][:excess]] = 0

    def _flat(self, batch: list[Any]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the tokens of a batch, and how many each sentence has."""
        first = next((each for each in batch if isinstance(each, str) or not hasattr(each, "__len__") or len(each)), "")
        if not isinstance(first, str):
            return self._flat_lists(batch)
        for number, text in enumerate(batch):
            if not isinstance(text, str):
                self._refuse(number, text, "not a text like the sentences before it")
        texts = self._encoded(batch)
        if self._lowercase:
            texts = pc.utf8_lower(texts)
        if self._tokens == "whitespace":
            split = pc.utf8_split_whitespace(texts)
        else:
            split = pc.split_pattern_regex(texts, _NOT_IN_WORDS)
        return split.flatten(), pc.list_value_length(split).to_numpy().astype(np.int64)

    def _flat_lists(self, batch: list[Any]) -> tuple[pa.Array, NDArray[np.int64]]:
        for number, words in enumerate(batch):
            if not isinstance(words, list | tuple | np.ndarray):
                self._refuse(number, words, 'no text or list of words: an empty sentence is "" or []')
            for place, word in enumerate(words):
                if not isinstance(word, str):
                    self._refuse(number, word, "not a text", f": word {place}")
        lengths = np.fromiter(map(len, batch), np.int64, len(batch))
        return self._encoded([word for words in batch for word in words]), lengths

    def _encoded(self, texts: list[str]) -> pa.Array:
        try:
            return pa.array(texts, pa.string())
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object!r:.60} in the sentences is not Unicode: {LONE_SURROGATE}") from error

    def _refuse(self, number: int, value: Any, problem: str, where: str = "") -> None:
        raise ArgumentError(f"sentence {self.sentences + number}{where} is {value!r:.60}, {problem}")

    def result(self) -> tuple[NDArray[np.int32], NDArray[np.int64], list[str], NDArray[np.int64]]:
        """Return the fields of `Sentences`; the empty word is number 0, with no tokens."""
        lengths = np.concatenate([np.zeros(0, np.int64), *self._lengths])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        words = np.concatenate([np.zeros(0, np.int32), *self._words])
        return words - np.int32(1), offsets, list(self._numbers)[1:], self._counts[1:]
