"""Word2Vec: vectors of words from the words around them."""

import os
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from strads import cluster
from strads.checkpoints import learned_data, preparing
from strads.dds.files import FilePath
from strads.errors import ArgumentError
from strads.models._continuing import CALLS, SEED, ContinuedEstimator
from strads.models._file_contents import Table
from strads.models._iterative import OnIteration
from strads.models._parameters import (
    check_positive,
    check_switches,
    check_whole_numbers,
    check_workers,
    is_number,
    recorded_seed,
)
from strads.models.corpora.documents import NothingGiven
from strads.models.corpora.sentences import Sentences, as_sentences
from strads.models.corpora.vocabulary import packed_words, unpacked_words
from strads.models.embeddings.training import Text, Vectors, Word2VecSolver
from strads.models.embeddings.vocabulary import WordCounts, choose_words, extended
from strads.models.kernels.initial_rows import draw_rows
from strads.models.kernels.word_windows import MAX_WINDOW
from strads.models.word_vectors import Examples, WordPairEvaluation, WordVectors
from strads.progress import Shown
from strads.rng.philox import mixed_key

_INITIAL = 3  # purpose of a random stream
_MAX_EXPONENT = 10  # of counts, so that their sum does not overflow


@dataclass(eq=False, repr=False)
class Word2Vec(ContinuedEstimator):
    """Learns vectors of words: skip-gram or continuous bag of words, with negative sampling (Mikolov et al. 2013).

    Parameters have the names and meanings of gensim's. With `deterministic=True`, the result depends only on the text,
    the parameters and the seed, not on the number of threads and nodes or on timing. Skip-gram then runs on all threads
    and nodes of `strads.init`: word vectors stay, blocks of context vectors rotate, and negatives come from the block
    that is there. Continuous bag of words runs on one thread.

    Parameters
    ----------
    vector_size : int, default 100
        Dimensions of the vectors.
    window : int, default 5
        Largest distance between two words of a pair, from 1 to 255.
    min_count : int, default 5
        Words with fewer tokens are left out.
    sg : {1, 0}, default 1
        1: skip-gram; 0: continuous bag of words. (gensim's default is 0.)
    negative : int, default 5
        Negative samples of a pair, or of a window. In skip-gram eight pairs share them.
    ns_exponent : float, default 0.75, from -10 to 10
        Negatives are drawn in proportion to the count to this power.
    cbow_mean : bool, default True
        Whether continuous bag of words takes the mean of the vectors around, or their sum.
    sample : float, default 1e-3
        Words with a larger share of the text are subsampled; 0: none.
    shrink_windows : bool, default True
        Whether the reach of each window is drawn from 1 … `window`.
    alpha, min_alpha : float, default 0.025 and 0.0001
        Learning rate at the start and at the end; it falls linearly.
    epochs : int, default 5
        Passes over the text.
    max_vocab_size : int, optional
        Bound on the number of distinct words while a text is read: whenever there are more, the rarest are forgotten.
    max_final_vocab : int, optional
        Keep only this many words, the most frequent.
    deterministic : bool, default True
        False: threads process parts of the text and change the same vectors without locks (Hogwild). On one process.
    n_workers : int, optional
        Number of logical workers and of blocks: the most threads, on all nodes together, that work at a time. The
        result depends on it. By default 16; fewer if there are less than 128 words for each.
    n_jobs, random_state, verbose
        As of `MatrixFactorization`.

    Attributes
    ----------
    vectors_ : ndarray of shape (words, vector_size), float32
        The most frequent word first.
    vocabulary_ : list of str
        The words by their numbers.
    word_counts_ : ndarray of shape (words,), int64
        Number of tokens of each word.
    word_vectors_ : WordVectors
        Both, with the methods below.
    n_iter_ : int
        Passes run.
    history_ : list of dict
        One record per pass: `iteration`; `seconds` of training so far; `samples`, the tokens of known words so far,
        before subsampling; `objective`, the mean loss of a pair and its negatives (of a window, for continuous bag of
        words), measured on a sample before their steps; `nodes`, statistics of each node.

    Examples
    --------
    >>> texts = ["the cat sat on the mat", "the dog sat on the rug"] * 50
    >>> model = Word2Vec(vector_size=16, min_count=2, epochs=20).fit(texts)
    >>> [word for word, cosine in model.most_similar("cat", topn=2)]  # doctest: +SKIP
    ['dog', 'sat']
    """

    vector_size: int = 100
    _: KW_ONLY
    window: int = 5
    min_count: int = 5
    sg: int = 1
    negative: int = 5
    ns_exponent: float = 0.75
    cbow_mean: bool = True
    sample: float = 1e-3
    shrink_windows: bool = True
    alpha: float = 0.025
    min_alpha: float = 0.0001
    epochs: int = 5
    max_vocab_size: int | None = None
    max_final_vocab: int | None = None
    deterministic: bool = True
    n_workers: int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _must_agree = ("vector_size", "sg")
    shown: ClassVar = Shown({"objective": "loss"}, "words")

    _contents: ClassVar = {
        "vectors": Table(dtypes="f4", shape=("words", "columns")),
        "outputs": Table(dtypes="f4", shape=("words", "columns")),
        "counts": Table(dtypes="i8", shape=("words",), least=0),
        "vocabulary": Table(dtypes="u1", shape=("bytes",)),
        "start_seed": SEED,
        "calls": CALLS,
    }
    _words: WordCounts = field(init=False)
    _outputs: NDArray[np.float32] = field(init=False)
    _start_seed: int = field(init=False)

    def fit(
        self, X: Any, y: Any = None, *, init: "Word2Vec | None" = None, on_iteration: OnIteration | None = None
    ) -> Self:
        """Learn the vectors of the words of a text.

        Parameters
        ----------
        X
            The path of a text file, plain or compressed, one sentence per line; an iterable of texts or of lists of
            words, each a sentence; or `Sentences`. Texts are converted to lower case, and words are runs of letters,
            digits and underscores: `Sentences` has options. The text is read once, and takes 4 bytes a word.
        y
            Ignored.
        init
            A fitted model, possibly this one, from whose vectors to start; it does not change. Counts of its words
            grow by those of this text, and words that are new get a vector if they occur here `min_count` times.
        on_iteration
            Called with the record of each pass; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or text; the message names the first.
        NodeFailure
            If a node is lost.
        """
        self._check_parameters()
        origin = self._origin(init)
        sentences = as_sentences(X, self.max_vocab_size)
        words = self._words_of(sentences, origin)
        start_seed = self._seed_of_rows(origin)
        start = self._start(words, origin, start_seed)
        seed = self._call_seed(origin)
        self._forget()
        with self._solver_of(sentences, words, start, self.max_iter, seed) as solver:
            self._words, self._start_seed = words, start_seed
            self._begin_call(origin)
            self._train(solver, on_iteration, data=learned_data(sentences, words, seed, start=start))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Pass over more text once, with the learning rate falling from `alpha` to `min_alpha`.

        Words that occur there `min_count` times and are new get a vector; counts of known words, on which subsampling
        and negatives depend, grow. The first call is a `fit` of one pass. The same texts give the same bits, on any
        number of threads and nodes, and also if the model was saved and loaded between them. A text that fails changes
        nothing, nor does one without words that have or get a vector. A text adds a record to `history_`, which keeps
        the last 1,000.

        Parameters
        ----------
        X, y
            As in `fit`; there may be no sentences, or empty ones.
        """
        begin = time.perf_counter()
        self._check_parameters()
        origin = self._origin(self if self._is_fitted else None)
        try:
            sentences = as_sentences(X, self.max_vocab_size)
            words = self._words_of(sentences, origin)
        except NothingGiven:
            return self
        if origin is not None and words.counts.sum() == origin.word_counts_.sum():
            return self
        start_seed = self._seed_of_rows(origin)
        start = self._start(words, origin, start_seed)
        seed = self._call_seed(origin)
        with preparing(), self._solver_of(sentences, words, start, 1, seed) as solver:
            epoch = solver.run_epoch(1)
            assert epoch.objective is not None
            self._check_finite(epoch.objective)
            learnt = solver.learnt()
        with self._changing():
            self._words, self._start_seed = words, start_seed
            self._begin_call(origin)
            self._add_record(time.perf_counter() - begin, epoch.samples, objective=epoch.objective)
            self._publish(learnt)
        return self

    def _words_of(self, sentences: Sentences, origin: "Word2Vec | None") -> WordCounts:
        """Return the words that get a vector, those of a model first."""
        if origin is None:
            return choose_words(sentences, self.min_count, self.max_final_vocab)
        return extended(origin._words, sentences, self.min_count, self.max_final_vocab)

    def _seed_of_rows(self, origin: "Word2Vec | None") -> int:
        return recorded_seed(self.random_state) if origin is None else origin._start_seed

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole_numbers(self, "vector_size", "window", "negative", "epochs")
        check_whole_numbers(self, "min_count", least=0)
        check_whole_numbers(self, "max_vocab_size", "max_final_vocab", or_none=True)
        check_workers(self)
        check_positive(self, "alpha")
        check_positive(self, "min_alpha", "sample", or_zero=True)
        if self.window > MAX_WINDOW:
            raise ArgumentError(f"window={self.window}: give at most {MAX_WINDOW}")
        if self.min_alpha > self.alpha:
            raise ArgumentError(f"min_alpha={self.min_alpha} is above alpha={self.alpha}: the learning rate falls")
        if self.sample >= 1:
            raise ArgumentError(f"sample={self.sample}: give a share of the text below 1, or 0 for no subsampling")
        check_switches(self, "cbow_mean", "shrink_windows", "deterministic")
        if not is_number(self.ns_exponent) or abs(self.ns_exponent) > _MAX_EXPONENT:
            raise ArgumentError(
                f"ns_exponent={self.ns_exponent!r}: give a number from {-_MAX_EXPONENT} to {_MAX_EXPONENT}"
            )
        if self.sg not in (0, 1):
            raise ArgumentError(f"sg={self.sg!r}: give 1 for skip-gram, or 0 for continuous bag of words")
        if not self.deterministic and not cluster.current().is_local:
            raise ArgumentError("deterministic=False shares memory: it needs a single process, not several nodes")

    def _start(self, words: WordCounts, origin: "Word2Vec | None", seed: int) -> Vectors:
        """Return a model's vectors, and of new words word vectors drawn from ±0.5 / d, context vectors of 0."""
        size = int(self.vector_size)
        inputs, outputs = np.zeros((2, len(words), size), np.float32)
        known = 0 if origin is None else len(origin.vectors_)
        if origin is not None:
            inputs[:known], outputs[:known] = origin.vectors_, origin._outputs
        key = np.uint64(mixed_key(np.uint64(seed), np.uint64(_INITIAL), np.uint64(0)))
        draw_rows(inputs[known:], np.arange(known, len(words)), size, -0.5 / size, 0.5 / size, key)
        return Vectors(inputs, outputs)

    def _solver_of(
        self, sentences: Sentences, words: WordCounts, start: Vectors, epochs: int, seed: int
    ) -> Word2VecSolver:
        settings = {
            "window": int(self.window),
            "shrink_windows": bool(self.shrink_windows),
            "negative": int(self.negative),
            "mean": bool(self.cbow_mean),
            "alpha": float(self.alpha),
            "min_alpha": float(self.min_alpha),
            "epochs": epochs,
            "seed": seed,
        }
        return Word2VecSolver(
            Text(sentences, words, float(self.sample), float(self.ns_exponent)),
            start,
            settings,
            skip_gram=bool(self.sg),
            deterministic=bool(self.deterministic),
            workers=self.n_workers,
            threads=self._threads,
        )

    @property
    def max_iter(self) -> int:  # type: ignore[override]
        """`epochs`, under the name that other estimators have for it."""
        return int(self.epochs)

    def _advice_on_divergence(self) -> str:
        return "use a smaller alpha"

    def _publish(self, learnt: Vectors) -> None:
        self.vectors_, self._outputs = learnt
        self.vocabulary_, self.word_counts_ = self._words.words, self._words.counts
        self._word_vectors: WordVectors | None = None

    @property
    def word_vectors_(self) -> WordVectors:
        """The words and their vectors."""
        self._check_fitted()
        if self._word_vectors is None:
            self._word_vectors = WordVectors(self.vocabulary_, self.vectors_)
        return self._word_vectors

    def similarity(self, first: str, second: str) -> float:
        """Cosine of the angle between two words' vectors."""
        return self.word_vectors_.similarity(first, second)

    def most_similar(self, positive: Examples = (), negative: Examples = (), topn: int = 10) -> list[tuple[str, float]]:
        """Words in the direction of Σ positive − Σ negative; see `WordVectors.most_similar`, which can do more."""
        return self.word_vectors_.most_similar(positive, negative, topn)

    def evaluate_word_pairs(self, path: FilePath) -> WordPairEvaluation:
        """Compare similarities with people's judgements; see `WordVectors.evaluate_word_pairs`."""
        return self.word_vectors_.evaluate_word_pairs(path)

    def save_word2vec_format(self, path: str | os.PathLike[str], *, binary: bool = False) -> None:
        """Write the vectors for other programs; see `WordVectors.save_word2vec_format`, which can read them, too."""
        self.word_vectors_.save_word2vec_format(path, binary=binary)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"start_seed": self._start_seed} | self._saved_call(), {
            "vectors": self.vectors_,
            "outputs": self._outputs,
            "counts": self.word_counts_,
            "vocabulary": packed_words(self.vocabulary_),
        }

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        words = unpacked_words(arrays["vocabulary"])
        vectors = Vectors(arrays["vectors"], arrays["outputs"])
        counts = arrays["counts"]
        if not len(words) == len(set(words)) == len(counts):
            raise ValueError("the words do not fit the vectors")
        self._words, self._start_seed = WordCounts(words, counts), int(parameters["start_seed"])
        self._restore_call(parameters)
        self._publish(vectors)
