"""Indices that exist because of the conditions under which the body uses them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numba.core import ir

from strads.bodies.analysis.dataflow import Dataflow
from strads.bodies.analysis.effects import AnyAccess, Effects
from strads.bodies.analysis.inlining import indexed, indices_of
from strads.bodies.analysis.memory import limit_of
from strads.bodies.analysis.ranges import Ranges
from strads.bodies.analysis.values import Fits, Size, Value, of_contents


def with_ranges(flow: Dataflow) -> Effects:
    """Return the effects of a body, with what `Ranges` proves of indices of which nothing is known otherwise."""
    guarded = _Guarded(flow)
    accesses = {guarded.proved(a, 0, 1) if a.is_row else a for a in flow.effects.accesses}
    inner = {guarded.proved(i, 0 if i.table is None else 1, None) if i.is_index else i for i in flow.effects.inner}
    return replace(flow.effects, accesses=accesses, inner=inner)


def natural_indices(flow: Dataflow) -> set[str]:
    """Return the variables that are not negative wherever they are used as indices."""
    ranges = Ranges(flow.blocks, flow.cfg, flow.values)
    used = [(v.name, label) for label, block in flow.blocks.items() for s in block.body for v in indices_of(s)]
    negative = {name for name, label in used if not ranges.is_natural(name, label)}
    return {name for name, _ in used} - negative


class _Guarded:
    """The indices of one body."""

    def __init__(self, flow: Dataflow):
        self._flow = flow
        self._ranges = Ranges(flow.blocks, flow.cfg, flow.values)
        self._tuples = {
            statement.target.name: statement.value.items
            for block in flow.blocks.values()
            for statement in block.find_insts(ir.Assign)
            if isinstance(statement.value, ir.Expr) and statement.value.op == "build_tuple"
        }

    def proved(self, place: AnyAccess, first: int, end: int | None) -> AnyAccess:
        """Return an access or decision with the sizes that prove it, for the axes of the index from `first` on."""
        if place.fits is not None and not _by_contents(place.fits):
            return place
        label, number = place.place
        holder, container = indexed(self._flow.blocks[label].body[number])
        if holder is None:
            return place
        items = self._tuples.get(self._ranges.root(holder.index.name), [holder.index])
        fits = self._fits(self._flow.final(container.name), items, range(len(items))[first:end], label)
        is_better = fits is not None and (place.fits is None or not _by_contents(fits))
        return replace(place, fits=fits) if is_better else place

    def _fits(self, container: Value, items: Sequence[Any], axes: Sequence[int], label: int) -> Fits | None:
        found = set[tuple[Size, Size]]()
        for axis in axes:
            item, size = self._flow.final(items[axis].name), self._flow.memory.size(container, axis)
            if size is None or item.is_memory or item.is_slice or item.items is not None:
                return None
            fits, limit = self._ranges.fits(items[axis].name, label, size), limit_of(item)
            if fits is not None:
                found |= fits
            elif limit is not None:
                found.add((limit, size))
            else:
                return None
        return frozenset(pair for pair in found if pair[0] != pair[1])


def _by_contents(fits: Fits) -> bool:
    """Whether the contents of tables decide whether sizes fit."""
    return any(of_contents(own) is not None for own, _ in fits)
