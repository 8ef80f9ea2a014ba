"""A training run of TransE on the Static Engine, as the epochs of an estimator."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strads.models._iterative import EngineSolver, Epoch
from strads.models.kernels.aligned import padded_rows
from strads.models.kernels.translations import FREE, Rows, constrain_all
from strads.models.knowledge_graphs.blocks import EntityBlocks, count_blocks
from strads.models.knowledge_graphs.program import EntityBlock, EntityTournament, RelationReplica, Settings
from strads.partition import distinct_pairs
from strads.schmp import StaticEngine

_FIRST_SQUARES = np.float32(1e-6)  # of AdaGrad: small, so that the first steps are as large as later ones
_VECTORS = 1  # purpose of random numbers


class Translations(NamedTuple):
    """What was learnt; rows are padded as in `Rows`.

    Attributes
    ----------
    entities : float32 ndarray of shape (entities, width)
    relations : float32 ndarray of shape (relations, width)
    """

    entities: NDArray[np.float32]
    relations: NDArray[np.float32]


def initial_vectors(n_entities: int, n_relations: int, columns: int, margin: float, seed: int) -> Translations:
    """Draw all components uniformly from ±(γ + 2) / n_components (Sun et al. 2019), so that distances exceed γ."""
    rng = np.random.default_rng((seed, _VECTORS))
    most = (margin + 2) / columns
    return Translations(*(padded_rows(rng.uniform(-most, most, (rows, columns))) for rows in (n_entities, n_relations)))


class TranslationSolver(EngineSolver):
    """Passes over the triples, wherever the blocks of entities are.

    Parameters
    ----------
    triples : int32 ndarray of shape (n, 3)
        Head, relation, tail.
    start : Translations
        Initial vectors.
    tail_shares : float32 ndarray of shape (relations,)
        How likely it is that the tail is replaced rather than the head.
    threads : int or None
        Threads of a single process.
    """

    def __init__(
        self,
        triples: NDArray[np.int32],
        start: Translations,
        tail_shares: NDArray[np.float32],
        settings: Settings,
        threads: int | None,
    ):
        self._count, self._start = len(triples), start
        entities = start.entities.copy()
        constraint = settings.objective.constraint
        if constraint != FREE:
            constrain_all(entities, constraint)
        frequencies = np.bincount(triples[:, [0, 2]].ravel(), minlength=len(entities))
        number = count_blocks(len(triples), len(entities))
        blocks = EntityBlocks.deal(frequencies, number, settings.seed)
        program = EntityTournament(triples, blocks, _fresh(start.relations.copy()), tail_shares, settings)
        data = [RelationReplica(_fresh(start.relations.copy())) for _ in range(program.workers)]
        shards = [EntityBlock.of(*_fresh(entities[blocks.members(block)])) for block in range(number)]
        self._engine = StaticEngine(program, data, [shards], threads=threads)

    def run_epoch(self, number: int) -> Epoch:
        """Train on every triple once; the objective is the mean loss of a triple, just before its step."""
        nodes = self._engine.iterate().nodes
        return Epoch(
            number * self._count, self._engine.each_node(lambda program: program.loss)[0] / self._count, nodes=nodes
        )

    def learnt(self) -> Translations:
        """Return the vectors, gathered from the nodes."""
        relations, blocks = self._engine.each_node(lambda program: (program.relations.vectors, program.blocks))[0]
        entities = np.empty_like(self._start.entities)
        for block, vectors in enumerate(self._engine.each_shard(lambda program, block: block.rows.vectors)):
            entities[blocks.members(block)] = vectors
        return Translations(entities, relations)


def _fresh(vectors: NDArray[np.float32]) -> Rows:
    return Rows(vectors, np.full(len(vectors), _FIRST_SQUARES, np.float32))


def tail_shares(triples: NDArray[np.int32], relations: int) -> NDArray[np.float32]:
    """How likely the tail is replaced by "bernoulli" (Wang et al. 2014, §3.2): hpt / (tph + hpt).

    tph is the mean number of tails of a head, hpt of heads of a tail. Relations without triples have ½.
    """
    shares = np.full(relations, 0.5, np.float32)
    entities = int(triples.max(initial=0)) + 1
    heads, tails = (distinct_pairs(triples[:, 1], triples[:, column], entities) for column in (0, 2))
    # With n triples, tph = n / number of heads and hpt = n / number of tails.
    n_heads, n_tails = (np.bincount(pairs[:, 0], minlength=relations) for pairs in (heads, tails))
    present = n_heads > 0
    shares[present] = n_heads[present] / (n_heads[present] + n_tails[present])
    return shares
