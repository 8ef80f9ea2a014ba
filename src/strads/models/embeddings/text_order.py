"""Word2Vec in the order of the text: one worker is the sequential program, several are Hogwild (Niu et al. 2011)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from strads.models.embeddings.blocks import cut_text
from strads.models.embeddings.settings import NOISE, Settings, rounds_of_segments, subsampled
from strads.models.kernels.alias_tables import AliasTable
from strads.models.kernels.continuous_bag_of_words import train_windows, window_memory
from strads.models.kernels.skip_gram import scratch, train_pairs
from strads.models.kernels.word_windows import find_pairs
from strads.schmp import Job, Program, Round, Schedule

_CHUNK = 65_536  # tokens whose pairs are in memory at a time
Steps = tuple[np.uint64, np.uint64, tuple[np.float32, np.float32]]  # key and stream of the negatives, learning rates


@dataclass(eq=False)
class SharedTables:
    """The data of a worker. All workers share the tables; with several, they race for rows.

    Attributes
    ----------
    inputs, outputs : float32 ndarrays of shape (words, dimensions)
        Word vectors and context vectors.
    pieces : sequence of int32 ndarrays
        The worker's piece of text in each segment, in word numbers.
    """

    inputs: NDArray[np.float32]
    outputs: NDArray[np.float32]
    pieces: Sequence[NDArray[np.int32]]


class TextOrder(Program):
    """Continuous bag of words or skip-gram, each worker in the order of its text; the data are `SharedTables`.

    Parameters
    ----------
    workers : int
        How many race for rows; 1 for the sequential program.
    skip_gram : bool
        Whether to learn by skip-gram, rather than by continuous bag of words.
    keep : uint64 ndarray of shape (words,)
        2³² times the probability that a token is kept.
    noise : AliasTable
        Draws the numbers of words that are negative samples.
    settings : Settings
        How to learn.

    Attributes
    ----------
    loss : float64 ndarray of shape (2,)
        Sum of the losses measured in the epoch, and their number.
    """

    def __init__(
        self, workers: int, *, skip_gram: bool, keep: NDArray[np.uint64], noise: AliasTable, settings: Settings
    ):
        self.workers = workers
        self.skip_gram, self.keep, self.noise, self.settings = skip_gram, keep, noise, settings
        self.epoch = 0
        self.loss = np.zeros(2)

    def schedule(self, iteration: int) -> Schedule:
        """One segment after the other."""
        self.epoch = iteration
        self.loss = np.zeros(2)
        return _segments(self.workers, self.settings.segments)

    def update(self, job: Job, data: SharedTables) -> NDArray[np.float64]:
        """Process the worker's piece of a segment."""
        segment, piece = job.parameters, data.pieces[job.parameters]
        loss = np.zeros(2)
        chunks = max(1, -(-len(piece) // _CHUNK))
        train = self._train_pairs if self.skip_gram else self._train_windows
        for number, chunk in enumerate(cut_text(piece, chunks)):
            rates = self.settings.rates(self.epoch, segment, number / chunks, (number + 1) / chunks)
            stream = np.uint64(job.worker << 32 | number)
            words, reaches = subsampled(chunk, self.keep, self.settings, self.epoch, segment, stream)
            loss += train(data, words, reaches, (self.settings.key(NOISE, self.epoch, segment), stream, rates))
        return loss

    def _train_pairs(
        self, data: SharedTables, words: NDArray[np.int32], reaches: NDArray[np.uint8], steps: Steps
    ) -> tuple[float, int]:
        window, positions = self.settings.window, np.flatnonzero(words >= 0).astype(np.int32)
        most = 2 * window * len(positions)
        rows = np.empty(most, np.int32), np.empty(most, np.int32)
        count = find_pairs(words, reaches, positions, window, *rows)
        pairs = rows[0][:count], rows[1][:count]
        tables = data.inputs, data.outputs
        found: tuple[float, int] = train_pairs(*tables, *pairs, self.noise, self.settings.negative, *steps, scratch())
        return found

    def _train_windows(
        self, data: SharedTables, words: NDArray[np.int32], reaches: NDArray[np.uint8], steps: Steps
    ) -> tuple[float, int]:
        negative, mean = self.settings.negative, self.settings.mean
        memory = window_memory(data.inputs.shape[1], negative)
        tables = data.inputs, data.outputs
        found: tuple[float, int] = train_windows(*tables, words, reaches, self.noise, negative, mean, *steps, memory)
        return found

    def aggregate(self, results: Sequence[NDArray[np.float64] | None]) -> None:
        """Sum up the losses."""
        self.loss = self.loss + sum(result for result in results if result is not None)


@lru_cache(maxsize=4)
def _segments(workers: int, segments: int) -> Schedule:
    return rounds_of_segments([Round(tuple(Job(worker) for worker in range(workers)))], segments)
