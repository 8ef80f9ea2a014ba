"""One call of a loop: the keys of what determines its preparation, and what is sent of it to the nodes."""

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.bodies.functions import fingerprint
from strads.cluster import Cluster
from strads.dds import Accumulator, Readonly, Relaxed
from strads.dds.arguments import map_of, overlaps, table_of
from strads.loops.cache_keys import content_key, form_key, kind_key
from strads.loops.indices import LoopIndices
from strads.loops.on_nodes.specs import LoopFacts, LoopOptions, SumRef, TableRef
from strads.rng.numbers import RandomNumbers
from strads.schedule.strategies.dealing import DEAL_EVERY, Deal


@dataclass
class Call:
    """One call of a loop."""

    cluster: Cluster
    body: Callable[..., Any]
    arguments: tuple[Any, ...]
    indices: LoopIndices
    options: LoopOptions
    record_order: bool
    remembers: bool  # whether what happened in earlier calls affects the order
    start: float  # when it began

    def __post_init__(self) -> None:
        self.overlaps = overlaps(self.arguments)
        body = fingerprint(self.body)
        self.key = body, self.options, tuple(map(kind_key, self.arguments)), self.overlaps
        self.form = body, self.options, tuple(map(form_key, self.arguments))
        self.deal = _deal_of(self.arguments)
        self._digests: dict[int, Hashable] = {}

    def contents(self, positions: Collection[int]) -> dict[int, Hashable]:
        """Return the content keys of the arguments at some positions; arrays are digested once a call."""
        arrays = [p for p in positions if isinstance(self.arguments[p], np.ndarray) and p not in self._digests]
        self._digests.update((p, content_key(self.arguments[p])) for p in arrays)
        return {p: self._digests.get(p) or content_key(self.arguments[p]) for p in sorted(positions)}

    def deciding(self, facts: LoopFacts) -> dict[int, Hashable]:
        """Return the content keys of what determines the rows of a prepared loop, by position."""
        of_columns = {p: content_key(self.arguments[p], facts.written_columns[p]) for p in facts.deciding_columns}
        return self.contents(facts.deciding) | dict(sorted(of_columns.items()))

    def are_scalars(self, positions: Collection[int]) -> bool:
        """Whether the arguments at some positions are all numbers, or tuples of them."""
        return all(isinstance(self.arguments[p], int | float | tuple | np.generic) for p in positions)

    def references(self, bounds: dict[int, NDArray[np.int64]]) -> tuple[Any, ...]:
        """Return the arguments as they are sent, of tables laid out by these bounds."""
        return tuple(reference(self.cluster, a, bounds.get(position)) for position, a in enumerate(self.arguments))


def _deal_of(arguments: tuple[Any, ...]) -> Deal:
    """Return the deal that a call uses: it changes every few calls, with the random numbers."""
    numbers = next((argument for argument in arguments if isinstance(argument, RandomNumbers)), None)
    return () if numbers is None else (numbers.seed, numbers.calls // DEAL_EVERY)


def reference(cluster: Cluster, argument: Any, bounds: Any = None) -> Any:
    """Return the reference to an argument in messages to the nodes; the argument itself in a single process."""
    table, keyed = table_of(argument), map_of(argument)
    if cluster.is_local:
        return argument
    if table is not None:
        name = table.distribute(cluster, bounds)
        index = None if keyed is None else keyed.distribute_index(cluster)
        return TableRef(name, isinstance(argument, Relaxed), isinstance(argument, Readonly), index)
    if isinstance(argument, Accumulator):
        return SumRef(0.0 if isinstance(argument.value, float) else 0)
    return argument
