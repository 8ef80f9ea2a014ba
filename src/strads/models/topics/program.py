"""LDA as a SchMP program: documents stay with workers, blocks of the word-topic table rotate (thesis algorithm 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.dds.ragged import offsets_of
from strads.models.kernels.aligned import aligned_copy
from strads.models.kernels.lda_counts import add_to_words, count_documents, random_topics
from strads.models.kernels.lda_dense_sampler import DenseScratch, dense_scratch, sample_dense
from strads.models.kernels.lda_random import job_key
from strads.models.kernels.lda_sparse_sampler import SparseScratch, sample_sparse, sparse_scratch
from strads.models.kernels.lda_tables import (
    DenseWords,
    Documents,
    Prior,
    SparseWords,
    Tokens,
    Words,
    empty_documents,
    empty_words,
    make_prior,
    pack_words,
    unpack_words,
)
from strads.models.topics.priors import Priors
from strads.schmp import Job, Program, Schedule, static_rotation


@dataclass(eq=False)
class DocumentPart:
    """The data of a worker: its tokens, its documents' counts, and its own view of the topic totals.

    Attributes
    ----------
    tokens, documents
        In the samplers' format.
    lengths : int64 ndarray of shape (documents,)
        Number of tokens of each document.
    totals : int64 ndarray of shape (K,)
        s̃ᵖ: n_k as of the last synchronization, plus the worker's own changes since.
    scratch
        Memory of the sampler, for one job at a time.
    seen
        Number of the synchronization that `totals` comes from.
    """

    tokens: Tokens
    documents: Documents
    lengths: NDArray[np.int64]
    totals: NDArray[np.int64]
    scratch: DenseScratch | SparseScratch
    seen: int = -1

    @classmethod
    def empty(cls, tokens: Tokens, lengths: NDArray[np.int64], topics: int, *, sparse: bool) -> Self:
        """Create tables of documents whose tokens have no topics yet."""
        scratch = sparse_scratch(topics) if sparse else dense_scratch(topics)
        documents = empty_documents(lengths, topics, sparse)
        return cls(tokens, documents, lengths, np.zeros(topics, np.int64), scratch)

    def draw_uniformly(self, seed: int, worker: int) -> None:
        """Assign a uniformly drawn topic to every token, and count them by document."""
        key = np.uint64(job_key(seed, 0, worker, 0))
        random_topics(self.tokens, 0, len(self.tokens.topics), len(self.totals), key)
        count_documents(self.tokens, self.documents)


class WordBlock:
    """A block of the word-topic table. Only the used part is sent.

    Attributes
    ----------
    words
        The counts, in the samplers' format.
    """

    def __init__(self, words: Words):
        self.words = words

    @classmethod
    def of(cls, rows: scipy.sparse.csr_array, frequencies: NDArray[np.int64], *, sparse: bool) -> Self:
        """Create rows with these counts, n_wk, and room for further tokens with these frequencies."""
        topics = rows.shape[1]
        sizes = np.diff(rows.indptr).astype(np.int32)
        if not sparse:
            words = empty_words(frequencies, topics, sparse)
            assert isinstance(words, DenseWords)
            words.counts[:, :topics] = rows.toarray()
            return cls(words)
        offsets = offsets_of(np.minimum(frequencies + sizes, topics))
        return cls(unpack_words(offsets, sizes, rows.indices.astype(np.uint16), rows.data.astype(np.int32)))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if isinstance(self.words, SparseWords):
            places = np.diff(self.words.offsets).astype(np.int32)
            return _sparse_block, (places, *pack_words(self.words))
        return _dense_block, (self.words.counts,)


def _dense_block(counts: NDArray[np.int32]) -> WordBlock:
    return WordBlock(DenseWords(aligned_copy(counts)))


def _sparse_block(places: NDArray[np.int32], *packed: NDArray[Any]) -> WordBlock:
    return WordBlock(unpack_words(offsets_of(places), *packed))


def count_block(tokens: Tokens, block: int, words: Words, topics: int) -> NDArray[np.int64]:
    """Add a worker's tokens of one block to the block's counts; returns the number of tokens of each topic."""
    add_to_words(tokens, block, words, topics)
    runs = tokens.block_runs[block : block + 2]
    first, last = tokens.run_offsets[runs]
    return np.bincount(tokens.topics[first:last], minlength=topics).astype(np.int64)


class WordRotation(Program):
    """Collapsed Gibbs sampling: the data are `DocumentPart`s, the shards `WordBlock`s, one for each worker.

    The first iteration draws the initial topic of every token given the previous ones; with `random_start` the tokens
    already have topics, and it counts them.

    Parameters
    ----------
    workers : int
        P, also the number of blocks of words.
    n_words : int
        V.
    n_tokens : int
        M, of the whole corpus.
    synchronizations : int
        How often per iteration the workers' views of the totals are synchronized.
    sparse : bool
        Whether to use the sparse sampler.
    seed : int
        Determines all draws.
    random_start : bool
        Whether the tokens have a topic from the start.
    totals : int64 ndarray of shape (K,)
        n_k before the first token.

    Attributes
    ----------
    totals : int64 ndarray of shape (K,)
        n_k as of the last synchronization.
    s_errors : list of float
        s-error at each synchronization of the iteration (supplement eq. 1): mean over workers of ‖s̃ᵖ − s‖₁ / M.
    """

    def __init__(
        self,
        workers: int,
        priors: Priors,
        n_words: int,
        n_tokens: int,
        *,
        synchronizations: int,
        sparse: bool,
        seed: int,
        random_start: bool,
        totals: NDArray[np.int64],
    ):
        self.workers = workers
        self.n_words = n_words
        self.n_tokens = n_tokens
        self.synchronizations = synchronizations
        self.sparse = sparse
        self.seed = seed
        self.random_start = random_start
        self.totals = totals
        self.iteration = 0
        self.synchronized = 0
        self.s_errors: list[float] = []
        self.set_priors(priors)

    def set_priors(self, priors: Priors) -> None:
        """Use other priors from now on."""
        self.priors = priors
        self._prior: Prior = make_prior(priors.alpha, priors.beta, self.n_words)

    def schedule(self, iteration: int) -> Schedule:
        """Rotate the blocks of words over the workers."""
        self.iteration = iteration
        self.s_errors = []
        return static_rotation(self.workers, synchronizations=self.synchronizations)

    def update(self, job: Job, data: DocumentPart, *shards: WordBlock) -> NDArray[np.int64]:
        """Draw the topics of the worker's tokens with words in the block; returns the change of the totals."""
        (block,) = job.shards
        if data.seen != self.synchronized:
            np.copyto(data.totals, self.totals)
            data.seen = self.synchronized
        before = data.totals.copy()
        key = np.uint64(job_key(self.seed, self.iteration, job.worker, block))
        words, is_first = shards[0].words, self.iteration == 0
        if is_first and self.random_start:
            data.totals += count_block(data.tokens, block, words, len(data.totals))
        else:
            sample = sample_sparse if self.sparse else sample_dense
            rest = data.totals, self._prior, data.scratch, key, is_first
            sample(data.tokens, block, data.documents, words, *rest)
        return data.totals - before

    def aggregate(self, results: Sequence[NDArray[np.int64] | None]) -> None:
        """Synchronize the workers' views of the totals."""
        changes = np.stack([np.zeros_like(self.totals) if change is None else change for change in results])
        change = changes.sum(0)
        self.s_errors.append(float(np.abs(change - changes).sum() / (self.workers * self.n_tokens)))
        self.totals = self.totals + change
        self.synchronized += 1
