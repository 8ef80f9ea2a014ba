"""One training run of Word2Vec on the Static Engine: from a text to vectors."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.models._iterative import EngineSolver, Epoch
from strads.models.corpora.sentences import Sentences
from strads.models.embeddings.blocks import WordBlocks, cut_text
from strads.models.embeddings.rotation import Rows, SkipGramRotation, WorkerPart
from strads.models.embeddings.settings import Settings
from strads.models.embeddings.text_order import SharedTables, TextOrder
from strads.models.embeddings.vocabulary import WordCounts, numbers_of
from strads.models.kernels.alias_tables import alias_table
from strads.schmp import Program, StaticEngine

WORKERS = 16  # most workers by default: independent of the threads, and so is the result
MIN_WORDS = 128  # of a block: with fewer, negatives are too often the context itself
# Places for the pairs of a segment: more take memory, and pairs that are far apart in the text come close in time; with
# fewer, blocks of vectors travel more often.
_PAIR_PLACES = 10_000_000


class Vectors(NamedTuple):
    """The two tables of Word2Vec, of shape (words, d)."""

    inputs: NDArray[np.float32]  # word vectors
    outputs: NDArray[np.float32]  # context vectors


@dataclass(frozen=True)
class Text:
    """A text, its words, and the distributions over them.

    Attributes
    ----------
    sentences : Sentences
        The text, in word numbers of its own.
    words : WordCounts
        Words with a vector.
    sample : float
        See `WordCounts.keep_probabilities`.
    ns_exponent : float
        Negative samples are drawn in proportion to counts to this power.
    """

    sentences: Sentences
    words: WordCounts
    sample: float
    ns_exponent: float

    def encode(self, blocks: WordBlocks) -> NDArray[np.int32]:
        """The text in codes."""
        return blocks.encode(self.sentences, numbers_of(self.words, self.sentences))

    def keep(self, blocks: WordBlocks) -> NDArray[np.uint64]:
        """2³² times the probability that a token is kept, by code."""
        probabilities = blocks.by_code(self.words.keep_probabilities(self.sample))
        return np.ceil(probabilities * 2.0**32).astype(np.uint64)

    def noise(self, blocks: WordBlocks) -> NDArray[np.float64]:
        """Weights of words as negative samples, (blocks, rows)."""
        return blocks.by_block(self.words.counts.astype(np.float64) ** self.ns_exponent)


class Word2VecSolver(EngineSolver):
    """A training run; a pass over the text is an epoch.

    Parameters
    ----------
    start : Vectors
        Where to start from; not changed.
    settings : Settings
        Without the number of segments, which is chosen here.
    workers : int, optional
        Logical workers; by default 16, fewer for less than 128 · 16 words.
    threads : int, optional
        Threads of a single process.
    """

    def __init__(
        self,
        text: Text,
        start: Vectors,
        settings: dict[str, Any],
        *,
        skip_gram: bool,
        deterministic: bool,
        workers: int | None,
        threads: int | None,
    ):
        self._dimensions = start.inputs.shape[1]
        self._rotates = skip_gram and deterministic
        count = workers or max(1, min(WORKERS, len(text.words) // MIN_WORDS))
        count = min(count, len(text.words)) if self._rotates else 1 if deterministic else workers or WORKERS
        self._blocks = blocks = WordBlocks.of(len(text.words), count if self._rotates else 1, settings["seed"])
        encoded = text.encode(blocks)
        self._samples = int((encoded >= 0).sum())
        segments = max(1, len(encoded) * 2 * settings["window"] // _PAIR_PLACES)
        pieces = cut_text(encoded, segments * count)
        of_worker = [pieces[worker::count] for worker in range(count)]
        full = Settings(**settings, segments=segments)
        tables = blocks.table(start.inputs), blocks.table(start.outputs)
        noise = [alias_table(weights) for weights in text.noise(blocks)]
        keep = text.keep(blocks)
        if self._rotates:
            program = SkipGramRotation(count, blocks.bits, keep, noise, full)
            parts = [WorkerPart(Rows(tables[0][worker]), of_worker[worker]) for worker in range(count)]
            shards = [[Rows(table) for table in tables[1]]]
            self._engine = StaticEngine(program, parts, shards, threads=threads)
        else:
            in_order = TextOrder(count, skip_gram=skip_gram, keep=keep, noise=noise[0], settings=full)
            shared = [SharedTables(tables[0][0], tables[1][0], own) for own in of_worker]
            self._engine = StaticEngine(in_order, shared, threads=threads)

    def run_epoch(self, number: int) -> Epoch:
        """Pass over the text; the objective is the mean loss of a pair (or window) and its negatives, on a sample."""
        nodes = self._engine.iterate().nodes
        loss, measured = self._engine.each_node(lambda program: program.loss)[0]
        is_finite = all(self._engine.each_worker(_is_finite))  # the loss alone is: it is bounded
        objective = float(loss / max(measured, 1)) if is_finite else math.nan
        return Epoch(number * self._samples, objective, nodes=nodes)

    def learnt(self) -> Vectors:
        """Return the vectors, gathered from the nodes."""
        if self._rotates:
            inputs = self._engine.each_worker(lambda program, part: part.inputs.vectors)
            outputs = self._engine.each_shard(lambda program, rows: rows.vectors)
        else:
            found = self._engine.each_worker(lambda program, tables: (tables.inputs, tables.outputs))[0]
            inputs, outputs = ([table] for table in found)
        return Vectors(*(self._blocks.vectors(np.stack(each), self._dimensions) for each in (inputs, outputs)))


def _is_finite(program: Program, part: WorkerPart | SharedTables) -> bool:
    vectors = part.inputs.vectors if isinstance(part, WorkerPart) else part.inputs
    return bool(np.isfinite(vectors.sum()))
