"""`strads train word2vec`: vectors of the words of a text file."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from strads.cli.train_options import data_option, model_option, not_negative, positive, run_option, share
from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models import Sentences, Word2Vec, WordVectors
from strads.models.embeddings.vocabulary import WordCounts, choose_words
from strads.models.word_vectors import WordPairEvaluation

_SHOWN = (50, 150, 400)  # ranks of words whose neighbours are shown


@dataclass(frozen=True, kw_only=True)
class Word2VecParameters:
    """Parameters of the estimator."""

    min_count: Annotated[int, data_option(min=0, help="Leave out words that occur less often.")] = 5
    max_final_vocab: Annotated[
        int | None,
        data_option("--max-words", min=1, help="Keep only this many words, the most frequent; by default all."),
    ] = None
    vector_size: Annotated[int, model_option(min=1, help="Dimensions of the vectors.")] = 100
    window: Annotated[int, model_option(min=1, max=255, help="Largest distance of two words of a pair.")] = 5
    negative: Annotated[int, model_option(min=1, help="Negative samples of a pair.")] = 5
    epochs: Annotated[int, model_option(min=1, help="Passes over the text.")] = 5
    alpha: Annotated[float, model_option(callback=positive, help="Learning rate at the start.")] = 0.025
    min_alpha: Annotated[float, model_option(callback=not_negative, help="Learning rate at the end.")] = 0.0001
    sample: Annotated[float, model_option(callback=share, help="Subsample words with a larger share of the text.")] = (
        1e-3
    )


@dataclass(kw_only=True)
class Word2VecRun(TrainRun):
    """Vectors of words, by skip-gram with negative sampling.

    Same seed, same vectors, on any number of threads and nodes.

    One review a line: [bold]strads train word2vec --data reviews.txt.gz --vectors vectors.bin --out run[/bold]

    On several machines: [bold]mpiexec -n 4 strads train word2vec …[/bold], with the same result.
    """

    data: Annotated[Path, data_option(help="Text, one sentence or document per line; gzip, bz2, zstd, lz4 too.")]
    parameters: Word2VecParameters  # options that are parameters of the estimator
    tokens: Annotated[  # what a token of a line is
        Literal["words", "whitespace"],
        data_option(help="words: runs of letters, digits and underscores; whitespace: split at white space only."),
    ] = "words"
    lowercase: Annotated[bool, data_option(help="Convert to lower case.")] = True  # before words are counted
    pairs: Annotated[  # file of word pairs and their similarities, to compare those of the model with
        Path | None,
        data_option(help="Pairs of words and people's judgement of their similarity (tab separated), to compare with."),
    ] = None
    # Whether to train a continuous bag of words in place of skip-gram.
    cbow: Annotated[bool, model_option("--cbow", help="Continuous bag of words instead of skip-gram; one thread.")] = (
        False
    )
    vectors: Annotated[
        Path | None,
        run_option(help="Write the vectors to this file, too, in the format of word2vec (binary if it ends in .bin)."),
    ] = None

    estimator: ClassVar[str] = "Word2Vec"  # its class in `strads.models`

    model: Word2Vec = field(init=False)  # the estimator
    _sentences: Sentences = field(init=False)
    _words: WordCounts = field(init=False)
    _evaluation: WordPairEvaluation | None = field(init=False, default=None)

    def recorded_parameters(self) -> Record:
        """Parameters of the estimator."""
        return super().recorded_parameters() | {"sg": 0 if self.cbow else 1}

    def read(self) -> None:
        """Read the sentences and choose the words."""
        self._sentences = Sentences.from_file(self.data, lowercase=self.lowercase, tokens=self.tokens)
        try:
            self._words = choose_words(self._sentences, self.parameters.min_count, self.parameters.max_final_vocab)
        except InputError as error:
            raise InputError(f"{self.data}: {str(error).replace('min_count', '--min-count')}") from error
        if self.parameters.min_alpha > self.parameters.alpha:
            raise InputError("--min-alpha is above --alpha: the learning rate falls")
        if self.pairs is not None:
            words = self._words.words  # vectors of any kind: a bad file of pairs is rejected before training
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # `measure` warns
                WordVectors(words, [[1.0, number] for number in range(len(words))]).evaluate_word_pairs(self.pairs)
        if self.vectors is not None and not self.vectors.resolve().parent.is_dir():
            raise InputError(f"{self.vectors}: there is no such folder to write the vectors to")

    def fit(self, on_record: Callable[[Record], object]) -> None:
        """Train on all sentences."""
        self.model.fit(self._sentences, on_iteration=on_record)

    def measure(self) -> None:
        """Compare with judgements, and write the vectors for other programs."""
        if self.pairs is not None:
            self._evaluation = self.model.evaluate_word_pairs(self.pairs)
        if self.vectors is not None:
            self.model.save_word2vec_format(self.vectors, binary=self.vectors.suffix == ".bin")

    def announcement(self) -> list[str]:
        """The amount of text, and its words."""
        sentences, words = self._sentences, self._words
        rare = sentences.n_words - len(words)
        left_out = f"; {rare:,} rarer words left out" if rare else ""
        return [f"{sentences.n_tokens:,} words in {len(sentences):,} lines, {len(words):,} different ones{left_out}"]

    def arguments(self) -> Record:
        """How the file is read, and what is written besides the model."""
        return {name: getattr(self, name) for name in ("tokens", "lowercase", "pairs", "vectors")}

    def about_data(self) -> Record:
        """The numbers of sentences, tokens and words."""
        return {
            "sentences": len(self._sentences),
            "tokens": self._sentences.n_tokens,
            "known_tokens": int(self._words.counts.sum()),
            "words": len(self._words),
        }

    def figures(self, last: Mapping[str, Any]) -> Record:
        """The loss, and the agreement with judgements."""
        pairs = None if self._evaluation is None else self._evaluation._asdict()
        return {"loss": last.get("objective"), "word_pairs": pairs}

    def results(self, last: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The figures as shown to the user, and the neighbours of some words."""
        model = self.model
        shown = [model.vocabulary_[rank] for rank in _SHOWN if rank < len(model.vocabulary_)] or model.vocabulary_[:1]
        neighbours = [f"{word}: {' '.join(other for other, _ in model.most_similar(word, topn=6))}" for word in shown]
        rows = [("similar words", "\n".join(neighbours)), ("loss", f"{last['objective']:.4f} per pair")]
        if self._evaluation is not None:
            found = self._evaluation
            unknown = f", {found.unknown} unknown" if found.unknown else ""
            rows.append(("agreement", f"Spearman {found.spearman:.3f} on {found.pairs} pairs{unknown}"))
        if self.vectors is not None:
            rows.append(("vectors", str(self.vectors)))
        return rows
