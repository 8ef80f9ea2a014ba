"""TransE as a SchMP program: blocks of entities meet in pairs, the facts between two blocks are trained there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from strads.models.kernels.aligned import aligned_copy
from strads.models.kernels.entity_blocks import exchange, group_facts
from strads.models.kernels.transe import Objective, train_bucket
from strads.models.kernels.translations import Rows
from strads.models.knowledge_graphs.blocks import EntityBlocks
from strads.rng.philox import mixed_key
from strads.schmp import Job, Program, Round, Schedule, paired, tournament

_TRAIN, _GROUP = 1, 2  # purposes of random numbers
# Step size of relations relative to that of entities: all workers' changes are added up, so smaller steps suffice.
_RELATION_RATE = np.float32(0.3)


class EntityBlock:
    """The rows of a block of entities, at addresses that whole vectors load from fast."""

    def __init__(self, rows: Rows):
        self.rows = rows

    @classmethod
    def of(cls, vectors: NDArray[np.float32], squares: NDArray[np.float32]) -> Self:
        """Copy rows to such addresses."""
        return cls(Rows(aligned_copy(vectors), squares))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return EntityBlock.of, (self.rows.vectors, self.rows.squares)


@dataclass(eq=False)
class RelationReplica:
    """The data of a worker: its own vectors of relations between two synchronizations.

    Attributes
    ----------
    rows : Rows
        Copied from the program's, with the worker's changes.
    seen
        Number of the synchronization that they come from.
    loss
        Sum of losses since.
    """

    rows: Rows
    seen: int = -1
    loss: float = 0.0


@dataclass(frozen=True)
class Settings:
    """How a program learns.

    Attributes
    ----------
    objective : Objective
        The loss, the norm and the constraint.
    negatives : int
        Number of others that each fact is compared with.
    learning_rate : float
        Step size of the first epoch.
    decay_epochs : int
        Number of epochs in which the step size decreases to 0; 0: it stays.
    seed : int
        Determines all random numbers: deals, orders of facts, and the others.
    epochs_a_deal : int
        Epochs after which entities are dealt to blocks anew.
    """

    objective: Objective
    negatives: int
    learning_rate: float
    decay_epochs: int
    seed: int
    epochs_a_deal: int = 5


class EntityTournament(Program):
    """Stochastic gradient descent over facts; the data are `RelationReplica`s, the shards `EntityBlock`s.

    In an epoch every two blocks meet once, in a job that trains on the facts between them; what replaces an end of a
    fact is drawn from these two blocks (Lerer et al. 2019, §3.1 and 4.1). Every few epochs entities are dealt anew,
    which moves rows between blocks that meet. Relations are few and in most jobs: each worker has a replica of them,
    and the replicas' changes are added up once an epoch.

    Parameters
    ----------
    triples : int32 ndarray of shape (n, 3)
        Head, relation, tail; every node has all.
    blocks : EntityBlocks
        Which entities are in which block; each deal changes it.
    relations : Rows
        Initial vectors of relations.
    tail_shares : float32 ndarray of shape (relations,)
        How likely it is that the tail is replaced rather than the head.
    settings : Settings

    Attributes
    ----------
    workers : int
        Half the number of blocks: as many pairs of blocks meet at a time.
    relations : Rows
        As of the last synchronization.
    synchronized : int
        Number of synchronizations of the relations so far.
    loss : float
        Sum over the facts of the iteration, each measured just before its step.
    """

    def __init__(
        self,
        triples: NDArray[np.int32],
        blocks: EntityBlocks,
        relations: Rows,
        tail_shares: NDArray[np.float32],
        settings: Settings,
    ):
        self.workers = len(blocks.sizes) // 2
        self.triples = triples
        self.blocks = blocks
        self.relations = relations
        self.tail_shares = tail_shares
        self.settings = settings
        self.synchronized = 0
        self.loss = 0.0
        self._epoch = 0
        self._step = np.float32(0.0)
        self._moves: NDArray[np.int32] | None = None
        self._facts = np.empty_like(triples)
        self._offsets = np.zeros(0, np.int64)

    def schedule(self, iteration: int) -> Schedule:
        """Let blocks meet; in some iterations, first deal the entities to new blocks."""
        settings = self.settings
        self._epoch = iteration
        self.loss = 0.0
        share = iteration / settings.decay_epochs if settings.decay_epochs else 0.0
        self._step = np.float32(settings.learning_rate * (1.0 - share))
        deals = iteration % settings.epochs_a_deal == 0
        if deals and iteration:
            self._moves = self.blocks.moves(settings.seed, iteration)
            self.blocks.deal_anew(self._moves)
        if deals:
            self._group()
        return _rounds(len(self.blocks.sizes), deals and iteration > 0)

    def _group(self) -> None:
        blocks = self.blocks
        key = mixed_key(np.uint64(self.settings.seed), np.uint64(_GROUP), np.uint64(self._epoch))
        self._offsets = np.zeros((len(blocks.sizes) - 1) * self.workers + 1, np.int64)
        positions = blocks.block_of, blocks.slot_of, blocks.sizes
        group_facts(self.triples, *positions, np.uint64(key), self._facts, self._offsets)

    def weight(self, job: Job) -> float:
        """Return the number of facts between the two blocks."""
        bit, group, _ = job.parameters
        return 0.0 if bit else float(self._offsets[group + 1] - self._offsets[group])

    def update(self, job: Job, data: RelationReplica, *shards: EntityBlock) -> tuple[Any, ...] | None:
        """Train on the facts between two blocks, or exchange rows; returns the worker's changes of relations."""
        first, second = (shard.rows for shard in shards)
        bit, group, is_last = job.parameters
        if bit:
            exchange(first, second, (self._moves & bit) != 0)
            return None
        if data.seen != self.synchronized:
            for own, common in zip(data.rows, self.relations, strict=True):
                np.copyto(own, common)
            data.seen, data.loss = self.synchronized, 0.0
        settings = self.settings
        facts = self._facts[self._offsets[group] : self._offsets[group + 1]]
        moment = self._epoch * (len(self._offsets) - 1) + group
        key = mixed_key(np.uint64(settings.seed), np.uint64(_TRAIN), np.uint64(moment))
        data.loss += train_bucket(
            facts,
            first,
            second,
            data.rows,
            self.tail_shares,
            settings.objective,
            settings.negatives,
            (self._step, _RELATION_RATE * self._step),
            np.uint64(key),
        )
        if not is_last:
            return None
        return *(own - common for own, common in zip(data.rows, self.relations, strict=True)), data.loss

    def aggregate(self, results: Sequence[tuple[Any, ...] | None]) -> None:
        """Add the workers' changes to the relations."""
        found = [result for result in results if result is not None]
        if not found:
            return
        vectors, squares, losses = zip(*found, strict=True)
        common = self.relations
        self.relations = Rows(common.vectors + np.sum(vectors, 0), common.squares + np.sum(squares, 0))
        self.loss += float(sum(losses))
        self.synchronized += 1


@lru_cache(maxsize=8)
def _rounds(blocks: int, deals: bool) -> Schedule:
    """Rounds of an iteration. A job's parameters are the bit of block numbers to exchange rows by, or 0 if it trains;
    the group of its facts; and whether the relations are synchronized after it.
    """
    rounds: list[Round] = []
    for each in tournament(blocks):
        number = len(rounds) * blocks // 2
        jobs = [Job(j.worker, j.shards, (0, number + j.worker, each.synchronize), j.sets) for j in each.jobs]
        rounds.append(Round(tuple(jobs), each.synchronize))
    bits = [1 << power for power in reversed(range(blocks.bit_length() - 1))] if deals else []
    before = [paired(blocks, bit, parameters=(bit, 0, False), synchronize=False) for bit in bits]
    return Schedule((*before, *rounds))
