"""New documents for a fitted model: their words, known and new, and the counts that they add."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models._growth import check_growth
from strads.models.corpora.corpus import Corpus
from strads.models.kernels.csr_rows import replace_rows
from strads.models.topics.counts import TopicCounts
from strads.models.topics.priors import Priors
from strads.models.topics.training import EarlierCounts, TopicTraining


@dataclass(frozen=True, eq=False)
class FurtherDocuments:
    """Documents in terms of their own words, so that sampling costs nothing for all the others.

    Attributes
    ----------
    words : int64 ndarray of shape (words of the corpus,)
        Their numbers in the model; numbers from that of its words on are new.
    n_words : int
        Number of the model's words, with the new ones.
    new : list of str
        The new words by name, if the model knows names.
    """

    corpus: Corpus
    words: NDArray[np.int64]
    n_words: int
    new: list[str]

    @classmethod
    def of(cls, corpus: Corpus, known: int, numbers: Mapping[str, int] | None) -> "FurtherDocuments":
        """Number the words of documents: known words as the model does, and new ones after these.

        Parameters
        ----------
        known : int
            Number of the model's words.
        numbers : dict of str to int, or None
            The model's words by name; None if it knows none.

        Raises
        ------
        InputError
            If only one of the corpus and the model knows words by name; for word numbers far beyond the known ones.
        """
        own, places = np.unique(corpus.words, return_inverse=True)
        new: list[str] = []
        if numbers is not None and corpus.vocabulary is not None:
            names = [corpus.vocabulary[word] for word in own]
            new = [name for name in names if name not in numbers]
            added = {name: known + number for number, name in enumerate(new)}
            words = np.array([numbers.get(name, added.get(name, -1)) for name in names], np.int64)
            n_words = known + len(new)
        elif corpus.vocabulary is not None:
            raise InputError("the documents have words by name, but the model knows its words by number only")
        elif numbers is not None and corpus.n_words > known:
            raise InputError(
                f"the documents are counted in {corpus.n_words} words without names, but the model knows {known} words "
                "by name: say which are the new ones, with a Corpus that has a vocabulary"
            )
        else:
            words, n_words = own.astype(np.int64), max(known, corpus.n_words)
            check_growth("word", known, n_words, corpus.n_tokens)
        compact = Corpus(corpus.offsets, places.astype(np.int32), corpus.counts, len(own))
        return cls(compact, words, n_words, new)

    def counts_before(self, counts: TopicCounts) -> TopicCounts:
        """Return the rows of a model's counts of the documents' words; new ones have none."""
        known = self.words < counts.by_word.shape[0]
        rows = counts.by_word[self.words[known]]
        sizes = np.zeros(len(self.words), np.int64)
        sizes[known] = np.diff(rows.indptr)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return TopicCounts(scipy.sparse.csr_array((rows.data, rows.indices, offsets), (len(sizes), rows.shape[1])))

    def counts_after(self, counts: TopicCounts, learnt: TopicCounts) -> TopicCounts:
        """Return a model's counts with other rows of the documents' words."""
        old, new = counts.by_word, learnt.by_word
        sizes = np.zeros(self.n_words, np.int64)
        sizes[: old.shape[0]] = np.diff(old.indptr)
        sizes[self.words] = np.diff(new.indptr)
        row_of = np.full(self.n_words, -1, np.int64)
        row_of[self.words] = np.arange(len(self.words))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        topics, found = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
        replace_rows(
            old.indptr, old.indices, old.data, new.indptr, new.indices, new.data, row_of, offsets, topics, found
        )
        return TopicCounts(scipy.sparse.csr_array((found, topics, offsets), (self.n_words, old.shape[1])))


class FurtherTraining(TopicTraining):
    """Draws the topics of further documents; priors, and the topics of earlier documents, stay as they are.

    Parameters
    ----------
    counts : TopicCounts
        All counts before.
    options
        Those of `TopicTraining`.
    """

    def __init__(self, documents: FurtherDocuments, counts: TopicCounts, priors: Priors, **options: Any):
        earlier = EarlierCounts(documents.counts_before(counts), counts.totals, documents.n_words)
        super().__init__(documents.corpus, priors, earlier=earlier, **options)
        self._documents, self._counts = documents, counts

    def counts(self) -> TopicCounts:
        """Return the counts of all documents, earlier and further."""
        return self._documents.counts_after(self._counts, super().counts())
