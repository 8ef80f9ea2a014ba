"""Blocks of words, of equal size and equal frequency, and a text in their codes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strads.models.corpora.sentences import Sentences
from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.word_windows import SENTENCE_END

LONGEST_SENTENCE = 10_000  # longer ones are cut, as in gensim


@dataclass(frozen=True, eq=False)
class WordBlocks:
    """The block of each word, and its row there.

    Words come in the order of frequency. Of each `blocks` words that follow one another, every block has one, at
    random; so blocks are equally frequent, and their rows fall in frequency.

    Attributes
    ----------
    bits : int
        The code of a word is `block << bits | row`.
    codes : int32 ndarray of shape (words,)
    """

    blocks: int
    bits: int
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, words: int, blocks: int, seed: int) -> Self:
        """Distribute words over blocks."""
        rows = -(-words // blocks)
        block_of = np.random.default_rng((seed, blocks)).random((rows, blocks)).argsort(1)
        bits = max(1, (rows - 1).bit_length())
        codes = block_of << bits | np.arange(rows)[:, None]
        return cls(blocks, bits, codes.reshape(-1)[:words].astype(np.int32))

    @property
    def rows(self) -> int:
        """Number of rows of each block; the last may not be in use."""
        return -(-len(self.codes) // self.blocks)

    def table(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Arrange vectors by block and row: (words, d) → (blocks, rows, d padded to whole SIMD vectors), aligned."""
        table: NDArray[np.float32] = aligned_zeros((self.blocks, self.rows, padded(vectors.shape[1])), np.float32)
        table[self._block_of, self._row_of, : vectors.shape[1]] = vectors
        return table

    def vectors(self, table: NDArray[np.float32], dimensions: int) -> NDArray[np.float32]:
        """The reverse of `table`."""
        return table[self._block_of, self._row_of, :dimensions]

    def by_code(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Arrange values of words by code; 0 for codes that no word has."""
        found = np.zeros(self.blocks << self.bits)
        found[self.codes] = values
        return found

    def by_block(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Arrange values of words by block and row; 0 for rows that are not in use."""
        return self.by_code(values).reshape(self.blocks, -1)[:, : self.rows]

    @property
    def _block_of(self) -> NDArray[np.int32]:
        return self.codes >> self.bits

    @property
    def _row_of(self) -> NDArray[np.int32]:
        return self.codes & ((1 << self.bits) - 1)

    def encode(self, sentences: Sentences, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a text in codes, with `SENTENCE_END` after each sentence; without words whose number is −1."""
        words = numbers[sentences.words]
        is_kept = words >= 0
        before = np.concatenate([[0], np.cumsum(is_kept)])
        starts = before[sentences.offsets]
        ends = np.unique(np.concatenate([starts[1:], _cuts(starts)]))  # of the tokens that are kept
        ends = ends[ends > 0]
        text = np.full(before[-1] + len(ends), SENTENCE_END, np.int32)
        is_word = np.ones(len(text), bool)
        is_word[ends + np.arange(len(ends))] = False
        text[is_word] = self.codes[words[is_kept]]
        return text


def _cuts(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where sentences are cut that are too long."""
    long = np.flatnonzero(np.diff(starts) > LONGEST_SENTENCE)
    cuts = [np.arange(starts[each] + LONGEST_SENTENCE, starts[each + 1], LONGEST_SENTENCE) for each in long]
    return np.concatenate([np.zeros(0, np.int64), *cuts])


def cut_text(text: NDArray[np.int32], pieces: int) -> list[NDArray[np.int32]]:
    """Cut a text into pieces of whole sentences and about equal length; some may be empty."""
    ends = np.concatenate([[0], 1 + np.flatnonzero(text == SENTENCE_END)])
    wanted = np.linspace(0, len(text), pieces + 1)
    bounds = ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)]
    return [text[bounds[piece] : bounds[piece + 1]] for piece in range(pieces)]
