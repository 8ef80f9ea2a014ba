"""The words that get a vector, and how often their tokens are kept (Mikolov et al., NIPS 2013, §2.3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models.corpora.documents import NothingGiven
from strads.models.corpora.sentences import Sentences


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Words and how often they occur, by their numbers.

    Attributes
    ----------
    words : list of str
    counts : int64 ndarray of shape (words,)
    """

    words: list[str]
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.words)

    def keep_probabilities(self, sample: float) -> NDArray[np.float64]:
        """The probability that a token of each word is kept, as word2vec.c has it: √(t/f) + t/f, but at most 1.

        Parameters
        ----------
        sample : float
            t, a share of all tokens; 0 keeps all. f is the share of the word.
        """
        if sample == 0:
            return np.ones(len(self))
        with np.errstate(divide="ignore"):  # words of an earlier text may not occur in this one
            ratio = sample * self.counts.sum() / self.counts
        probabilities: NDArray[np.float64] = np.minimum(np.sqrt(ratio) + ratio, 1.0)
        return probabilities


def choose_words(sentences: Sentences, min_count: int, most: int | None) -> WordCounts:
    """Choose the words with at least `min_count` tokens, at most `most` of them: the most frequent first, then by name.

    Raises
    ------
    InputError
        If none is left.
    """
    counts = sentences.counts
    kept = np.flatnonzero((counts >= min_count) & (counts > 0))
    if len(kept) == 0:
        if not sentences.n_tokens:
            raise NothingGiven(f"none of the {len(sentences):,} sentences has a word: are they empty?")
        most_frequent = int(counts.max())
        raise InputError(
            f"no word occurs min_count={min_count} times in {sentences.n_tokens:,} tokens (the most frequent one "
            f"{most_frequent} times): lower min_count, or give more text"
        )
    names = np.array(sentences.vocabulary, object)[kept]
    by_name = np.argsort(names.astype(str), kind="stable")
    order = by_name[np.argsort(-counts[kept][by_name], kind="stable")][:most]
    return WordCounts(names[order].tolist(), counts[kept][order])


def extended(known: WordCounts, sentences: Sentences, min_count: int, most: int | None) -> WordCounts:
    """Add the counts of more sentences to known words, and append new words with at least `min_count` tokens there."""
    numbers = {word: number for number, word in enumerate(sentences.vocabulary)}
    counts = known.counts.copy()
    for place, word in enumerate(known.words):
        if word in numbers:
            counts[place] += sentences.counts[numbers[word]]
    room = None if most is None else max(most - len(known), 0)
    old = set(known.words)
    unknown = np.array([word not in old for word in sentences.vocabulary], bool)
    if not np.any(unknown & (sentences.counts >= max(min_count, 1))) or room == 0:
        return WordCounts(known.words, counts)
    rest = Sentences(sentences.words, sentences.offsets, sentences.vocabulary, np.where(unknown, sentences.counts, 0))
    new = choose_words(rest, min_count, room)
    return WordCounts([*known.words, *new.words], np.concatenate([counts, new.counts]))


def numbers_of(words: WordCounts, sentences: Sentences) -> NDArray[np.int32]:
    """Return the number that each word of the sentences has among `words`; −1 for those that are not there."""
    numbers = {word: number for number, word in enumerate(words.words)}
    return np.fromiter((numbers.get(word, -1) for word in sentences.vocabulary), np.int32, sentences.n_words)
