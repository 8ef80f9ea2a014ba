"""Vectors of words: similar words, analogies, evaluation, and files in the format of word2vec."""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import pearsonr, spearmanr

from strads.dds.files import FilePath
from strads.errors import ArgumentError, InputError, UnknownKeyError
from strads.models._parameters import check_whole_number
from strads.models._warnings import warn
from strads.models.corpora.documents import read_lines
from strads.models.corpora.vocabulary import check_vocabulary
from strads.models.embeddings.analogies import AnalogyEvaluation, evaluate_analogies
from strads.models.embeddings.word2vec_format import read_vectors, write_vectors

Words = str | Iterable[str]
Examples = Words | NDArray[Any] | Iterable[str | NDArray[Any] | tuple[str | NDArray[Any], float]]


class WordPairEvaluation(NamedTuple):
    """How well similarities agree with people's.

    Attributes
    ----------
    pearson, spearman
        Correlations.
    pairs
        Number of pairs compared.
    unknown
        Number of pairs with a word that has no vector; these are left out.
    """

    pearson: float
    spearman: float
    pairs: int
    unknown: int


class WordVectors:
    """Words and their vectors.

    Parameters
    ----------
    words : sequence of str
    vectors : array of shape (words, d)

    Attributes
    ----------
    words : list of str
    vectors : float32 ndarray of shape (words, d)
    numbers : dict of str to int
        Number of each word.

    Raises
    ------
    ArgumentError, InputError
        If a word occurs twice, there is not one vector for each word, or a number is NaN or infinite.
    """

    def __init__(self, words: Iterable[str], vectors: ArrayLike):
        self.words = check_vocabulary(words)
        self.vectors = np.asarray(vectors, np.float32)
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise ArgumentError(f"{len(self.words)} words need as many vectors; found shape {self.vectors.shape}")
        wrong = ~np.isfinite(self.vectors).all(1)
        if wrong.any():
            raise InputError(f"the vector of {self.words[int(np.argmax(wrong))]!r} has a NaN or an infinite number")

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @property
    def key_to_index(self) -> Mapping[str, int]:
        """Number of each word, by its name in gensim."""
        return self.numbers

    @property
    def index_to_key(self) -> list[str]:
        """The words, by their name in gensim."""
        return self.words

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.numbers

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        """The vector of a word.

        Raises
        ------
        UnknownKeyError
            If the word is unknown.
        """
        return self.vectors[self._number(word)]

    def get_vector(self, word: str, norm: bool = False) -> NDArray[np.float32]:
        """Return the vector of a word, or with `norm` that of length 1; errors as of `vectors[word]`."""
        return (self._directions if norm else self.vectors)[self._number(word)]

    def _number(self, word: Any) -> int:
        if not isinstance(word, str):
            raise ArgumentError(f"{word!r:.60} is no word: give a str")
        if word not in self.numbers:
            raise UnknownKeyError(
                f"{word!r} is unknown: it is none of the {len(self):,} words with a vector "
                "(too rare in the training text, or written in another way?)"
            )
        return self.numbers[word]

    @cached_property
    def _directions(self) -> NDArray[np.float32]:
        """The vectors, of length 1."""
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        return (self.vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

    def similarity(self, first: str, second: str) -> float:
        """Cosine of the angle between two words' vectors."""
        return float(self._directions[self._number(first)] @ self._directions[self._number(second)])

    def distance(self, first: str, second: str) -> float:
        """1 − `similarity`."""
        return 1.0 - self.similarity(first, second)

    def n_similarity(self, first: Words, second: Words) -> float:
        """Cosine of the angle between the means of two lists of words' vectors (as in gensim 4, not scaled first)."""
        means = [self.vectors[self._given(words)].mean(0) for words in (first, second)]
        lengths = float(np.linalg.norm(means[0])) * float(np.linalg.norm(means[1]))
        return float(means[0] @ means[1]) / (lengths or 1.0)

    def doesnt_match(self, words: Words) -> str:
        """Return the word that is farthest from the mean of all, by cosine, of vectors scaled to length 1."""
        given = _as_list(words)
        directions = self._directions[self._given(given)]
        return given[int(np.argmin(directions @ directions.mean(0)))]

    def _given(self, words: Words) -> list[int]:
        """Return the numbers of words, of which there must be one at least."""
        given = [self._number(word) for word in _as_list(words)]
        if not given:
            raise ArgumentError("there are no words: give one or more")
        return given

    def similar_by_vector(self, vector: ArrayLike, topn: int = 10) -> list[tuple[str, float]]:
        """Return the words in the direction of a vector of shape (d,), and cosines; best first."""
        return self.most_similar(np.asarray(vector, np.float32)[np.newaxis], topn=topn)

    @overload
    def most_similar(
        self, positive: Examples = ..., negative: Examples = ..., topn: int = ..., restrict_vocab: int | None = ...
    ) -> list[tuple[str, float]]: ...

    @overload
    def most_similar(
        self, positive: Examples = ..., negative: Examples = ..., *, topn: None, restrict_vocab: int | None = ...
    ) -> NDArray[np.float32]: ...

    def most_similar(
        self,
        positive: Examples = (),
        negative: Examples = (),
        topn: int | None = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]] | NDArray[np.float32]:
        """Words in the direction of Σ positive − Σ negative, for instance of king − man + woman.

        Parameters
        ----------
        positive, negative : str, or iterable of str, of vectors of shape (d,) and of pairs with a weight
            The words or vectors, which are scaled to length 1 first (3CosAdd, Mikolov et al. 2013), and then by the
            weight, as in `[("king", 2.0), "woman"]`. One vector may be given by itself.
        topn : int or None
            Largest number of words to return; None: the cosines of all words.
        restrict_vocab : int, optional
            Consider only the first of the words, the most frequent ones.

        Returns
        -------
        list of (str, float)
            Words, without the given ones, and cosines; best first. With `topn=None` a float32 array of shape
            (words,) or (restrict_vocab,) instead, which has the given words, too.

        Raises
        ------
        UnknownKeyError
            If a word is unknown.
        """
        for name, count in (("topn", topn), ("restrict_vocab", restrict_vocab)):
            if count is not None:
                check_whole_number(name, count, what="a whole number of words")
        examples = [(1.0, item) for item in _as_list(positive)] + [(-1.0, item) for item in _as_list(negative)]
        if not examples:
            raise ArgumentError("most_similar needs a word: positive or negative must not be empty")
        direction, given = np.zeros(self.vectors.shape[1], np.float32), set()
        for sign, item in examples:
            word, weight = item if isinstance(item, tuple) and len(item) == 2 else (item, 1.0)
            if not isinstance(weight, Real) or not np.isfinite(float(weight)):
                raise ArgumentError(f"{item!r:.60} is no pair of a word, or a vector, and a finite weight")
            if isinstance(word, str):
                given.add(self._number(word))
            direction += np.float32(sign * float(weight)) * self._direction(word)
        length = float(np.linalg.norm(direction))
        cosines: NDArray[np.float32] = self._directions[:restrict_vocab] @ (direction / (length or 1))
        if topn is None:
            return cosines
        without = [number for number in given if number < len(cosines)]
        cosines[without] = -np.inf
        count = min(int(topn), len(cosines) - len(without))
        best = np.argpartition(-cosines, count - 1)[:count] if count else np.zeros(0, int)
        best = best[np.lexsort((best, -cosines[best]))]
        return [(self.words[number], float(cosines[number])) for number in best]

    def similar_by_word(self, word: str, topn: int = 10) -> list[tuple[str, float]]:
        """Return the words in the direction of a word, and cosines; best first. The same as `most_similar`."""
        return self.most_similar(word, topn=topn)

    def _direction(self, item: Any) -> NDArray[np.float32]:
        """Return the direction of a word, or of a vector."""
        if not isinstance(item, np.ndarray):
            found: NDArray[np.float32] = self._directions[self._number(item)]
            return found
        vector = item.astype(np.float32) if item.dtype.kind in "fiu" else np.full(1, np.nan, np.float32)
        if vector.shape != self.vectors.shape[1:] or not np.isfinite(vector).all():
            raise ArgumentError(f"give a vector of {self.vectors.shape[1]} finite numbers, not of shape {item.shape}")
        return vector / np.float32(np.linalg.norm(vector) or 1.0)

    def evaluate_word_pairs(self, path: FilePath) -> WordPairEvaluation:
        """Compare similarities with people's judgements, for instance WordSim-353.

        Parameters
        ----------
        path
            A text file of lines of two words and a number, separated by tabs or else by commas, perhaps with a header;
            lines that start with # are skipped. Words that are not known as they are written are tried in lower case.

        Raises
        ------
        InputError
            If fewer than two pairs have vectors.

        Warns
        -----
        UserWarning
            Of lines that are something else, and are left out; and if all judgements or all similarities are equal, so
            that there is no correlation: it is NaN.
        """
        judged, found, unknown = [], [], 0
        others: list[str] = []
        lines = ((line, text) for line, text in enumerate(read_lines(path), 1) if text.strip() and text[0] != "#")
        for place, (line, text) in enumerate(lines):
            pair = _word_pair(text)
            if pair is None:
                if place > 0 or not _is_header(text):
                    others.append(f"{path}:{line}: {text!r:.60}")
                continue
            first, second, score = pair
            known = [word if word in self else word.lower() for word in (first, second)]
            if all(word in self for word in known):
                judged.append(score)
                found.append(self.similarity(*known))
            else:
                unknown += 1
        number = f"{len(others)} lines are" if len(others) > 1 else "1 line is"
        which = f"{number} not two words and a number, separated by tabs or commas"
        if len(found) < 2:
            reason = f"; {which}, the first: {others[0]}" if others else ""
            raise InputError(f"{path}: {len(found)} of {len(found) + unknown} pairs have vectors: 2 are needed{reason}")
        if others:
            warn(f"{which}, and left out; the first: {others[0]}")
        constant = [name for name, values in (("judgements", judged), ("similarities", found)) if len(set(values)) == 1]
        if constant:
            warn(f"{path}: all {constant[0]} are equal, so there is no correlation: it is NaN")
            return WordPairEvaluation(np.nan, np.nan, len(found), unknown)
        pearson, spearman = pearsonr(judged, found)[0], spearmanr(judged, found)[0]
        return WordPairEvaluation(float(pearson), float(spearman), len(found), unknown)

    def evaluate_word_analogies(self, path: FilePath) -> AnalogyEvaluation:
        """Ask which word is to c as b is to a, by 3CosAdd, for instance the questions of word2vec.

        Parameters
        ----------
        path
            A text file of lines of four words, of which the last is the answer; lines that begin with a colon name a
            section. Words that are not known as they are written are tried in lower case.

        Raises
        ------
        InputError
            At a malformed line (names file and line), or if no question has vectors.
        """
        numbers = self.numbers
        return evaluate_analogies(path, lambda word: numbers.get(word, numbers.get(word.lower())), self._directions)

    def save_word2vec_format(self, path: str | os.PathLike[str], *, binary: bool = False) -> None:
        """Write words and vectors in the format of word2vec.c, which gensim, fastText and spaCy read.

        Parameters
        ----------
        path
            The file; replaced when the new one is complete.
        binary : bool
            Whether to write float32 numbers instead of text.

        Raises
        ------
        InputError
            If a word contains white space, which the format does not allow.
        """
        write_vectors(path, self.words, self.vectors, binary=binary)

    @classmethod
    def load_word2vec_format(cls, path: FilePath, *, binary: bool = False) -> Self:
        """Read words and vectors in the format of word2vec.c, plain or compressed.

        Raises
        ------
        InputError
            If the file is malformed; names the line, or the word.
        """
        return cls(*read_vectors(path, binary=binary))


def _as_list(words: Any) -> list[Any]:
    if not isinstance(words, Iterable):
        raise ArgumentError(f"{words!r:.60} is no word: give a str, or a list of them")
    is_one = isinstance(words, str) or (isinstance(words, np.ndarray) and words.ndim == 1 and words.dtype.kind in "fiu")
    return [words] if is_one else list(words)


def _fields(text: str) -> list[str]:
    """Return the fields of a line, separated by tabs or else by commas."""
    return [field.strip() for field in text.split("\t" if "\t" in text else ",")]


def _is_header(text: str) -> bool:
    fields = _fields(text)
    return len(fields) >= 3 and all(fields) and all(_number_of(field) is None for field in fields[:3])


def _word_pair(text: str) -> tuple[str, str, float] | None:
    """Return the two words and the number of a line; None if it has something else."""
    fields = _fields(text)
    score = _number_of(fields[2]) if len(fields) >= 3 else None
    return None if score is None or not (fields[0] and fields[1]) else (fields[0], fields[1], score)


def _number_of(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
