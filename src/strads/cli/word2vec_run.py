"""One training of Word2Vec: the sentences, the vectors, and the comparison with people's judgements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from strads.cli.train_run import Record, TrainRun
from strads.errors import InputError
from strads.models import Sentences, Word2Vec, WordVectors
from strads.models.embeddings.vocabulary import WordCounts, choose_words
from strads.models.word_vectors import WordPairEvaluation

_SHOWN = (50, 150, 400)  # ranks of words whose neighbours are shown


@dataclass(kw_only=True)
class Word2VecRun(TrainRun):
    """A run of `strads train word2vec`."""

    tokens: str
    lowercase: bool
    pairs: Path | None
    vectors: Path | None

    command: ClassVar[str] = "word2vec"
    estimator: ClassVar[str] = "Word2Vec"

    model: Word2Vec = field(init=False)
    _sentences: Sentences = field(init=False)
    _words: WordCounts = field(init=False)
    _evaluation: WordPairEvaluation | None = field(init=False, default=None)

    @property
    def ends_iterations(self) -> bool:
        """The vectors are gathered between passes."""
        return True

    def read(self) -> None:
        """Read the sentences and choose the words."""
        self._sentences = Sentences.from_file(self.data, lowercase=self.lowercase, tokens=self.tokens)
        try:
            self._words = choose_words(
                self._sentences, self.parameters["min_count"], self.parameters["max_final_vocab"]
            )
        except InputError as error:
            raise InputError(f"{self.data}: {str(error).replace('min_count', '--min-count')}") from error
        if self.parameters["min_alpha"] > self.parameters["alpha"]:
            raise InputError("--min-alpha is above --alpha: the learning rate falls")
        if self.pairs is not None:
            self._compare_nothing(self.pairs)
        if self.vectors is not None and not self.vectors.resolve().parent.is_dir():
            raise InputError(f"{self.vectors}: there is no such folder to write the vectors to")

    def _compare_nothing(self, pairs: Path) -> None:
        """Reject a file of pairs before anything is trained."""
        words = self._words.words
        WordVectors(words, [[1.0, number] for number in range(len(words))]).evaluate_word_pairs(pairs)

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
        files = {"pairs": self.pairs, "vectors": self.vectors}
        return {"tokens": self.tokens, "lowercase": self.lowercase} | {
            name: None if path is None else str(path) for name, path in files.items()
        }

    def about_data(self) -> Record:
        """Numbers of everything."""
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
        """The same for people, and some neighbours."""
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
