"""One training run of LDA on the Static Engine: from a corpus to counts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strads.dds.files import check_announced
from strads.engine.statistics import NodeStatistics
from strads.errors import InputError
from strads.models._iterative import EngineSolver, Epoch
from strads.models.corpora.corpus import Corpus
from strads.models.kernels.lda_likelihood import log_documents, log_topics, log_words
from strads.models.kernels.lda_priors import better_alpha, better_beta, document_prior_sums, word_prior_sum
from strads.models.kernels.lda_tables import MAX_DENSE_TOPICS, empty_words, longest_sparse_document
from strads.models.topics.counts import TopicCounts, rows_of
from strads.models.topics.grid import TokenGrid, tokens_of
from strads.models.topics.priors import Priors
from strads.models.topics.program import DocumentPart, WordBlock, WordRotation
from strads.schmp import StaticEngine

_WORKERS = 16  # most workers by default: independent of the threads, and so is the result
_TOKENS_A_WORKER = 20_000  # of a small batch: sampling them takes 20 times as long as the rounds of an iteration
_LEARN_EVERY = 10  # iterations between two fits of the priors
_PRIOR_STEPS = 5  # fixed-point iterations at a time
_ROUNDS = 4  # rounds between two synchronizations


@dataclass(frozen=True, eq=False)
class EarlierCounts:
    """What a model has counted before the documents of a training run.

    Attributes
    ----------
    rows : TopicCounts
        Counts of the words of the corpus.
    totals : int64 ndarray of shape (K,)
        n_k over all words.
    n_words : int
        Size of the model's vocabulary, of which the corpus may have only some words.
    """

    rows: TopicCounts
    totals: NDArray[np.int64]
    n_words: int


class TopicTraining(EngineSolver):
    """Tokens, counts and their sampler on the nodes of `strads.init`; every token has a topic from the start.

    As a solver it draws every token's topic once an epoch; from time to time it fits the priors and evaluates the
    likelihood.

    Parameters
    ----------
    sampler : {"auto", "sparse", "dense"}
    start : {"sequential", "random"}
    workers : int, optional
        Number of logical workers; by default 16.
    synchronizations : int, optional
        Number per iteration; by default one every 4 rounds.
    threads : int, optional
        Threads of a single process.
    earlier : EarlierCounts, optional
        Counts of earlier documents, to which those of the corpus are added.
    learn_priors : {"no", "symmetric", "asymmetric"}
    evaluate_every : int
        Number of epochs between two evaluations; 0 or −1: never.
    max_iter : int
        Number of the last epoch, which is evaluated as well.

    Attributes
    ----------
    priors : Priors
        As given, or as learnt last.
    n_tokens, n_words : int
        Size of the corpus: its tokens, and the words of its vocabulary.
    start_seconds : float
        Time taken by the first iteration, which draws or counts the initial topics.
    s_error : float
        Mean s-error over the synchronizations of the last iteration; see `WordRotation`. 0 before the first.
    """

    checkpointed = ("_engine", "priors", "s_error")

    def __init__(
        self,
        corpus: Corpus,
        priors: Priors,
        *,
        sampler: str,
        start: str,
        workers: int | None,
        synchronizations: int | None,
        seed: int,
        threads: int | None,
        earlier: EarlierCounts | None = None,
        learn_priors: str = "no",
        evaluate_every: int = 0,
        max_iter: int = 0,
    ):
        self._learn_priors, self._evaluate_every, self._max_iter = learn_priors, evaluate_every, max_iter
        self.priors = priors
        self.n_tokens, self.n_words = corpus.n_tokens, corpus.n_words
        if corpus.vocabulary is None:
            check_announced("the documents", {"words": corpus.n_words}, len(corpus.words))
        topics = len(priors.alpha)
        sparse = sampler == "sparse" or (sampler == "auto" and topics > MAX_DENSE_TOPICS)
        if sparse:
            _check_lengths(corpus.lengths, topics)
        count = workers or count_workers(corpus.n_tokens)
        self._grid = TokenGrid.of(corpus, count)
        program = WordRotation(
            count,
            priors,
            corpus.n_words if earlier is None else earlier.n_words,
            corpus.n_tokens,
            synchronizations=min(count, synchronizations or -(-count // _ROUNDS)),
            sparse=sparse,
            seed=seed,
            random_start=start == "random",
            totals=np.zeros(topics, np.int64) if earlier is None else earlier.totals,
        )
        parts = [
            DocumentPart.empty(*tokens_of(corpus, self._grid, worker), topics, sparse=sparse) for worker in range(count)
        ]
        if start == "random":
            for worker, part in enumerate(parts):
                part.draw_uniformly(seed, worker)
        blocks = [self._block(block, topics, sparse, earlier) for block in range(count)]
        self._engine = StaticEngine(program, parts, [blocks], threads=threads)
        self.start_seconds = self._engine.iterate().seconds
        self.s_error = 0.0

    def _block(self, block: int, topics: int, sparse: bool, earlier: EarlierCounts | None) -> WordBlock:
        """Return a block of words before the first token."""
        words = self._grid.words_of(block)
        frequencies = self._grid.word_tokens[words]
        if earlier is None:
            return WordBlock(empty_words(frequencies, topics, sparse))
        return WordBlock.of(earlier.rows.by_word[words], frequencies, sparse=sparse)

    def run_epoch(self, number: int) -> Epoch:
        """Draw all topics, and every 10 epochs the priors that fit them."""
        nodes = self.iterate()
        if self._learn_priors != "no" and number % _LEARN_EVERY == 0:
            self.fit_priors(symmetric=self._learn_priors == "symmetric")
        return Epoch(number * self.n_tokens, figures={"s_error": self.s_error}, nodes=nodes)

    def evaluate(self, number: int) -> dict[str, float]:
        """Return the log-likelihood, and the same per token as the objective."""
        if self._evaluate_every < 1 or (number % self._evaluate_every and number != self._max_iter):
            return {}
        found = self.log_likelihood()
        return {"log_likelihood": found, "objective": found / self.n_tokens}

    def learnt(self) -> tuple[TopicCounts, Priors]:
        """Return the word-topic counts, copied from the nodes, and the priors."""
        return self.counts(), self.priors

    def iterate(self) -> tuple[NodeStatistics, ...]:
        """Draw the topic of every token once; returns statistics of each node."""
        iteration = self._engine.iterate()
        self.s_error = float(np.mean(self._engine.each_node(lambda program: program.s_errors)[0]))
        return iteration.nodes

    def log_likelihood(self) -> float:
        """log p(words, topics | α, β) in nats: see `strads.models.kernels.lda_likelihood`."""
        documents = self._engine.each_worker(
            lambda program, part: log_documents(part.documents, part.lengths, program.priors.alpha)
        )
        words = self._engine.each_shard(
            lambda program, block: log_words(block.words, program.priors.beta, len(program.totals))
        )
        return float(sum(documents) + sum(words) + log_topics(self.totals(), self.priors.beta, self.n_words))

    def fit_priors(self, *, symmetric: bool) -> None:
        """Fit α and β to the counts by a few steps (Minka 2000), each of which increases the likelihood."""
        alpha, beta, totals = self.priors.alpha, self.priors.beta, self.totals()
        if symmetric:
            alpha = np.full_like(alpha, alpha.mean())
        for _ in range(_PRIOR_STEPS):
            found = self._engine.each_worker(
                lambda program, part, alpha: document_prior_sums(part.documents, part.lengths, alpha), alpha
            )
            sums, of_lengths = zip(*found, strict=True)
            alpha = better_alpha(alpha, np.sum(sums, 0), sum(of_lengths), symmetric)
            of_words = self._engine.each_shard(
                lambda program, block, beta: word_prior_sum(block.words, beta, len(program.totals)), beta
            )
            beta = better_beta(beta, sum(of_words), totals, self.n_words)
        self.priors = Priors(alpha, beta)
        self._engine.each_node(lambda program, priors: program.set_priors(priors), self.priors)

    def counts(self) -> TopicCounts:
        """Return the word-topic counts, wherever they are stored."""
        rows = self._engine.each_shard(lambda program, block: rows_of(block.words, len(program.totals)))
        words = [self._grid.words_of(block) for block in range(self._grid.workers)]
        return TopicCounts.from_blocks(words, rows, self.n_words, len(self.priors.alpha))

    def parts(self) -> list[DocumentPart]:
        """Return the data of each worker, wherever they are stored."""
        return self._engine.data()

    def totals(self) -> NDArray[np.int64]:
        """Return the number of tokens of each topic, (K,)."""
        totals: NDArray[np.int64] = self._engine.each_node(lambda program: program.totals)[0]
        return totals


def count_workers(tokens: int) -> int:
    """Number of logical workers by default: it depends on the data alone, so threads do not change the result."""
    return max(1, min(_WORKERS, tokens // _TOKENS_A_WORKER))


def _check_lengths(lengths: NDArray[np.int64], topics: int) -> None:
    most = longest_sparse_document(topics)
    document = int(np.argmax(lengths))
    if lengths[document] > most:
        raise InputError(
            f"document {document} has {lengths[document]:,} tokens; with {topics:,} topics at most {most:,} are "
            'possible: split it, or take sampler="dense"'
        )
