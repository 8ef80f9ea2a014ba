"""`strads demo lda`: topics of the standard library's documentation, trained twice."""

import platform
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from rich.text import Text
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import strads
from strads.cli.cluster_options import count_of
from strads.cli.comparison import Demo, sameness
from strads.cli.lda_run import shares_of_topics
from strads.cli.python_documentation import python_documentation
from strads.cli.terminal import print_summary
from strads.models import Corpus, LatentDirichletAllocation
from strads.progress import format_rate, samples_per_second

_TOPICS = 40
_ITERATIONS = 300
_SHOWN_EVERY = 20  # iterations: each takes some milliseconds
_ALPHA, _BETA = 0.05, 0.02  # initial values: few topics per docstring, few words per topic
_MIN_WORDS = 10  # shorter documents are left out
_WORKERS = 16
_WORDS_SHOWN, _DOCUMENTS_SHOWN = 8, 3

_LETTERS = r"(?u)\b[a-z][a-z_]{2,}\b"  # words of three letters or more
# Words that are common in docstrings regardless of their subject.
_OF_ANY_DOCSTRING = frozenset(
    (
        *("return", "returns", "returned", "returning", "self", "none", "true", "false", "yield", "yields", "print"),
        *("argument", "arguments", "arg", "args", "kwargs", "keyword", "parameter", "parameters", "param", "passed"),
        *("optional", "default", "defaults", "specified", "given", "value", "values", "set", "sets", "new", "def"),
        *("function", "functions", "func", "method", "methods", "call", "calls", "called", "calling", "callable"),
        *("class", "classes", "instance", "instances", "object", "objects", "obj", "type", "types", "python", "module"),
        *("str", "string", "strings", "int", "integer", "list", "dict", "tuple", "bool", "number", "numbers"),
        *("use", "used", "uses", "using", "like", "want", "make", "makes", "need", "needs", "does", "doesn", "don"),
        *("isn", "way", "sure", "etc", "note", "example", "examples", "following", "instead", "different", "single"),
        *("case", "cases", "result", "results", "raise", "raises", "raised", "contain", "contains", "containing"),
        *("support", "supported", "provide", "provides", "provided", "implementation", "defined", "created", "create"),
        *("current", "test", "name", "names", "named", "foo", "bar", "spam", "xxx", "com", "txt", "non", "specific"),
        *("available", "information", "standard", "possible", "order", "attribute", "attributes", "lemburg"),
    )
)

_NEXT = """\
What to do next
  strads train lda --data texts.txt --out run    topics of your own texts, one per line
  strads train lda --help                        which data, which options"""


@dataclass
class LdaDemo(Demo):
    """A demonstration on the docstrings of this Python."""

    _corpus: Corpus = field(init=False)
    _names: list[str] = field(init=False)

    def show(self) -> None:
        """Run the demo and report the results."""
        self._read()
        place, other = self.place, self.other
        workers = max(_WORKERS, self.threads)
        model, mixtures = self._fit(f"Training on {place}", workers)
        with strads.init("threads", threads=other):
            again, _ = self._fit(f"The same on {count_of(other, 'thread')}, to compare", workers, "from the same start")
        self.say()
        self._print_topics(model, mixtures)
        self.say()
        tables = [[each.topic_word_counts_.toarray()] for each in (model, again)]
        warm = model.history_[_SHOWN_EVERY - 1 :]  # after compilation and one fit of the priors
        print_summary(
            self.console,
            [
                ("log-likelihood", f"{model.history_[-1]['objective']:.4f} per token"),
                ("throughput", f"{format_rate(samples_per_second(warm), 'tokens')} on {place}"),
                ("same result?", sameness(tables[0], tables[1], f"{place} and {count_of(other, 'thread')}", "counts")),
            ],
        )
        self.say()
        self.say(_NEXT)

    def _read(self) -> None:
        documents = python_documentation()
        corpus = Corpus.from_text(
            [text for _, text in documents],
            min_df=5,
            stop_words=ENGLISH_STOP_WORDS | _OF_ANY_DOCSTRING,
            token_pattern=_LETTERS,
        )
        kept = np.flatnonzero(corpus.lengths >= _MIN_WORDS)
        self._corpus = corpus.take(kept)
        self._names = [documents[number][0] for number in kept]
        self.say(
            f"{len(documents):,} docstrings of the standard library of Python {platform.python_version()}. "
            f"{len(kept):,} have {_MIN_WORDS}\nwords or more that say something: "
            f"{self._corpus.n_tokens:,} tokens of {self._corpus.n_words:,} words."
        )

    def _fit(
        self, title: str, workers: int, beginning: str | None = None
    ) -> tuple[LatentDirichletAllocation, NDArray[np.float32]]:
        model = LatentDirichletAllocation(
            _TOPICS,
            doc_topic_prior=_ALPHA,
            topic_word_prior=_BETA,
            learn_priors="asymmetric",
            max_iter=_ITERATIONS,
            n_workers=workers,
            evaluate_every=_SHOWN_EVERY,
            random_state=self.seed,
        )
        with self.training(model, title, beginning) as progress:

            def on_iteration(record: dict[str, object]) -> None:
                if "objective" in record:
                    progress.update(record)

            mixtures = model.fit_transform(self._corpus, on_iteration=on_iteration)
        return model, mixtures

    def _print_topics(self, model: LatentDirichletAllocation, mixtures: NDArray[np.float32]) -> None:
        shares, words = shares_of_topics(model), model.top_words(_WORDS_SHOWN)
        self.console.print(
            Text(f"{_TOPICS} topics, the largest first, and the documents most about each", style="bold")
        )
        for topic in np.argsort(-shares, kind="stable"):
            typical = ", ".join(self._typical(mixtures[:, topic]))
            self.console.print(
                Text.assemble(
                    (f"{shares[topic]:5.1%}  ", "cyan"), " ".join(words[topic]), "\n       ", (typical, "dim")
                ),
                soft_wrap=True,
            )

    def _typical(self, weights: NDArray[np.float32]) -> list[str]:
        """Names of the documents with the largest share of a topic, each from a different module or class."""
        names: dict[str, str] = {}
        for document in np.argsort(-weights, kind="stable"):
            name = self._names[document]
            names.setdefault(name.rpartition(".")[0], name)
            if len(names) == _DOCUMENTS_SHOWN:
                break
        return list(names.values())
