"""Documents as word counts, from any input format."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from strads.dds import RaggedArray, dvector
from strads.dds.creation import Seed
from strads.dds.files import FilePath
from strads.errors import ArgumentError, InputError
from strads.models._parameters import check_share
from strads.models.corpora.counts import (
    LARGEST,
    counts_of_dense,
    counts_of_entries,
    counts_of_sparse,
    counts_of_word_numbers,
    rises_within,
    tokens_of_documents,
)
from strads.models.corpora.documents import TWO_OR_MORE, NothingGiven, count_words, read_lines
from strads.models.corpora.uci_bag_of_words import looks_like_uci, read_uci
from strads.models.corpora.vocabulary import UnknownWords, check_fits, check_vocabulary, warn_of_unknown
from strads.models.held_out import held_out


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents as bags of words: the count of each word in each document.

    Create one with `from_text`, `from_file`, `from_uci` or `from_counts`. Documents may be empty, and words may not
    occur at all, so that both keep their numbers from the input.

    Parameters
    ----------
    offsets : int64 ndarray of shape (documents + 1,)
        The entries of document d are `offsets[d]:offsets[d + 1]`.
    words : int32 ndarray of shape (entries,)
        Word numbers, 0 … n_words − 1, increasing within a document.
    counts : int32 ndarray of shape (entries,)
        Count of the word in the document, 1 or more.
    n_words : int
        Size of the vocabulary.
    vocabulary : list of str, optional
        The words, by their numbers.

    Raises
    ------
    ArgumentError, InputError
        If the arrays are inconsistent, or a document has more than 2³¹ − 1 tokens.
    """

    offsets: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    n_words: int
    vocabulary: list[str] | None = None

    def __post_init__(self) -> None:
        for name, dtype in (("offsets", np.int64), ("words", np.int32), ("counts", np.int32)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                raise ArgumentError(f"{name} of a Corpus must be a one-dimensional ndarray of {np.dtype(dtype)}")
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        self._check_entries()
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", check_vocabulary(self.vocabulary))
            check_fits(self.vocabulary, self.n_words)
        self._check_sizes()

    def _check_entries(self) -> None:
        offsets, words, counts = self.offsets, self.words, self.counts
        if len(offsets) == 0 or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
            raise ArgumentError("offsets of a Corpus must increase from 0")
        if not offsets[-1] == len(words) == len(counts):
            raise ArgumentError(
                f"offsets of a Corpus end at {offsets[-1]}, but there are {len(words)} words and {len(counts)} counts"
            )
        if len(words) == 0:
            return
        if words.min() < 0 or words.max() >= self.n_words:
            entry = int(np.argmax((words < 0) | (words >= self.n_words)))
            raise InputError(f"entry {entry} of the corpus: word {words[entry]} is outside 0 … {self.n_words - 1}")
        if counts.min() < 1:
            entry = int(np.argmin(counts))
            raise InputError(f"entry {entry} of the corpus has the count {counts[entry]}; counts are 1 or more")
        if not rises_within(words, offsets):
            raise ArgumentError("words of a Corpus must be ascending within a document: use Corpus.from_counts")

    def _check_sizes(self) -> None:
        if self.n_tokens > LARGEST:
            tokens = self.lengths
            if tokens.max() > LARGEST:
                row = int(tokens.argmax())
                raise InputError(f"document {row} has {tokens[row]} tokens; {LARGEST} are possible: split it")

    @classmethod
    def from_counts(cls, counts: Any, vocabulary: Iterable[str] | None = None) -> Self:
        """Create a corpus from the counts in a SciPy sparse matrix or an ndarray, documents × words.

        A canonical CSR matrix of int32 shares its memory with the result: do not modify it afterwards.

        Raises
        ------
        InputError
            At the first negative, fractional, NaN or infinite count; if the vocabulary does not have one word per
            column, or contains duplicates; if all documents are empty.
        """
        taken = counts_of_sparse(counts) if scipy.sparse.issparse(counts) else counts_of_dense(np.asarray(counts))
        return _filled(cls(*taken, _checked(vocabulary)))

    @classmethod
    def from_text(
        cls,
        documents: Iterable[Any],
        *,
        vocabulary: Iterable[str] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        stop_words: str | Iterable[str] | None = None,
        token_pattern: str = TWO_OR_MORE,
    ) -> Self:
        r"""Count the words of texts. The options have the same meaning as in scikit-learn's `CountVectorizer`.

        Parameters
        ----------
        documents : iterable of str, or of lists of str
            Texts, which are converted to lower case and split into words; or lists of words, which are used
            unchanged.
        vocabulary : sequence of str, optional
            The words to count, in this order; a warning gives the number of tokens of other words (apart from the
            English stop list). By default all words that occur, sorted.
        min_df, max_df : int or float
            Leave out words in fewer or more documents than this: a number of documents if int, a fraction if float.
        max_features : int, optional
            Keep this number of words, those with the most tokens.
        stop_words : "english", iterable of str, or None
            Words to leave out; "english" is scikit-learn's list.
        token_pattern : str, default r"(?u)\b\w\w+\b"
            Regular expression of a word; by default two or more letters, digits or underscores.

        Raises
        ------
        InputError
            If no word is left.
        ArgumentError
            If a document is not a text or list of words, or an option is invalid.
        """
        counts, words = count_words(
            documents,
            vocabulary,
            min_df=min_df,
            max_df=max_df,
            max_features=max_features,
            stop_words=stop_words,
            token_pattern=token_pattern,
        )
        return _filled(cls(*counts, words))

    @classmethod
    def from_file(cls, path: FilePath, **options: Any) -> Self:
        """Count the words of a UTF-8 text file, one document per line, plain or compressed (gzip, bz2, zstd, lz4).

        Parameters
        ----------
        path : path
            The file. A blank line is an empty document.
        **options
            Those of `from_text`.

        Raises
        ------
        InputError
            If the file is missing, empty, corrupt, not UTF-8, or in UCI's format; names file and line.
        """
        if looks_like_uci(path):
            raise InputError(f"{path}: this is a bag of words in UCI's format: use Corpus.from_uci")
        return cls.from_text(read_lines(path), **options)

    @classmethod
    def from_uci(cls, docword: FilePath, vocab: FilePath | None = None) -> Self:
        """Read a bag of words in the format of the UCI repository, plain or compressed (gzip, bz2, zstd, lz4).

        Parameters
        ----------
        docword : path
            Three lines with the numbers of documents, words and entries; then a line `document word count` for each
            entry, with numbers starting at 1.
        vocab : path, optional
            The words, one per line.

        Raises
        ------
        InputError
            If a file is missing or corrupt, at a malformed line, or if the first lines or the vocabulary do not match
            the entries; names file and line.
        """
        counts, words = read_uci(docword, vocab)
        return _filled(cls(*counts, words))

    @property
    def n_documents(self) -> int:
        """Number of documents, including empty ones."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """Total number of tokens of all documents."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each document, shape (documents,)."""
        return tokens_of_documents(self.counts, self.offsets)

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return f"Corpus({self.n_documents} documents, {self.n_words} words, {self.n_tokens} tokens)"

    def to_csr(self) -> scipy.sparse.csr_array:
        """The counts as a new SciPy array of shape (documents, n_words)."""
        shape = (self.n_documents, self.n_words)
        return scipy.sparse.csr_array((self.counts, self.words, self.offsets), shape=shape, copy=True)

    def take(self, documents: ArrayLike) -> Self:
        """The corpus of the given documents (numbers, in any order), with the same words.

        Raises
        ------
        ArgumentError, InputError
            If they are no list of whole numbers, or one is outside 0 … documents − 1.
        """
        rows = np.asarray(documents)
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            advice = "give a list of numbers; np.flatnonzero makes one of a mask"
            raise ArgumentError(f"documents are whole numbers, not {rows.ndim}-D {rows.dtype}: {advice}")
        wrong = (rows < 0) | (rows >= len(self))
        if wrong.any():
            raise InputError(f"document {rows[np.argmax(wrong)]} is outside 0 … {len(self) - 1}")
        rows = rows.astype(np.int64)
        words = RaggedArray(self.words, self.offsets).take(rows)
        counts = RaggedArray(self.counts, self.offsets).take(rows)
        return type(self)(words.offsets, words.values, counts.values, self.n_words, self.vocabulary)

    def held_out(self, share: float, seed: Seed = 0) -> tuple[Self, Self]:
        """Set randomly chosen documents aside.

        Parameters
        ----------
        share : float
            Fraction of the documents to set aside, between 0 and 1; at least one is set aside and at least one is kept.
        seed : int, Generator or None
            The same number chooses the same documents; None chooses different ones each time.

        Returns
        -------
        The corpus of the remaining documents, and that of those set aside, both in the original order.
        """
        check_share("share", share)
        aside = held_out(self.n_documents, share, seed, "documents")
        return self.take(np.flatnonzero(~aside)), self.take(np.flatnonzero(aside))

    def split_tokens(self, share: float = 0.5, seed: Seed = 0) -> tuple[Self, Self]:
        """Divide the tokens of each document: each goes to the first part with probability `share`.

        Returns
        -------
        Two corpora with the same documents and words; together they contain all tokens.
        """
        check_share("share", share)
        first = np.random.default_rng(seed).binomial(self.counts, share).astype(np.int32)
        return self._with_counts(first), self._with_counts(self.counts - first)

    def _with_counts(self, counts: NDArray[np.int32]) -> Self:
        kept = counts > 0
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return type(self)(offsets, self.words[kept], counts[kept], self.n_words, self.vocabulary)

    def in_vocabulary(self, vocabulary: Iterable[str]) -> Self:
        """The same documents in terms of another vocabulary; a warning gives the number of tokens left out.

        Raises
        ------
        InputError
            If this corpus has no vocabulary, or the new one contains duplicates.
        """
        target = check_vocabulary(vocabulary)
        if self.vocabulary is None:
            raise InputError("the corpus has no vocabulary: its words cannot be compared with others by name")
        if target == self.vocabulary:
            return self
        places = {word: number for number, word in enumerate(target)}
        renumbered = np.array([places.get(word, -1) for word in self.vocabulary], np.int32)
        tokens = np.bincount(self.words, self.counts, self.n_words).astype(np.int64)
        unknown = UnknownWords()
        for word in np.flatnonzero((renumbered < 0) & (tokens > 0)):
            unknown.add(self.vocabulary[word], int(tokens[word]))
        unknown.warn()
        rows = np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(self.offsets))
        words = renumbered[self.words]
        known = words >= 0
        shape = (self.n_documents, len(target))
        return type(self)(*counts_of_entries(rows[known], words[known], self.counts[known], shape), target)


def as_corpus(
    X: Any, vocabulary: Iterable[str] | None = None, n_words: int | None = None, *, allow_empty: bool = False
) -> Corpus:
    """Convert documents in any format to a Corpus; a Corpus is returned unchanged.

    Parameters
    ----------
    X
        A Corpus; counts, documents × words, as a SciPy sparse matrix, an ndarray, or a data frame, whose columns are
        named by the words; an iterable of texts, or of lists of words; or a dvector of ragged integers, the word
        numbers of each document. The result may share memory with X.
    vocabulary : sequence of str, optional
        The words by number. For counts, those of the columns. For texts, lists of words, and a Corpus with a vocabulary
        of its own, only these words are counted; a warning gives the number of tokens of other words.
    n_words : int, optional
        Required number of words. In a dvector, numbers from here on are unknown words.
    allow_empty : bool, default False
        Whether all documents may be empty.

    Raises
    ------
    ArgumentError, InputError
        For other types, for invalid counts, and for a vocabulary that does not match them.
    """
    names = _checked(vocabulary)
    if names is not None:
        n_words = len(names) if n_words is None else n_words
        check_fits(names, n_words)
    corpus = _convert(X, names, n_words)
    if n_words is not None and corpus.n_words != n_words:
        raise InputError(
            f"X has {corpus.n_words} features, but LatentDirichletAllocation is expecting {n_words} features as input: "
            "one for each word"
        )
    return corpus if allow_empty else _filled(corpus)


def _convert(X: Any, vocabulary: list[str] | None, n_words: int | None) -> Corpus:
    if isinstance(X, Corpus):
        if vocabulary is None:
            return X
        if X.vocabulary is None:
            return Corpus(X.offsets, X.words, X.counts, X.n_words, vocabulary)
        return X.in_vocabulary(vocabulary)
    if isinstance(X, dvector):
        X = X.storage
        if not isinstance(X, RaggedArray):
            raise ArgumentError("a dvector of documents is ragged: a sequence of word numbers for each")
    if isinstance(X, RaggedArray):
        counts, unknown = counts_of_word_numbers(X.values, X.offsets, n_words)
        if unknown:
            warn_of_unknown(unknown)
        return Corpus(*counts, vocabulary)
    if scipy.sparse.issparse(X):
        return Corpus(*counts_of_sparse(X), vocabulary)
    if hasattr(X, "columns") and hasattr(X, "to_numpy") and all(isinstance(name, str) for name in X.columns):
        corpus = Corpus(*counts_of_dense(X.to_numpy()), list(X.columns))
        return corpus if vocabulary is None else corpus.in_vocabulary(vocabulary)
    if hasattr(X, "__array__"):
        X = np.asanyarray(X)
        if X.dtype.kind not in "OUST" or X.ndim != 1:
            return Corpus(*counts_of_dense(X), vocabulary)
    counts, words = count_words(X, vocabulary)
    return Corpus(*counts, words)


def _checked(vocabulary: Iterable[str] | None) -> list[str] | None:
    return None if vocabulary is None else check_vocabulary(vocabulary)


def _filled(corpus: Any) -> Any:
    """Reject a corpus without tokens."""
    if corpus.n_documents == 0:
        raise NothingGiven("there are no documents")
    if len(corpus.counts) == 0:
        shape = f": 0 feature(s) (shape=({corpus.n_documents}, 0)) while a minimum of 1 is required."
        raise NothingGiven(f"all {corpus.n_documents} documents are empty{'' if corpus.n_words else shape}")
    return corpus
