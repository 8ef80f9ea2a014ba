"""One training of LDA: the documents, the held-out documents, and the report on the topics."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from strads.cli.documents_file import Documents, WordOptions, read_documents
from strads.cli.run_directory import TOPICS
from strads.cli.train_run import Record, TrainRun
from strads.errors import ArgumentError, InputError
from strads.models import Corpus, LatentDirichletAllocation
from strads.models.kernels.lda_tables import MAX_TOPICS

_LARGEST = 3  # topics that are shown when training ends


@dataclass(kw_only=True)
class LdaRun(TrainRun):
    """A run of `strads train lda`."""

    vocab: Path | None
    words: WordOptions
    holdout: float

    command: ClassVar[str] = "lda"
    estimator: ClassVar[str] = "LatentDirichletAllocation"
    texts: ClassVar[tuple[str, ...]] = (TOPICS,)

    model: LatentDirichletAllocation = field(init=False)
    _documents: Documents = field(init=False)
    _rest: Corpus = field(init=False)
    _held_out: Corpus | None = field(init=False)
    _perplexity: float | None = field(init=False, default=None)

    @property
    def ends_iterations(self) -> bool:
        """The counts are consistent only between iterations."""
        return True

    def read(self) -> None:
        """Read the documents, and set some aside."""
        topics = self.parameters["n_components"]
        if topics > MAX_TOPICS:
            raise ArgumentError(f"--topics {topics}: {MAX_TOPICS} topics are possible")
        self._documents = read_documents(self.data, self.vocab, self.words)
        seed = self.parameters["random_state"]
        try:
            self._rest, self._held_out = _hold_out(self._documents.corpus, self.holdout, seed)
        except InputError as error:
            raise InputError(f"{self.data}: {error}") from error

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on the documents that were not held out."""
        self.model.fit(self._rest, on_iteration=on_record)

    def measure(self) -> None:
        """Perplexity of the held-out documents."""
        if self._held_out is not None:
            self._perplexity = self.model.perplexity(self._held_out)

    def announcement(self) -> list[str]:
        """The amount of text, and its words."""
        corpus = self._documents.corpus
        held = f"; {len(self._held_out):,} held out" if self._held_out is not None else ""
        lines = [
            f"{corpus.n_tokens:,} tokens of {corpus.n_words:,} words in {len(corpus):,} documents{held}",
            *(f"note: {note}" for note in self._documents.notes),
        ]
        if corpus.vocabulary is None:
            lines.append("note: words are shown as their numbers less 1: --vocab names them")
        return lines

    def arguments(self) -> Record:
        """How the file is read."""
        vocab = None if self.vocab is None else str(self.vocab)
        return {"vocab": vocab, **self._documents.words, "holdout": self.holdout}

    def about_data(self) -> Record:
        """The kind of file, and numbers of everything."""
        corpus = self._documents.corpus
        return {
            "kind": self._documents.kind,
            "documents": len(corpus),
            "held_out": 0 if self._held_out is None else len(self._held_out),
            "words": corpus.n_words,
            "tokens": corpus.n_tokens,
            "training_tokens": self._rest.n_tokens,
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """How well the topics explain the training documents and held-out ones."""
        return {
            "log_likelihood": last.get("log_likelihood"),
            "log_likelihood_per_token": last.get("objective"),
            "s_error": last.get("s_error"),
            "perplexity": self._perplexity,
            **(_priors(self.model) if self._is_trained else {}),
        }

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The same for people, and the largest topics."""
        shares, words = shares_of_topics(self.model), self.model.top_words(8)
        largest = np.argsort(-shares, kind="stable")[:_LARGEST]
        lines = [f"{shares[topic]:5.1%}  {' '.join(words[topic])}" for topic in largest]
        rows = [("largest topics", "\n".join(lines))]
        if self._perplexity is not None and math.isfinite(self._perplexity):
            rows.append(("held-out perplexity", f"{self._perplexity:,.1f}"))
        if "objective" in last:
            rows.append(("log-likelihood", f"{last['objective']:.4f} per token"))
        if self.model.learn_priors != "no":
            priors = _priors(self.model)
            rows.append(("learnt priors", f"α {priors['alpha']:.4g} in all, β {priors['beta']:.4g}"))
        return rows

    def texts_of_model(self) -> Mapping[str, str]:
        """The topics by their ten most frequent words."""
        shares = shares_of_topics(self.model)
        lines = ["topic\tshare\twords"]
        for topic, words in enumerate(self.model.top_words(10)):
            lines.append(f"{topic}\t{shares[topic]:.4f}\t{' '.join(words)}")
        return {TOPICS: "\n".join(lines) + "\n"}


def shares_of_topics(model: LatentDirichletAllocation) -> NDArray[np.float64]:
    """The share of all tokens that each topic has, shape (topics,)."""
    counts = model.topic_word_counts_
    tokens = np.bincount(counts.indices, counts.data, counts.shape[1])
    shares: NDArray[np.float64] = tokens / tokens.sum()
    return shares


def _priors(model: LatentDirichletAllocation) -> dict[str, float]:
    """The sum of α over topics, and β."""
    return {"alpha": float(model.doc_topic_prior_.sum()), "beta": float(model.topic_word_prior_[0])}


def _hold_out(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus | None]:
    """Documents for training and held-out documents; None for a share of 0."""
    if share == 0:
        return corpus, None
    if len(corpus) < 2:
        raise InputError("a single document leaves none to hold out: give more documents, or --holdout 0")
    rest, held_out = corpus.held_out(share, seed)
    for part, name in ((rest, "documents to train on"), (held_out, "held-out documents")):
        if part.n_tokens == 0:
            raise InputError(f"the {name} are empty: give more documents, another --seed, or --holdout 0")
    return rest, held_out
