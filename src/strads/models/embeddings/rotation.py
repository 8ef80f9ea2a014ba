"""Skip-gram as a SchMP program: word vectors stay with workers, blocks of context vectors rotate (thesis §4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.models.embeddings.settings import NOISE, Settings, rounds_of_segments, subsampled
from strads.models.kernels.alias_tables import AliasTable
from strads.models.kernels.aligned import aligned_copy
from strads.models.kernels.grouping import group_by_key
from strads.models.kernels.skip_gram import Scratch, scratch, train_pairs
from strads.models.kernels.word_windows import SENTENCE_END, find_pairs
from strads.schmp import Job, Program, Round, Schedule, static_rotation


class Rows:
    """Vectors of a block of words, aligned to cache lines wherever they are sent.

    Attributes
    ----------
    vectors : float32 ndarray of shape (rows, dimensions)
        Dimensions are padded to whole SIMD vectors.
    """

    def __init__(self, vectors: NDArray[np.float32]):
        self.vectors = vectors

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _aligned_rows, (self.vectors,)


def _aligned_rows(vectors: NDArray[np.float32]) -> Rows:
    return Rows(aligned_copy(vectors))


class Subsampled(NamedTuple):
    """A piece of text after subsampling; see `strads.models.kernels.word_windows`."""

    words: NDArray[np.int32]  # codes, with `SENTENCE_END` after each sentence
    reaches: NDArray[np.uint8]  # of the window around each word
    order: NDArray[np.int32]  # positions in `words`, block by block
    bounds: NDArray[np.int64]  # where each block's positions start in `order`; blocks + 1 of them


class Pairs(NamedTuple):
    """The pairs of a worker in a segment, sorted by the block of the output."""

    input_rows: NDArray[np.int32]  # of each pair, the row of the worker's word vectors
    output_rows: NDArray[np.int32]  # and the row of the context vectors, in the block of the output
    bounds: NDArray[np.int64]  # where each block's pairs start; blocks + 1 of them


@dataclass(eq=False)
class WorkerPart:
    """The data of a worker.

    Attributes
    ----------
    inputs : Rows
        Word vectors of its block.
    pieces : sequence of int32 ndarrays
        The piece of text of each segment that it subsamples.
    pairs : Pairs or None
        Of the current segment.
    scratch : Scratch or None
        Memory, from the first job on.
    """

    inputs: Rows
    pieces: Sequence[NDArray[np.int32]]
    pairs: Pairs | None = None
    scratch: Scratch | None = None


class SkipGramRotation(Program):
    """Skip-gram with negative sampling: the data are `WorkerPart`s, the shards `Rows` of context vectors.

    The text is processed in segments. In a segment each worker subsamples a piece; then all know what is left, and a
    worker finds the pairs whose input word is in its block. As the context vectors rotate, it takes the steps of its
    pairs whose output is in the block that it has, against negatives from that block. No two workers touch the same
    row: the result is that of a sequential pass over the pairs in this order.

    Parameters
    ----------
    workers : int
        P, also the number of blocks.
    bits : int
        See `WordBlocks`.
    keep : uint64 ndarray of shape (codes,)
        2³² times the probability that a token is kept.
    noise : list of AliasTable
        For each block.
    settings : Settings
        How to learn.

    Attributes
    ----------
    loss : float64 ndarray of shape (2,)
        Sum of the losses measured in the epoch, and their number.
    """

    def __init__(
        self, workers: int, bits: int, keep: NDArray[np.uint64], noise: Sequence[AliasTable], settings: Settings
    ):
        self.workers = workers
        self.bits, self.keep, self.noise, self.settings = bits, keep, noise, settings
        self.epoch = 0
        self.loss = np.zeros(2)
        self._text: Sequence[Subsampled] | None = None

    def schedule(self, iteration: int) -> Schedule:
        """Subsample, then rotate, in each segment."""
        self.epoch = iteration
        self.loss = np.zeros(2)
        return _segments(self.workers, self.settings.segments)

    def update(self, job: Job, data: WorkerPart, *shards: Rows) -> Any:
        """Subsample the worker's piece, or take the steps of its pairs with outputs in a block."""
        segment = job.parameters
        if not shards:
            data.pairs = None
            return self._subsample(data.pieces[segment], segment, job.worker)
        if data.scratch is None:
            data.scratch = scratch()
        if data.pairs is None:
            data.pairs = self._pairs_of(job.worker)
        (block,) = job.shards
        pairs = slice(*data.pairs.bounds[block : block + 2])
        turn = (block - job.worker) % self.workers
        return np.array(
            train_pairs(
                data.inputs.vectors,
                shards[0].vectors,
                data.pairs.input_rows[pairs],
                data.pairs.output_rows[pairs],
                self.noise[block],
                self.settings.negative,
                self.settings.key(NOISE, self.epoch, segment),
                np.uint64(job.worker * self.workers + block),
                self.settings.rates(self.epoch, segment, turn / self.workers, (turn + 1) / self.workers),
                data.scratch,
            )
        )

    def _subsample(self, piece: NDArray[np.int32], segment: int, worker: int) -> Subsampled:
        words, reaches = subsampled(piece, self.keep, self.settings, self.epoch, segment, np.uint64(worker))
        positions = np.flatnonzero(words != SENTENCE_END).astype(np.int32)
        order, bounds = np.empty_like(positions), np.zeros(self.workers + 1, np.int64)
        group_by_key(words[positions] >> self.bits, positions, None, bounds, order, None)
        return Subsampled(words, reaches, order, bounds)

    def _pairs_of(self, worker: int) -> Pairs:
        assert self._text is not None, "the segment has been subsampled"
        positions = [piece.order[slice(*piece.bounds[worker : worker + 2])] for piece in self._text]
        most = 2 * self.settings.window * sum(map(len, positions))
        inputs, outputs = np.empty(most, np.int32), np.empty(most, np.int32)
        count = 0
        for piece, own in zip(self._text, positions, strict=True):
            window = self.settings.window
            count += find_pairs(piece.words, piece.reaches, own, window, inputs[count:], outputs[count:])
        rows = np.empty(count, np.int32), np.empty(count, np.int32)
        inputs, outputs, mask = inputs[:count], outputs[:count], (1 << self.bits) - 1
        bounds = np.zeros(self.workers + 1, np.int64)
        group_by_key(outputs >> self.bits, inputs & mask, outputs & mask, bounds, *rows)
        return Pairs(*rows, bounds)

    def aggregate(self, results: Sequence[Any]) -> None:
        """Keep what is left of the text for the rotation; after it, sum up the losses."""
        if self._text is None:
            self._text = results
        else:
            self._text = None
            self.loss = self.loss + np.sum(results, 0)


@lru_cache(maxsize=4)
def _segments(workers: int, segments: int) -> Schedule:
    subsampling = Round(tuple(Job(worker) for worker in range(workers)))
    return rounds_of_segments([subsampling, *static_rotation(workers)], segments)
