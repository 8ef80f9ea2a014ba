"""Analogy questions, "a is to b as c is to what?", and the share that vectors answer correctly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.dds.files import FilePath
from strads.errors import InputError
from strads.models.corpora.documents import read_lines

_AT_ONCE = 256  # questions, each of which is compared with all words


@dataclass(frozen=True)
class AnalogyEvaluation:
    """How many analogies vectors complete.

    Attributes
    ----------
    accuracy
        Share of the questions that are answered by the right word; NaN if there are none.
    questions
        Number of questions asked.
    unknown
        Number of questions with a word that has no vector; these are left out.
    sections
        Accuracy of each section.
    """

    accuracy: float
    questions: int
    unknown: int
    sections: dict[str, float]


def evaluate_analogies(
    path: FilePath, number_of: Callable[[str], int | None], directions: NDArray[np.float32]
) -> AnalogyEvaluation:
    """Ask the questions in a file: lines of four words; lines that begin with a colon name a section.

    Parameters
    ----------
    path
        The file, such as questions-words.txt of word2vec.
    number_of
        Number of a word; None if it is unknown.
    directions : array of shape (words, d)
        Vectors of length 1.

    Raises
    ------
    InputError
        At a line that is neither, and if no question can be asked; names file and line.
    """
    section, sections, questions, unknown = "", list[str](), list[list[int]](), 0
    for words in _questions(path):
        if len(words) == 1:
            section = words[0]
            continue
        numbers = [number for word in words if (number := number_of(word)) is not None]
        if len(numbers) == len(words):
            sections.append(section)
            questions.append(numbers)
        else:
            unknown += 1
    if not questions:
        raise InputError(f"{path}: no question has vectors for all its words, of {unknown} questions")
    is_right = _answered(np.array(questions), directions)
    labels = np.array(sections)
    of_section = {name: float(is_right[labels == name].mean()) for name in dict.fromkeys(sections)}
    return AnalogyEvaluation(float(is_right.mean()), len(questions), unknown, of_section)


def _questions(path: FilePath) -> Iterator[list[str]]:
    """Yield four words, or the name of a section."""
    for line, text in enumerate(read_lines(path), 1):
        words = text.split()
        if text.startswith(":"):
            yield [text[1:].strip()]
        elif len(words) == 4:
            yield words
        elif words:
            raise InputError(f"{path}:{line}: expected four words, or a colon and the name of a section: {text!r:.60}")


def _answered(questions: NDArray[np.int64], directions: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether the word nearest to b − a + c, none of the three, is the fourth (Mikolov et al. 2013)."""
    found = np.empty(len(questions), np.int64)
    for first in range(0, len(questions), _AT_ONCE):
        some = questions[first : first + _AT_ONCE]
        a, b, c, _ = some.T
        nearness = (directions[b] - directions[a] + directions[c]) @ directions.T
        np.put_along_axis(nearness, some[:, :3], -np.inf, 1)
        found[first : first + _AT_ONCE] = nearness.argmax(1)
    return np.asarray(found == questions[:, 3])
