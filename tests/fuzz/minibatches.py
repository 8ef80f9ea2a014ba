"""sync_for on both sides: under BSP the rounds of all workers can be followed by hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import strads

from .arguments import hinted
from .runner import Parallel, Plain


@dataclass
class Ran:
    """What the runner asks a loop for; minibatches have no serial order."""

    order: np.ndarray
    strategy: str = "sync_for"
    plan: None = None  # rows within reach are drawn by `async_for` only


class Batch:
    """The rows of a minibatch."""

    def __init__(self, data: Any, rows: range):
        self.data, self.rows = data, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, n: int) -> Any:
        row = self.rows[n]
        return row if isinstance(self.data, int) else self.data[row]


class ParallelMinibatches(Parallel):
    """strads."""

    def call(self, indices: Any) -> Ran:
        for name, aggregation in self.case.aggregations.items():
            strads.register_aggregation(self.tables[name], aggregation)
        data, *arguments = (hinted(a, self.tables[a.name]) for a in self.case.args)
        strads.sync_for(data, self.body, *arguments, **self.case.options)
        wanted = range(indices) if isinstance(indices, int) else indices
        return Ran(np.array([int(k) for k in wanted], np.int64))


class PlainMinibatches(Plain):
    """Round by round: all workers start from the same tables, and their changes are added or averaged."""

    def run(self, order: Any, tables: dict[str, Any] | None = None, plan: None = None) -> None:
        tables = self.tables if tables is None else tables
        for batches in self._rounds(tables["data"]):
            self._round(batches, tables)

    def _rounds(self, data: Any) -> list[list[range]]:
        rows = data if isinstance(data, int) else len(data)
        size, seed = self.case.options["batch_size"], self.case.options.get("seed")
        workers = self.case.options["workers"]
        batches = [range(start, min(start + size, rows)) for start in range(0, rows, size)]
        bounds = [len(batches) * worker // workers for worker in range(workers + 1)]
        shares = []
        for worker in range(workers):
            own = np.arange(bounds[worker], bounds[worker + 1])
            if seed is not None:
                own = np.random.default_rng([seed, worker]).permutation(own)
            shares.append([batches[n] for n in own])
        return [[share[n] for share in shares if n < len(share)] for n in range(max(map(len, shares)))]

    def _round(self, batches: list[range], tables: dict[str, Any]) -> None:
        written = list(self.case.aggregations)
        before = {name: tables[name].data.copy() for name in written}
        changes: dict[str, list[np.ndarray]] = {name: [] for name in written}
        for rows in batches:
            for name in written:
                tables[name].data[...] = before[name]
            data, *arguments = (tables[a.name] for a in self.case.args)
            self.body(Batch(data, rows), *arguments)
            for name in written:
                changes[name].append(tables[name].data - before[name])
        for name in written:
            total = sum(changes[name])
            if self.case.aggregations[name] == "average":
                total = total / len(batches)
            tables[name].data[...] = before[name] + total
