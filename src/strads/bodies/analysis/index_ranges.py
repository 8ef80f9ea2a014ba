"""Proves indices in bounds by the conditions under which the body uses them, or by the range of what it stores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numba.core import ir

from strads.bodies.analysis.dataflow import Dataflow
from strads.bodies.analysis.effects import Access, AnyAccess, Effects, FallibleOperation
from strads.bodies.analysis.inlining import indexed, indices_of
from strads.bodies.analysis.own_rows import OwnRows
from strads.bodies.analysis.ranges import Ranges
from strads.bodies.analysis.values import Fits, Given, Size, Value, limit_of, of_contents


def with_ranges(flow: Dataflow, *, adds_up: bool) -> Effects:
    """Return the effects of a body, with what `Ranges` proves of indices of which nothing is known otherwise.

    Parameters
    ----------
    flow
        The analysed body. A proof may rely on the contents of a table that the body writes only if every value it
        stores stays in the same range: then what holds before the loop holds throughout.
    adds_up
        Whether changes of copies of the written tables are added up, so that nothing is known of the sums.
    """
    prover = _IndexProver(flow, adds_up)
    accesses = {prover.located(prover.proved(a, 0, 1)) if a.is_row else a for a in flow.effects.accesses}
    fallible = {prover.proved(i, 0 if i.table is None else 1, None) if i.is_index else i for i in flow.effects.fallible}
    return replace(
        flow.effects, accesses=accesses, fallible=fallible, lasting=prover.lasting_pairs([*accesses, *fallible])
    )


def nonnegative_indices(flow: Dataflow) -> dict[str, frozenset[Given]]:
    """Return the variables that are not negative wherever they are used as indices, if these numbers are not."""
    ranges, found = _ranges(flow), dict[str, frozenset[Given] | None]()
    for label, block in flow.blocks.items():
        for name in (variable.name for statement in block.body for variable in indices_of(statement)):
            given, known = ranges.nonnegative(name, label), found.get(name, frozenset())
            found[name] = None if given is None or known is None else given | known
    return {name: given for name, given in found.items() if given is not None}


class _IndexProver:
    """The indices of one body."""

    def __init__(self, flow: Dataflow, adds_up: bool):
        self._flow = flow
        kinds, effects = flow.memory.kinds, flow.effects
        relaxed = {position for position in effects.writes if adds_up or kinds[position].relaxed}
        self._changing = relaxed | effects.doubtful
        self._ranges = _ranges(flow)
        self._own_rows = OwnRows(self._ranges, flow.memory.index)
        self._tuples = {
            statement.target.name: statement.value.items
            for block in flow.blocks.values()
            for statement in block.find_insts(ir.Assign)
            if isinstance(statement.value, ir.Expr) and statement.value.op == "build_tuple"
        }

    def proved(self, access: AnyAccess, first: int, end: int | None) -> AnyAccess:
        """Return an access or operation with the sizes that prove it, for the axes of the index from `first` on."""
        if access.fits is not None and not _by_contents(access.fits):
            return access
        known = None if access.fits is None else self._lasting(access.fits)
        label, number = access.place
        holder, container = indexed(self._flow.blocks[label].body[number])
        if holder is not None:
            items = self._tuples.get(self._ranges.definitions.root(holder.index.name), [holder.index])
            fits = self._fits(self._flow.final(container.name), items, range(len(items))[first:end], label)
            fits = None if fits is None else self._lasting(fits)
            known = min((each for each in (known, fits) if each is not None), key=_assumed, default=None)
        return replace(access, fits=known)

    def located(self, access: Access) -> Access:
        """Return an access to one row with the block of its task's own rows that it is in."""
        label, number = access.place
        holder, _ = indexed(self._flow.blocks[label].body[number])
        if access.by_loop_index:
            return replace(access, block=((), frozenset()))
        if holder is None or self._flow.memory.kinds[access.argument].keyed:
            return access
        row, *_ = self._tuples.get(self._ranges.definitions.root(holder.index.name), [holder.index])
        return replace(access, block=self._own_rows.block(row.name, label))

    def _lasting(self, fits: Fits) -> Fits | None:
        """Return pairs of sizes with those under which they last throughout the loop; None if they may not."""
        found, waiting = set(fits), list(fits)
        while waiting:
            own, size = waiting.pop()
            table = of_contents(own)
            if table in self._changing:
                return None
            stores = [] if table is None else self._stores(table, own)
            if stores and own[0] not in ("above", "top"):
                return None
            needed = {(size, ("capacity", *own[1:]))} if stores else set[tuple[Size, Size]]()
            for label, number in stores:
                least, stored = self._stored(label, number, size) or (0, None)
                if stored is None or (least < 0 and own[0] == "above"):
                    return None
                needed |= stored | ({(("constant", -least), ("depth", *own[1:]))} if least < 0 else set())
            waiting += needed - found
            found |= needed
        return frozenset(found)

    def lasting_pairs(self, places: Sequence[Access | FallibleOperation]) -> dict[tuple[Size, Size], Fits]:
        """Return `Effects.lasting`, of the pairs that some places need."""
        pairs = {
            (own, size)
            for place in places
            for own, size in place.fits or ()
            if own[0] == "above" and own[1] in self._flow.effects.stores
        }
        found = {pair: self._lasting(frozenset({pair})) for pair in pairs}
        return {pair: fits for pair, fits in found.items() if fits is not None}

    def _stores(self, table: int, content: Size) -> list[tuple[int, int]]:
        """Return the statements that may write what a size is of: the contents of a table, or of a field of it."""
        own = content[1] if content[0] == "plus" else content
        stores = self._flow.effects.stores.get(table, {})
        return [place for place, column in stores.items() if column is None or own[2] is None or column == own[2]]

    def _stored(self, label: int, number: int, size: Size) -> tuple[int, Fits] | None:
        """Return what `Ranges.between` does for the number that a statement stores."""
        statement = self._flow.blocks[label].body[number]
        if not isinstance(statement, ir.SetItem | ir.StaticSetItem | ir.SetAttr):
            return None
        return self._ranges.between(statement.value.name, label, size)

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


def _ranges(flow: Dataflow) -> Ranges:
    effects = flow.effects
    written = frozenset(effects.writes) | effects.doubtful | effects.escapes
    return Ranges(flow.blocks, flow.cfg, flow.values, flow.memory.kinds, written)


def _assumed(fits: Fits) -> tuple[bool, int]:
    """Return a sort key: whether contents of tables decide, and how many of these must be nonnegative."""
    return _by_contents(fits), sum(own[0] in ("largest", "above") for own, _ in fits)


def _by_contents(fits: Fits) -> bool:
    """Whether the contents of tables decide whether sizes fit."""
    return any(of_contents(own) is not None for own, _ in fits)
