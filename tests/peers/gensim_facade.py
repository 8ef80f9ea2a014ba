"""Our word vectors and our topics with the interfaces of gensim's."""

import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from gensim.models import keyedvectors
from sklearn.base import clone

from strads import models
from strads.errors import ArgumentError


class KeyedVectors(models.WordVectors):
    """`gensim.models.KeyedVectors`: our vectors, and how often each word occurs."""

    def __init__(self, words: Iterable[str], vectors: Any, counts: Any):
        super().__init__(words, vectors)
        self.expandos = {"count": counts}

    def get_vecattr(self, word: str, attribute: str) -> Any:
        """Return an attribute of a word: its count."""
        return self.expandos[attribute][self.key_to_index[word]]

    def n_similarity(self, first: Any, second: Any) -> float:
        """Return the cosine of two lists of words."""
        try:
            return super().n_similarity(first, second)
        except ArgumentError as error:  # an empty list
            raise ZeroDivisionError(str(error)) from error

    def evaluate_word_pairs(self, pairs: Any) -> Any:
        """Return the correlations, without p-values, and how many per cent of the pairs have unknown words."""
        found = super().evaluate_word_pairs(pairs)
        return (found.pearson,), (found.spearman,), 100 * found.unknown / (found.pairs + found.unknown)

    def save(self, fname: Any) -> None:
        """Write a file in gensim's own format: gensim does so, with vectors that it reads from a file of ours."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/vectors.bin"
            self.save_word2vec_format(path, binary=True)
            keyedvectors.KeyedVectors.load_word2vec_format(path, binary=True).save(fname)


class Word2Vec:
    """`gensim.models.Word2Vec`. `model` is what has learnt, or will; `wv` are its vectors."""

    hs = 0

    def __init__(self, sentences: Any = None, corpus_file: Any = None, seed: int = 1, workers: int = 3, **options: Any):
        if options.pop("hs", 0):
            raise NotImplementedError
        options = {"sg": 0} | options | {"min_count": max(options.get("min_count", 5), 1)}
        self.model = models.Word2Vec(random_state=seed, n_jobs=workers, **options)  # the same names, and meanings
        self._origin: models.Word2Vec | None = None  # what `train` goes on from
        if sentences is not None or corpus_file is not None:
            text = self._read(sentences, corpus_file)
            self.build_vocab(text)
            self.train(text, total_examples=len(text), epochs=self.epochs)

    def __getattr__(self, name: str) -> Any:
        """Return a parameter of the model."""
        if name == "model" or name not in self.model.get_params():
            raise AttributeError(name)
        return self.model.get_params()[name]

    def _read(self, sentences: Any, corpus_file: Any) -> models.Sentences:
        """Return a text: lists of words, or a file of words with white space between them."""
        if isinstance(sentences, models.Sentences):
            return sentences
        most = self.model.max_vocab_size
        if corpus_file is None:
            return models.Sentences.from_text(sentences, max_vocab_size=most)
        return models.Sentences.from_file(corpus_file, lowercase=False, tokens="whitespace", max_vocab_size=most)

    def scan_vocab(self, corpus_iterable: Any = None, corpus_file: Any = None) -> tuple[int, int]:
        """Return the numbers of words and of sentences of a text."""
        text = self._read(corpus_iterable, corpus_file)
        return text.n_tokens, len(text)

    def build_vocab(self, corpus_iterable: Any = None, corpus_file: Any = None, update: bool = False) -> None:
        """Choose the words of a text. Our `fit` does so itself: what we show until then is what it will start from."""
        text = self._read(corpus_iterable, corpus_file)
        self._origin = self.model if update else None
        model = clone(self.model)
        model._words = model._words_of(text, self._origin)
        model._publish(model._start(model._words, self._origin, model._seed_of_rows(self._origin)))
        self._show(model)
        self.corpus_total_words, self.corpus_count = text.n_tokens, len(text)

    def _show(self, model: models.Word2Vec) -> None:
        self.model, self.syn1neg = model, model._outputs
        self.wv = KeyedVectors(model.vocabulary_, model.vectors_, model.word_counts_)

    def train(self, corpus_iterable: Any = None, corpus_file: Any = None, epochs: int = 0, **sizes: int) -> None:
        """Learn from a text. Its sizes, which gensim wants to be told, are no news to ours."""
        if not epochs or not any(sizes.values()):
            raise ValueError("give epochs, and total_examples or total_words")
        model = clone(self.model).set_params(epochs=epochs)
        self._origin = model.fit(self._read(corpus_iterable, corpus_file), init=self._origin)
        self._show(model)

    fit = train

    def save(self, fname: Any) -> None:
        """Write the model to a file."""
        self.model.save(fname)

    @classmethod
    def load(cls, fname: Any) -> "Word2Vec":
        """Read a model."""
        loaded = cls()
        loaded._origin = models.Word2Vec.load(fname)
        loaded._show(loaded._origin)
        loaded.corpus_total_words = int(loaded.model.word_counts_.sum())  # of words with a vector
        return loaded


class LdaModel:
    """`gensim.models.LdaModel`. A pass draws the topic of each token once; "auto" learns both priors."""

    def __init__(
        self,
        corpus: Any = None,
        num_topics: int = 100,
        id2word: Mapping[int, str] | None = None,
        passes: int = 1,
        alpha: Any = "symmetric",
        eta: Any = None,
        minimum_probability: float = 0.01,
        random_state: Any = None,
    ):
        if id2word is None:
            id2word = {word: str(word) for document in corpus for word, _ in document}
        self.num_topics, self.id2word, self.minimum_probability = num_topics, id2word, minimum_probability
        self._words = [id2word[word] if word in id2word else str(word) for word in range(1 + max(id2word.keys()))]
        self._numbers = {word: number for number, word in enumerate(self._words)}
        asked = [prior if isinstance(prior, str) else "" for prior in (alpha, eta)]
        if asked[0] == "asymmetric":
            alpha = 1 / (np.arange(num_topics) + np.sqrt(num_topics))
            alpha /= alpha.sum()  # as gensim defines it
        if np.ndim(eta):
            assert np.shape(eta) in ((len(self._words),), (num_topics, len(self._words)))
            if np.ptp(eta) > 0:
                raise NotImplementedError  # ours is one number
            eta = float(np.ravel(eta)[0])
        self.model = models.LatentDirichletAllocation(
            num_topics,
            doc_topic_prior=None if asked[0] in ("symmetric", "auto") else alpha,
            topic_word_prior=None if asked[1] in ("symmetric", "auto") else eta,
            learn_priors="asymmetric" if asked[0] == "auto" else "symmetric" if asked[1] == "auto" else "no",
            max_iter=passes,
            random_state=random_state,
        )
        try:
            self._show(self.model._check_parameters())
        except ArgumentError as error:
            if np.ndim(alpha) == 0:
                raise
            raise AssertionError(str(error)) from error  # as gensim says that there is not one for each topic
        if corpus is not None:
            self.update(corpus)

    def _show(self, priors: Any) -> None:
        self.alpha, self.eta = priors.alpha, np.full(len(self._words), priors.beta)

    def _counts(self, corpus: Iterable[Any]) -> scipy.sparse.csr_array:
        documents = list(corpus)
        rows = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
        words, counts = np.array([entry for document in documents for entry in document], float).reshape(-1, 2).T
        return scipy.sparse.csr_array((counts, (rows, words.astype(int))), shape=(len(documents), len(self._words)))

    def update(self, corpus: Iterable[Any]) -> None:
        """Learn from documents, or from more of them."""
        counts = models.Corpus.from_counts(self._counts(corpus), self._words)
        (self.model.partial_fit if hasattr(self.model, "vocabulary_") else self.model.fit)(counts)
        self._show(self.model._priors)

    fit = update

    def get_document_topics(self, bow: Any, minimum_probability: float | None = None) -> Any:
        """Return the topics of a document, or of each document of a corpus, and their shares."""
        least = self.minimum_probability if minimum_probability is None else minimum_probability
        is_one = isinstance(next(iter(bow), ()), tuple)
        shares = self.model.transform(self._counts([bow] if is_one else bow))
        found = [[(topic, share) for topic, share in enumerate(row) if share >= least] for row in shares]
        return found[0] if is_one else found

    __getitem__ = get_document_topics

    def get_topics(self) -> Any:
        """Return the probability of each word in each topic."""
        counts = self.model.components_
        return counts / counts.sum(axis=1, keepdims=True)

    def get_topic_terms(self, topicid: int, topn: int = 10) -> list[tuple[int, Any]]:
        """Return the numbers and probabilities of a topic's best words."""
        numbers = [self._numbers[word] for word in self.model.top_words(topn)[topicid]]
        return list(zip(numbers, self.get_topics()[topicid, numbers], strict=True))

    def get_term_topics(self, word_id: Any, minimum_probability: float | None = None) -> list[tuple[int, Any]]:
        """Return the topics in which a word has at least some probability."""
        least = self.minimum_probability if minimum_probability is None else minimum_probability
        number = self._numbers[word_id] if isinstance(word_id, str) else word_id
        return [(topic, share) for topic, share in enumerate(self.get_topics()[:, number]) if share >= least]

    def show_topic(self, topicid: int, topn: int = 10) -> list[tuple[str, Any]]:
        """Return the best words of a topic, and their probabilities."""
        return [(self._words[number], share) for number, share in self.get_topic_terms(topicid, topn)]

    def show_topics(self, num_topics: int = 10, num_words: int = 10, formatted: bool = True) -> list[tuple[int, Any]]:
        """Return the best words of topics."""
        count = self.num_topics if num_topics < 0 else min(num_topics, self.num_topics)
        topics = [(topic, self.show_topic(topic, num_words)) for topic in range(count)]
        if not formatted:
            return topics
        return [(topic, " + ".join(f'{share:.3f}*"{word}"' for word, share in words)) for topic, words in topics]

    print_topics = show_topics

    def top_topics(self, corpus: Any, topn: int = 20) -> list[tuple[Any, float]]:
        """Return the best words of each topic, and its coherence (ours: NPMI), best first."""
        words = [[(share, word) for word, share in self.show_topic(topic, topn)] for topic in range(self.num_topics)]
        coherence = self.model.coherence(self._counts(corpus), topn)
        return sorted(zip(words, coherence, strict=True), key=lambda pair: -pair[1])

    def save(self, fname: Any) -> None:
        """Write the model to a file."""
        self.model.save(fname)

    @classmethod
    def load(cls, fname: Any) -> "LdaModel":
        """Read a model."""
        model = models.LatentDirichletAllocation.load(fname)
        loaded = cls(None, model.n_components, dict(enumerate(model.vocabulary_)))
        loaded.model = model
        loaded._show(model._priors)
        return loaded
