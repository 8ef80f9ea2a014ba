"""`strads train lda`: topics of the documents in a file."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from strads.cli.documents_file import Documents, WordOptions, read_documents
from strads.cli.run_directory import TOPICS
from strads.cli.train_options import data_option, model_option, positive, share
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models import Corpus, LatentDirichletAllocation
from strads.models.kernels.lda_tables import MAX_TOPICS

_LARGEST = 3  # topics that are shown when training ends


@dataclass(frozen=True, kw_only=True)
class LdaParameters:
    """Parameters of the estimator."""

    n_components: Annotated[int, model_option("--topics", min=1, max=MAX_TOPICS, help="How many to find.")] = 100
    max_iter: Annotated[int, model_option("--iterations", min=1, help="Each draws the topic of every token once.")] = (
        100
    )
    doc_topic_prior: Annotated[
        float | None,
        model_option("--alpha", callback=positive, help="Prior of a document's topics; by default 1 / topics."),
    ] = None
    topic_word_prior: Annotated[
        float | None, model_option("--beta", callback=positive, help="Prior of a topic's words; by default 1 / topics.")
    ] = None
    learn_priors: Annotated[
        Literal["no", "symmetric", "asymmetric"],
        model_option(help="Keep α and β, or begin with them and fit them; α as one number, or one per topic."),
    ] = "asymmetric"
    sampler: Annotated[
        Literal["auto", "sparse", "dense"],
        model_option(help="How topics are drawn; by default whichever is faster for that number of topics."),
    ] = "auto"
    evaluate_every: Annotated[int, model_option(min=0, help="Iterations between two log-likelihoods; 0: none.")] = 1


@dataclass(kw_only=True)
class LdaRun(TrainRun):
    """Topics of documents, by collapsed Gibbs sampling of latent Dirichlet allocation.

    The words of texts are counted in lower case; topics.txt then names each topic's most frequent ones.

    One review a line: [bold]strads train lda --data reviews.txt.gz --topics 200 --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train lda …[/bold], with the same result.
    """

    data: Annotated[Path, data_option(help="Text, one document per line, or UCI's bag of words (docword); gzip too.")]
    parameters: LdaParameters  # options that are parameters of the estimator
    vocab: Annotated[  # file of words: names of those in a bag of words, or which words of the text are counted
        Path | None, data_option(help="Words, one per line: those of the bag of words, or those to count in the text.")
    ] = None
    words: WordOptions  # which words of the text are counted
    holdout: Annotated[  # share of the documents, 0 or more but less than 1
        float, data_option(callback=share, help="Share of the documents to hold out, chosen at random, and test on.")
    ] = 0.1

    estimator: ClassVar[str] = "LatentDirichletAllocation"  # its class in `strads.models`
    texts: ClassVar[tuple[str, ...]] = (TOPICS,)

    model: LatentDirichletAllocation = field(init=False)  # the estimator
    _documents: Documents = field(init=False)
    _rest: Corpus = field(init=False)
    _held_out: Corpus | None = field(init=False)
    _perplexity: float | None = field(init=False, default=None)

    def read(self) -> None:
        """Read the documents, and set some aside."""
        self._documents = read_documents(self.data, self.vocab, self.words)
        self._rest, self._held_out = _hold_out(self.data, self._documents.corpus, self.holdout, self.common.seed)

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
            lines.append("note: words are shown as numbers from 0; --vocab gives them names")
        return lines

    def arguments(self) -> Record:
        """How the file is read."""
        return {"vocab": self.vocab, **self._documents.words, "holdout": self.holdout}

    def about_data(self) -> Record:
        """The kind of file, and the numbers of documents, words and tokens."""
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
        """The figures as shown to the user, and the largest topics."""
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
    """Return each topic's share of all tokens, of shape (topics,)."""
    counts = model.topic_word_counts_
    tokens = np.bincount(counts.indices, counts.data, counts.shape[1])
    shares: NDArray[np.float64] = tokens / tokens.sum()
    return shares


def _priors(model: LatentDirichletAllocation) -> dict[str, float]:
    """The sum of α over topics, and β."""
    return {"alpha": float(model.doc_topic_prior_.sum()), "beta": float(model.topic_word_prior_[0])}


def _hold_out(path: Path, corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus | None]:
    """Documents for training and held-out documents; None for a share of 0."""
    if share == 0:
        return corpus, None
    if len(corpus) < 2:
        raise InputError(f"{path}: a single document leaves none to hold out: give more documents, or --holdout 0")
    rest, held_out = corpus.held_out(share, seed)
    for part, name in ((rest, "documents to train on"), (held_out, "held-out documents")):
        if part.n_tokens == 0:
            raise InputError(f"{path}: the {name} are empty: give more documents, another --seed, or --holdout 0")
    return rest, held_out
