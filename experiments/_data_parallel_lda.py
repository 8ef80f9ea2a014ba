"""Data-parallel LDA as a SchMP program: every worker samples with a copy of the word-topic table (thesis §3.1.4)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads import schmp
from strads.models import Corpus
from strads.models.kernels.aligned import aligned_zeros, padded
from strads.models.kernels.lda_dense_sampler import sample_dense
from strads.models.kernels.lda_likelihood import log_documents, log_topics, log_words
from strads.models.kernels.lda_random import job_key
from strads.models.kernels.lda_tables import DenseWords, make_prior
from strads.models.topics.grid import TokenGrid, tokens_of
from strads.models.topics.priors import Priors
from strads.models.topics.program import DocumentPart, count_block

Change = tuple[NDArray[np.int64], dict[int, NDArray[np.int32]]]  # of the totals, and of each block of words


class CopiedTopics(schmp.Program):
    """Collapsed Gibbs sampling with stale counts: changes of other workers arrive at synchronizations only (BSP).

    A worker comes to each block of words once in an iteration, in an order of its own, and takes its copy then: tables
    do not change between two synchronizations.
    """

    def __init__(
        self, workers: int, priors: Priors, n_words: int, tables: list[NDArray[np.int32]], times: int, seed: int
    ):
        self.workers, self.tables, self.times, self.seed = workers, tables, times, seed
        self.priors, self.n_words = priors, n_words
        self.prior = make_prior(priors.alpha, priors.beta, n_words)
        self.totals = sum(table.sum(0, dtype=np.int64) for table in tables)[: len(priors.alpha)]
        self.iteration = 0

    def schedule(self, iteration: int) -> schmp.Schedule:
        self.iteration = iteration
        rng = np.random.default_rng((self.seed, iteration))
        orders = [np.array_split(rng.permutation(len(self.tables)), self.times) for _ in range(self.workers)]
        return schmp.Schedule(
            tuple(
                schmp.Round(tuple(schmp.Job(p, parameters=orders[p][time]) for p in range(self.workers)))
                for time in range(self.times)
            )
        )

    def update(self, job: schmp.Job, data: DocumentPart, *shards: Any) -> Change:
        np.copyto(data.totals, self.totals)
        changes = {}
        for block in job.parameters:
            words = DenseWords(self.tables[block].copy())
            key = np.uint64(job_key(self.seed, self.iteration + 1, job.worker, block))
            rest = data.totals, self.prior, data.scratch, key, False
            sample_dense(data.tokens, block, data.documents, words, *rest)
            changes[int(block)] = words.counts - self.tables[block]
        return data.totals - self.totals, changes

    def aggregate(self, results: Sequence[Change]) -> None:
        self.totals = self.totals + sum(change for change, _ in results)
        for _, changes in results:
            for block, change in changes.items():
                self.tables[block] += change


def copied_topics(
    corpus: Corpus, priors: Priors, workers: int, *, times: int, blocks: int, seed: int
) -> schmp.StaticEngine:
    """Return an engine of `CopiedTopics` that starts from uniform topics."""
    grid, topics = TokenGrid.of(corpus, workers, blocks), len(priors.alpha)
    tables = [aligned_zeros((int(size), padded(topics)), np.int32) for size in np.diff(grid.block_bounds)]
    parts = []
    for worker in range(workers):
        tokens, lengths = tokens_of(corpus, grid, worker)
        part = DocumentPart.empty(tokens, lengths, topics, sparse=False)
        part.draw_uniformly(seed, worker)
        for block, table in enumerate(tables):
            count_block(tokens, block, DenseWords(table), topics)
        parts.append(part)
    return schmp.StaticEngine(CopiedTopics(workers, priors, corpus.n_words, tables, times, seed), parts)


def log_likelihood(engine: schmp.StaticEngine) -> float:
    """log p(words, topics | α, β) in nats, as for `LatentDirichletAllocation`."""
    documents = sum(engine.each_worker(_of_documents))
    return documents + engine.each_node(_of_words)[0]


def _of_documents(program: CopiedTopics, part: DocumentPart) -> float:
    return log_documents(part.documents, part.lengths, program.priors.alpha)


def _of_words(program: CopiedTopics) -> float:
    beta = program.priors.beta
    words = sum(log_words(DenseWords(table), beta, len(program.totals)) for table in program.tables)
    return words + log_topics(program.totals, beta, program.n_words)
