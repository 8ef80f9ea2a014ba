"""Latent Dirichlet allocation by collapsed Gibbs sampling, with words rotating over documents."""

import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone

from strads.checkpoints import learned_data, preparing
from strads.errors import ArgumentError, InputError
from strads.models._continuing import CALLS, ContinuedEstimator
from strads.models._file_contents import Number, Offsets, Table
from strads.models._iterative import OnIteration
from strads.models._parameters import (
    check_choice,
    check_whole_number,
    check_whole_numbers,
    check_workers,
    fixed_seed,
    recorded_seed,
)
from strads.models.corpora.corpus import Corpus, as_corpus
from strads.models.corpora.documents import NothingGiven
from strads.models.corpora.vocabulary import packed_words, unpacked_words
from strads.models.kernels.lda_tables import MAX_TOPICS
from strads.models.topics.coherence import npmi_coherence
from strads.models.topics.counts import TopicCounts
from strads.models.topics.inference import completion, infer_topics
from strads.models.topics.new_documents import FurtherDocuments, FurtherTraining
from strads.models.topics.priors import Priors, check_priors
from strads.models.topics.training import TopicTraining
from strads.progress import Shown

_SAMPLERS = ("auto", "sparse", "dense")
_LEARNT = ("no", "symmetric", "asymmetric")


@dataclass(eq=False, repr=False)
class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ContinuedEstimator):
    """Finds topics, distributions over words of which each document is a mixture (Blei et al. 2003).

    Repeatedly draws the topic of every token from its distribution given all others,
    p(k) ∝ (n_dk + α_k)(n_wk + β)/(n_k + Vβ) (Griffiths & Steyvers 2004). Documents stay with logical workers, and the
    words' counts rotate over them (thesis algorithm 5), so no two workers ever change the same count; only the topics'
    totals n_k may be stale, and `history_` reports by how much (*s-error*, supplement eq. 1). The result depends only
    on the seed and `n_workers`, not on threads, nodes, backend or timing.

    Parameters
    ----------
    n_components : int, default 10
        Number of topics K; thousands are fine.
    doc_topic_prior : float or array-like of shape (n_components,), optional
        α of the documents' mixtures; 1 / n_components by default. An array gives each topic its own.
    topic_word_prior : float, optional
        β of the topics' words; 1 / n_components by default.
    learn_priors : {"no", "symmetric", "asymmetric"}, default "no"
        Whether to fit α and β to the counts every 10 iterations (Minka 2000); α as one number, or one per topic.
    max_iter : int, default 100
        Iterations; each draws every token's topic once.
    sampler : {"auto", "sparse", "dense"}, default "auto"
        Sampling algorithm; all are exact. "dense" visits all topics in vector registers, "sparse" only those of the
        document. "auto" takes the faster one for the number of topics.
    start : {"sequential", "random"}, default "sequential"
        Initial topics: drawn sequentially, each token given the previous ones, or uniformly.
    n_workers : int, optional
        Number of logical workers, which determines the order of draws; the same number gives the same model anywhere.
        By default 16, fewer for few tokens: with more threads than that in all nodes together, choose at least their
        number.
    synchronizations : int, optional
        How often per iteration workers exchange their changes of n_k; by default n_workers / 4.
    evaluate_every : int, default 1
        Number of iterations between computations of the log-likelihood; 0 or −1: never.
    n_jobs, random_state, verbose
        As of `MatrixFactorization`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features), float64
        n_wk + β: pseudocounts of each topic's words, as in scikit-learn. Computed on access: K × V numbers.
    topic_word_counts_ : scipy.sparse.csr_array of shape (n_features, n_components), int32
        n_wk as stored.
    doc_topic_prior_, topic_word_prior_ : ndarray of shape (n_components,), float
        α and β as given or learnt.
    log_likelihood_ : ndarray of shape (evaluations,)
        log p(words, topics | α, β) of the training data in nats after each evaluated iteration: the complete formula,
        see `strads.models.kernels.lda_likelihood`.
    n_iter_ : int
        Iterations run.
    history_ : list of dict
        One record per iteration: `iteration`; `seconds` of sampling so far, including the initial topics but not
        evaluations; `samples` (tokens drawn so far); `s_error`; if evaluated, `log_likelihood`, and `objective`, the
        same per token; `nodes`, statistics of each node, as in `MatrixFactorization`.
    start_seconds_ : float
        Time taken to draw the initial topics.
    feature_names_in_ : ndarray of str objects
        The words, after a data frame.
    vocabulary_ : list of str or None
        The words, if known.

    Examples
    --------
    >>> texts = ["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]
    >>> model = LatentDirichletAllocation(n_components=2, max_iter=20).fit(texts)
    >>> model.transform(["cat dog"]).shape
    (1, 2)
    """

    n_components: int = 10
    _: KW_ONLY
    doc_topic_prior: float | ArrayLike | None = None
    topic_word_prior: float | None = None
    learn_priors: str = "no"
    max_iter: int = 100
    sampler: str = "auto"
    start: str = "sequential"
    n_workers: int | None = None
    synchronizations: int | None = None
    evaluate_every: int = 1
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    _must_agree = ("n_components", "doc_topic_prior", "topic_word_prior")
    shown: ClassVar = Shown(
        {"objective": "log-likelihood/token", "s_error": "s-error"}, "tokens", "iteration", "drawing the first topics"
    )

    _contents: ClassVar = {
        "n_words": Number(whole=True, least=0),
        "beta": Number(least=0),
        "alpha": Table(dtypes="f8", shape=("topics",), least=0),
        "topics": Table(dtypes="i4 i8", shape=("counts",), below="topics"),
        "counts": Table(dtypes="i4", shape=("counts",), least=1),
        "offsets": Offsets(of="counts", rows="n_words"),
        "vocabulary": Table(dtypes="u1", shape=("bytes",), optional=True),
        "calls": CALLS,
    }
    _counts: TopicCounts = field(init=False)
    _priors: Priors = field(init=False)
    _numbers: dict[str, int] | None = field(init=False)  # of the words, while batches come

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        init: "LatentDirichletAllocation | None" = None,
        vocabulary: Iterable[str] | None = None,
        on_iteration: OnIteration | None = None,
    ) -> Self:
        """Fit to documents.

        Parameters
        ----------
        X
            Counts, documents × words, as a SciPy sparse matrix, an ndarray, or a data frame whose columns are named by
            the words; texts; lists of words; a dvector of word numbers; or a `Corpus`, which also reads files.
            Fractional counts are rounded at random, with a warning.
        y
            Ignored.
        init
            A fitted model, possibly this one, to which X adds further documents; it is not changed. The topics of its
            own documents are kept, and so are its priors; words may be new. The log-likelihood is not computed.
        vocabulary
            The words of the columns of X, if X does not contain them.
        on_iteration
            Called with the record of each iteration; fitting stops when it returns True.

        Raises
        ------
        ArgumentError, InputError
            For invalid parameters or documents; the message names the first.
        NodeFailure
            If a node is lost.

        Notes
        -----
        After Ctrl-C the current iteration is completed; the model then holds what was learnt, and can be used and
        saved. After the loss of a node it does not: call `save` in `on_iteration` to keep intermediate results.
        """
        priors = self._check_parameters()
        origin = self._origin(init)
        corpus = as_corpus(X, vocabulary)
        if origin is not None:
            documents = origin._further(corpus)
            solver: TopicTraining = self._further_training(documents, origin)
            n_words, words = documents.n_words, origin._words_with(documents)
            self._forget()
        else:
            self._forget()
            solver = self._training_with(
                partial(
                    TopicTraining,
                    corpus,
                    priors,
                    learn_priors=self.learn_priors,
                    evaluate_every=self.evaluate_every,
                    max_iter=self.max_iter,
                ),
                recorded_seed(self.random_state),
            )
            n_words, words = corpus.n_words, corpus.vocabulary
        data = learned_data(corpus, start=origin and [origin._calls, origin._counts])
        del corpus
        with solver:
            self._begin_call(origin)
            self.n_features_in_, self.vocabulary_, self._numbers = n_words, words, None
            self._know_names(X)
            self.start_seconds_ = solver.start_seconds
            self._train(solver, on_iteration, seconds=self.start_seconds_, data=data)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        init: "LatentDirichletAllocation | None" = None,
        vocabulary: Iterable[str] | None = None,
        on_iteration: OnIteration | None = None,
    ) -> NDArray[np.float32]:
        """Fit to documents, and return what `transform` returns of them."""
        corpus = as_corpus(X, vocabulary)
        self.fit(corpus, init=init, on_iteration=on_iteration)
        self._know_names(X)
        return self.transform(corpus)

    def _training_with(self, make: Callable[..., TopicTraining], seed: int) -> TopicTraining:
        """Return what `make` returns for the parameters of all trainings."""
        with preparing():
            return make(
                sampler=self.sampler,
                start=self.start,
                workers=self.n_workers,
                synchronizations=self.synchronizations,
                seed=seed,
                threads=self._threads,
            )

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue learning from further documents: as `fit` with `init`, but the history is continued.

        The topics of these documents' tokens are drawn `max_iter` times, those of earlier documents stay. Sampling
        takes time in proportion to the batch; its counts are then merged into the model's, which are copied once.
        Words may be new: they get the next numbers. The same batches give the same bits, on any number of threads and
        nodes, and also if the model was saved and loaded between them. A batch that fails changes nothing, nor does
        one without words. A batch adds a record to `history_`, which keeps the last 1,000.

        Parameters
        ----------
        X, y
            As in `fit`; there may be no documents, or empty ones.

        Raises
        ------
        ArgumentError, InputError
            As in `fit`; if the model knows words by name and X has others by number, or the reverse.
        """
        begin = time.perf_counter()
        priors = self._check_parameters()
        origin = self._origin(self if self._is_fitted else None)
        try:
            corpus = as_corpus(X)
        except NothingGiven:
            return self
        model = self._without_topics(corpus, priors) if origin is None else origin
        documents = model._further(corpus)
        with preparing(), self._further_training(documents, model) as solver:
            for number in range(1, int(self.max_iter) + 1):
                epoch = solver.run_epoch(number)
            learnt = solver.learnt()
        with self._changing():
            self.vocabulary_, self._numbers = model._words_with(documents), model._numbers
            if self._numbers is not None:
                known = documents.n_words - len(documents.new)
                self._numbers |= {word: known + number for number, word in enumerate(documents.new)}
            self.n_features_in_ = documents.n_words
            self._know_names(X)
            self._begin_call(origin)
            self._add_record(time.perf_counter() - begin, epoch.samples, **epoch.figures)
            self._publish(learnt)
        return self

    def _know_names(self, X: Any) -> None:
        """Set `feature_names_in_` after a data frame, as scikit-learn does."""
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns") and self.vocabulary_ is not None:
            self.feature_names_in_ = np.array(self.vocabulary_, object)

    def _without_topics(self, corpus: Corpus, priors: Priors) -> "LatentDirichletAllocation":
        """Return a model without words, which knows words as a corpus does."""
        model = clone(self)
        model.vocabulary_, model.n_features_in_ = None if corpus.vocabulary is None else [], 0
        model._numbers = None
        model._counts, model._priors = TopicCounts.none(len(priors.alpha)), priors
        return model

    def _further(self, corpus: Corpus) -> FurtherDocuments:
        if self.vocabulary_ is not None and self._numbers is None:
            self._numbers = {word: number for number, word in enumerate(self.vocabulary_)}
        return FurtherDocuments.of(corpus, self.n_features_in_, self._numbers)

    def _words_with(self, documents: FurtherDocuments) -> list[str] | None:
        """Return the vocabulary with the documents' new words."""
        if self.vocabulary_ is None or not documents.new:
            return self.vocabulary_
        return [*self.vocabulary_, *documents.new]

    def _further_training(self, documents: FurtherDocuments, model: "LatentDirichletAllocation") -> TopicTraining:
        make = partial(FurtherTraining, documents, model._counts, model._priors)
        return self._training_with(make, self._call_seed(model if model._calls else None))

    def _check_parameters(self) -> Priors:
        super()._check_parameters()
        check_whole_numbers(self, "n_components", "max_iter")
        check_whole_numbers(self, "evaluate_every", least=-1)
        check_whole_numbers(self, "synchronizations", or_none=True)
        check_workers(self)
        if self.n_components > MAX_TOPICS:
            raise ArgumentError(f"n_components={self.n_components}: at most {MAX_TOPICS} topics are possible")
        check_choice(self, "sampler", _SAMPLERS)
        check_choice(self, "start", ("sequential", "random"))
        check_choice(self, "learn_priors", _LEARNT)
        return check_priors(self.n_components, self.doc_topic_prior, self.topic_word_prior)

    def _publish(self, learnt: tuple[TopicCounts, Priors]) -> None:
        counts, priors = self._counts, self._priors = learnt
        self.topic_word_counts_ = counts.by_word
        self.doc_topic_prior_ = priors.alpha
        self.topic_word_prior_ = np.full(len(priors.alpha), priors.beta)
        found = [record["log_likelihood"] for record in self.history_ if "log_likelihood" in record]
        self.log_likelihood_ = np.array(found)

    @property
    def components_(self) -> NDArray[np.float64]:
        """n_wk + β, (n_components, n_features)."""
        self._check_fitted()
        return self._counts.by_word.toarray().T + self._priors.beta

    def top_words(self, n: int = 10) -> list[list[str]]:
        """Return the most probable words of each topic, best first; numbers as strings if there is no vocabulary."""
        self._check_fitted()
        check_whole_number("n", n, what="a whole number of words")
        best = self._counts.top_words(int(n))
        if self.vocabulary_ is None:
            return [[str(word) for word in words] for words in best]
        return [[self.vocabulary_[word] for word in words] for words in best]

    def coherence(self, X: Any, n: int = 10) -> NDArray[np.float64]:
        """Return the coherence of each topic: the mean NPMI of its best `n` words in documents, from −1 to 1.

        Higher is better; NaN for a topic of fewer than two words. `X` is as in `transform`; documents other than those
        of the training tell more.
        """
        self._check_fitted()
        check_whole_number("n", n, least=2, what="a whole number of words")
        corpus = self._corpus(X)
        if len(corpus) == 0:
            raise InputError("there are no documents: give some, with words that the model knows")
        return npmi_coherence([np.asarray(words) for words in self._counts.top_words(int(n))], corpus)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the topic mixtures of documents, seen before or not.

        Topics of their tokens are drawn with the word counts held fixed, and θ_dk = (n_dk + α_k)/(n_d + Σα) is
        averaged over the draws.

        Parameters
        ----------
        X
            As in `fit`. The columns of a data frame are matched by name. Unknown words are left out; a warning gives
            their number.

        Returns
        -------
        ndarray of shape (documents, n_components), float32
            Rows sum to 1; an empty document has the mixture of the prior.
        """
        self._check_fitted()
        return infer_topics(self._corpus(X), self._counts, self._priors, fixed_seed(self.random_state), self._team())

    def perplexity(self, X: Any) -> float:
        """Perplexity of the documents' words: exp(−mean log p(word)), by document completion (Wallach et al. 2009).

        θ of each document is inferred from one half of its tokens, chosen at random, and the other half is scored:
        p(w) = Σ_k θ_dk φ_kw. Lower is better.
        """
        return float(np.exp(-self.score(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log p(word) of the documents' words in nats, as in `perplexity`. Higher is better."""
        self._check_fitted()
        seed = fixed_seed(self.random_state)
        total, tokens = completion(self._corpus(X), self._counts, self._priors, seed, self._team())
        if tokens == 0:
            raise InputError("no token is left to score: give more documents, with words that the model knows")
        return total / tokens

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn: topics are named `latentdirichletallocation0` and so on."""
        return len(self.doc_topic_prior_)

    def _corpus(self, X: Any) -> Corpus:
        return as_corpus(X, self.vocabulary_, self.n_features_in_, allow_empty=True)

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        matrix = self._counts.by_word
        arrays: dict[str, NDArray[Any]] = {
            "offsets": matrix.indptr,
            "topics": matrix.indices,
            "counts": matrix.data,
            "alpha": self._priors.alpha,
        }
        if self.vocabulary_ is not None:
            arrays["vocabulary"] = packed_words(self.vocabulary_)
        numbers = {"beta": self._priors.beta, "n_words": self.n_features_in_, "named": self.vocabulary_ is not None}
        return numbers | self._saved_call(), arrays

    def _restore(self, parameters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.n_features_in_ = int(parameters["n_words"])
        self.vocabulary_, self._numbers = None, None
        self._restore_call(parameters)
        if parameters["named"] != ("vocabulary" in arrays):
            raise ValueError("the vocabulary is missing, or one of other words")
        if "vocabulary" in arrays:
            self.vocabulary_ = unpacked_words(arrays["vocabulary"])
            if len(self.vocabulary_) != self.n_features_in_:
                raise ValueError("the vocabulary does not fit the counts")
        priors = Priors(np.asarray(arrays["alpha"], np.float64), float(parameters["beta"]))
        shape = (self.n_features_in_, len(priors.alpha))
        matrix = scipy.sparse.csr_array((arrays["counts"], arrays["topics"], arrays["offsets"]), shape=shape)
        matrix.check_format()
        if not matrix.has_canonical_format:
            raise ValueError("the topics of a word are not ascending")
        self._publish((TopicCounts(matrix), priors))
