"""Windows of a text: its subsampling, and the pairs of a word and the words around it (Mikolov et al., NIPS 2013, §2).

A text is an int32 array of word codes, with `SENTENCE_END` after each sentence. The code of a word is
`block << bits | row`, for its block and its row there.
"""

import numpy as np
from numba import njit

from strads.rng.philox import random_words

SENTENCE_END = -1
MAX_WINDOW = 255

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def subsample(text, keep, window, shrink, key, stream, words, reaches):  # type: ignore[no-untyped-def]
    """Leave out words at random, and draw how far each window reaches.

    Parameters
    ----------
    text : int32 array of shape (tokens,)
    keep : uint64 array of shape (codes,)
        2³² times the probability that a token of the word is kept.
    window : int
        The farthest reach.
    shrink : bool
        Whether to draw the reach of each window, 1 … `window`; otherwise it is `window`.
    key, stream : uint64
        Random stream of these tokens.
    words : int32 array of shape (tokens,), out
        What is left.
    reaches : uint8 array of shape (tokens,), out
        Reach of the window around each; 0 at ends of sentences.

    Returns
    -------
    Number of tokens left, ends of sentences included; those after one another count once.
    """
    count = 0
    a = b = np.uint64(0)
    for token in range(len(text)):
        if token % 2 == 0:
            a, b = random_words(key, stream, np.uint64(token // 2))
        bits = a if token % 2 == 0 else b
        word = text[token]
        if word == SENTENCE_END:
            if count and words[count - 1] != SENTENCE_END:
                words[count], reaches[count] = SENTENCE_END, 0
                count += 1
        elif (bits >> _HALF) < keep[word]:
            words[count], reaches[count] = word, window
            if shrink:
                reaches[count] = np.uint64(1) + ((bits & _LOW) * np.uint64(window) >> _HALF)
            count += 1
    return count


@njit(nogil=True, cache=True)
def find_pairs(words, reaches, positions, window, input_rows, output_codes):  # type: ignore[no-untyped-def]
    """Find the windows that contain the words at some positions.

    The words of a window, except the one in its middle, each predict the word in the middle, as in word2vec.c.

    Parameters
    ----------
    words, reaches
        As from `subsample`.
    positions : int32 array
    window : int
        The farthest reach.
    input_rows, output_codes : int32 arrays, out
        Of each pair, the word at one of the positions, and the one in the middle. At least 2 · window · positions.

    Returns
    -------
    Number of pairs.
    """
    count, length = 0, len(words)
    for position in positions:
        word = words[position]
        for direction in (-1, 1):
            for distance in range(1, window + 1):
                middle = position + direction * distance
                if middle < 0 or middle >= length or words[middle] == SENTENCE_END:
                    break
                if distance <= reaches[middle]:
                    input_rows[count], output_codes[count] = word, words[middle]
                    count += 1
    return count
