"""The words of a vocabulary, and words that are not in it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from strads.errors import ArgumentError, InputError
from strads.models._warnings import warn

_SHOWN = 3


def check_vocabulary(vocabulary: Any) -> list[str]:
    """The words as a list.

    Raises
    ------
    ArgumentError
        If it is not a sequence of strings.
    InputError
        If there are duplicates, or no words.
    """
    if isinstance(vocabulary, str | bytes | Mapping | set | frozenset) or not isinstance(vocabulary, Iterable):
        raise ArgumentError(
            f"a vocabulary is a list of words in the order of their numbers, not a {type(vocabulary).__name__} "
            "(of a CountVectorizer: get_feature_names_out())"
        )
    words = list(vocabulary)
    for number, word in enumerate(words):
        if not isinstance(word, str):
            raise ArgumentError(f"word {number} of the vocabulary is {word!r:.60}, not a text")
    if not words:
        raise InputError("the vocabulary is empty")
    if len(set(words)) < len(words):
        seen: dict[str, int] = {}
        for number, word in enumerate(words):
            if word in seen:
                raise InputError(f"the vocabulary has {word!r} twice, as words {seen[word]} and {number}")
            seen[word] = number
    return [str(word) for word in words]  # converts NumPy strings


def check_fits(vocabulary: list[str], n_words: int) -> None:
    """Reject a vocabulary that does not have a word for each column."""
    if len(vocabulary) != n_words:
        raise InputError(
            f"the vocabulary has {len(vocabulary)} words, but the counts have {n_words}: give a word for each column"
        )


def packed_words(words: list[str]) -> NDArray[np.uint8]:
    """Return words as an array of bytes, for model files."""
    return np.frombuffer(json.dumps(words).encode(), np.uint8)


def unpacked_words(packed: NDArray[np.uint8]) -> list[str]:
    """Return what `packed_words` was given."""
    return [str(word) for word in json.loads(packed.tobytes())]


class UnknownWords:
    """Counts tokens of words that are not in a vocabulary.

    Words of scikit-learn's English stop list are not counted: a vocabulary omits these on purpose.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._examples: list[str] = []

    def add(self, word: str, count: int = 1) -> None:
        """Count tokens of a word that is not in the vocabulary."""
        if word in ENGLISH_STOP_WORDS:
            return
        self.tokens += count
        if len(self._examples) < _SHOWN and word not in self._examples:
            self._examples.append(word)

    def warn(self) -> None:
        """Warn of the number of tokens left out, if any."""
        if self.tokens:
            warn_of_unknown(self.tokens, f", for instance {', '.join(map(repr, self._examples))}")


def warn_of_unknown(tokens: int, examples: str = "") -> None:
    """Warn of tokens that are left out."""
    which = "1 token is of a word" if tokens == 1 else f"{tokens} tokens are of words"
    warn(f"{which} that the vocabulary does not have, and left out{examples}")
