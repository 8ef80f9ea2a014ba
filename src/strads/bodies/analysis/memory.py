"""The memory that a body works on: its accesses to tables, and the contents of the containers that it creates."""

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

from strads.bodies.analysis.effects import Access, Effects, FallibleOperation
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.values import (
    CONSTANT,
    FLOAT,
    NOTHING,
    OPAQUE,
    RANDOM,
    UNKNOWN,
    Column,
    Fits,
    Local,
    Numbers,
    Part,
    Size,
    Sources,
    Value,
    content,
    fixed_columns,
    join,
    largest,
    limit_of,
    locals_of,
    parts,
)
from strads.user_code.source_location import SourceLine

FIELD = Value(is_slice=True)  # what is assigned to by `record.field = value`
_COUNTER = Local(RANDOM, None, True)  # of the random numbers that the task has drawn


class Memory:
    """The memory of one body. Contents only grow: the analysis iterates until they no longer change.

    Attributes
    ----------
    kinds
        Position of each table among the arguments → its kind.
    numbers
        Value numbers of the body's variables and operations.
    index, next_index
        Value numbers of the loop index k, and of k + 1.
    written_columns
        Tables of which the body is known to write only some columns → these.
    effects
        Effects seen so far.
    place, line, control
        Of the current statement: block and position, line, and what determines whether it runs.
    """

    def __init__(
        self,
        kinds: dict[int, TableKind],
        index: int,
        numbers: Numbers,
        written_columns: Mapping[int, frozenset[Column]] = MappingProxyType({}),
    ):
        self.kinds = kinds
        self.written_columns = written_columns
        self.numbers = numbers
        self.effects = Effects()
        self.place: tuple[int, int] = (0, 0)
        self.line = SourceLine("", 0)
        self.control: Sources = NOTHING
        self.index = index
        one = numbers.of(("constant", int, 1))
        self.next_index = numbers.of((("operator", operator.add), index, one))
        self._contents: dict[Hashable, Value] = {}  # by place: rows of an array are the same memory
        self._lengths: dict[Hashable, Sources] = {}
        self._shapes: dict[Hashable, tuple[Size | None, ...]] = {}  # of arrays; (): not known

    def state(self) -> object:
        """Return the state that grows, to detect the fixed point."""
        return dict(self._contents), dict(self._lengths), dict(self._shapes)

    def sources(self, value: Value) -> Sources:
        """What determines a value and everything that can be read through it."""
        return self._sources(value, set())

    def _sources(self, value: Value, seen: set[Hashable]) -> Sources:
        found = value.sources | value.length
        for part in parts(value):
            found |= self.sources_of(part)
        for local in locals_of(value):
            if local is UNKNOWN:
                found |= {OPAQUE}
            elif local.place not in seen:
                seen.add(local.place)
                found |= self._lengths.get(local.place, NOTHING)
                found |= self._sources(self._contents.get(local.place, Value()), seen)
        for item in value.items or ():
            found |= self._sources(item, seen)
        if value.elements is not None:
            found |= self._sources(value.elements, seen)
        return found

    def sources_of(self, part: Part, column: Column | None = None) -> Sources:
        """What determines the numbers of a part of a table, of which a column may be known."""
        kind = self.kinds[part.argument]
        floating, column = kind.floating, column if part.field is None else part.field
        if kind.fields:
            field = None if part.field is None else kind.field(part.field)
            floating = any(f.floating for f in kind.fields) if field is None else field.floating
        written = self.written_columns.get(part.argument)
        is_fixed = written is not None and column is not None and column not in written
        own = fixed_columns(part.argument) if is_fixed else part.argument
        return frozenset({own, FLOAT} if floating else {own})

    def _column(self, part: Part, index: Value) -> Column | None:
        """Return the column of a table that an index of it, or of a row, selects; None if it is not certain."""
        kind, name = self.kinds[part.argument], index.constant
        if part.field is not None:
            return part.field
        if kind.fields:
            return name if isinstance(name, str) and not part.whole and kind.field(name) is not None else None
        items = index.items or (index,)
        is_plain = kind.depth == 2 and part.full and len(items) == part.depth == 1 + part.whole
        column = items[-1].constant
        is_row = not (items[0].is_slice or items[0].is_memory) or not part.whole
        return column if is_plain and is_row and type(column) is int and column >= 0 else None

    def length(self, value: Value) -> Sources:
        """What determines the shape of an array, or the length of a container."""
        found = value.length
        for local in locals_of(value):
            found |= {OPAQUE} if local is UNKNOWN else self._lengths.get(local.place, NOTHING)
        return found | self._which(value)

    def _which(self, value: Value) -> Sources:
        """What determines which memory it is, if that affects its shape: rows of one table are alike."""
        is_row = len(value.references) == 1 and not locals_of(value)
        return value.sources if value.is_memory and not is_row else NOTHING

    def segment(self, ends: Sequence[Value]) -> int | None:
        """Return the array A of a range or slice from A[k] to A[k + 1]."""
        for position, kind in self.kinds.items() if len(ends) == 2 else ():
            table = self.numbers.of(("argument", position, False))
            items = [self.numbers.of(("item", table, index)) for index in (self.index, self.next_index)]
            if kind.depth == 1 and not kind.fields and [end.number for end in ends] == items:
                return position
        return None

    def depth(self, value: Value) -> int | None:
        """Number of axes of an array, 0 for a number; None if unknown."""
        depths: set[int | None] = {reference.depth for reference in value.references}
        if not depths:
            return 0 if value.items is None and value.elements is None else None
        return depths.pop() if len(depths) == 1 else None

    def size(self, container: Value, axis: int = 0) -> Size | None:
        """Return the size of an axis of an array, if it is constant throughout a task."""
        if len(container.references) != 1:
            return None
        (reference,) = container.references
        if not reference.full or reference.depth is None:
            return None
        if reference.depth <= axis:
            return None
        if isinstance(reference, Local):
            shape = self._shapes.get(reference.place, ())
            return shape[axis] if len(shape) == reference.depth else None
        kind = self.kinds[reference.argument]
        if reference.field is not None:
            field = kind.field(reference.field)
            inner = axis - reference.depth  # counted from the end
            return ("constant", field.shape[inner]) if field is not None and len(field.shape) >= -inner else None
        if reference.keyed:
            return None
        if kind.ragged and not reference.whole:
            table = self.numbers.of(("argument", reference.argument, False))
            is_row_k = container.number == self.numbers.of(("item", table, self.index))
            return ("row", reference.argument) if is_row_k and axis == 0 else None
        return None if kind.ragged and axis > 0 else ("axis", reference.argument, kind.depth - reference.depth + axis)

    def sizes(self, container: Value) -> tuple[Size | None, ...]:
        """Return the sizes of all axes of an array, `None` for one that may vary; () if their number is not known."""
        ragged = any(self.kinds[part.argument].ragged and part.whole for part in parts(container))
        return () if ragged else tuple(self.size(container, axis) for axis in range(self.depth(container) or 0))

    def new(
        self,
        depth: int | None,
        *,
        is_array: bool,
        contents: Value | None = None,
        length: Sources = NOTHING,
        shape: tuple[Size | None, ...] = (),
    ) -> Value:
        """Create a container at the current statement."""
        local = Local(self.place, depth, is_array)
        self.effects.allocates = True
        self._shapes[local.place] = shape if self._shapes.get(local.place, shape) == shape else ()
        self._contents.setdefault(local.place, Value())
        if contents is not None:
            self._put(local, contents)
        self._lengths[local.place] = self._lengths.get(local.place, NOTHING) | length
        return Value(frozenset({local}))

    def random_numbers(self, argument: int) -> Value:
        """Create the random numbers of an argument. Each draw advances the counter of the task, which all share."""
        return Value(frozenset({_COUNTER}), frozenset({argument}))

    def draw(self, numbers: Value) -> Sources:
        """Draw from random numbers; returns what determines the result, apart from the operands.

        Any draw that may have happened before determines which number this is.
        """
        self._put(_COUNTER, Value())  # depends on whether this draw happens, not on whose number it is
        return self.sources(numbers)

    def drawing(self) -> Sources:
        """What determines how many random numbers a task draws."""
        return self.sources(Value(frozenset({_COUNTER})))

    def _put(self, local: Local, value: Value) -> None:
        if local.place == CONSTANT:
            return  # Numba refuses to write it
        if local.is_array:  # it holds copies of numbers, not references
            value = Value(sources=self.sources(value))
        value = replace(value.with_sources(self.control), number=None, near=None, magnitude=None)
        self._contents[local.place] = join(self._contents.get(local.place), value)

    def put(self, container: Value, value: Value, *, resizes: bool) -> None:
        """Store something into containers of the body."""
        for local in locals_of(container):
            if local is UNKNOWN:
                continue
            self._put(local, value.with_sources(container.sources))
            if resizes:
                added = self.control | self.sources(value) | container.sources
                self._lengths[local.place] = self._lengths.get(local.place, NOTHING) | added

    def read(self, container: Value, index: Value) -> Value:
        """Return `container[index]`."""
        if container.items is not None:
            self.may_fail(index)
            item = reduce(join, container.items, None) or Value()
            return replace(item, number=None).with_sources(self.sources(index) | container.sources)
        if not container.is_memory:
            self.may_fail(index, is_index=True)
            return Value(sources=self.sources(container) | self.sources(index))
        found = None
        for reference in container.references:
            if isinstance(reference, Part):
                found = join(found, self._read_part(reference, container, index))
            else:
                found = join(found, self._read_local(reference, container, index))
        assert found is not None
        return found

    def _read_part(self, part: Part, container: Value, index: Value) -> Value:
        self.access(part, container, index, write=False)
        taken, sliced, copied = _shape_of(index)
        sources = container.sources | self.sources(index)
        if copied:
            contents = Value(sources=sources | self.sources_of(part))
            return self.new(None, is_array=True, contents=contents, length=self.sources(index))
        depth = None if part.depth is None else part.depth - taken
        kind = self.kinds[part.argument]
        if depth is None or depth > 0 or (kind.fields and part.field is None):
            length = container.length | (self.sources(index) if sliced or (part.whole and kind.ragged) else NOTHING)
            still_whole = part.whole and taken == 0
            full = part.full and not sliced and taken == 1 and not index.items
            full = full or (part.full and index.items is not None and taken == len(index.items))
            rest = replace(part, depth=None if depth is None else max(depth, 0), whole=still_whole, full=full)
            read = self.sources_of(part) if depth is None else NOTHING  # it may be a number
            segment = index.segment if still_whole else None
            return Value(frozenset({rest}), sources | read, length, segment=segment)
        sources |= self.sources_of(part, self._column(part, index))
        if part.keyed:
            return Value(sources=sources)
        above = "above", part.argument, part.field
        return Value(sources=sources, below=above, magnitude=content(part.argument, part.field))

    def _read_local(self, local: Local, container: Value, index: Value) -> Value:
        if local is UNKNOWN:
            return Value(frozenset({UNKNOWN}), frozenset({OPAQUE}))
        self.may_fail(index, self.length(container), container, self._fit(index, container), is_index=True)
        taken, sliced, copied = _shape_of(index)
        sources = container.sources | self.sources(index)
        contents = self._contents.get(local.place, Value())
        if copied:
            everything = Value(sources=sources | self._sources(contents, set()))
            return self.new(None, is_array=True, contents=everything, length=self.sources(index))
        element = replace(contents, number=None).with_sources(sources)
        if local.depth is not None and local.depth - taken <= 0:
            return element
        depth = None if local.depth is None else local.depth - taken
        rest = Local(local.place, depth, local.is_array, full=False)
        inner = Value(frozenset({rest}), sources, container.length | (self.sources(index) if sliced else NOTHING))
        return join(element, inner) if depth is None else inner

    def elements(self, container: Value) -> Value:
        """Return what iterating over a container yields."""
        if container.elements is not None:
            # What remains of an iterator depends on how far another block has advanced it.
            known = container.iterator in (None, self.place[0])
            return container.elements.with_sources(container.sources | (NOTHING if known else {OPAQUE}))
        if container.items is not None:
            found = reduce(join, container.items, None) or Value()
            return replace(found, number=None).with_sources(container.sources)
        for part in parts(container):
            if part.whole and container.segment is None:
                self.effects.escapes.add(part.argument)
        inside = Value(segment=container.segment, below=self.size(container))  # such an index always exists
        found = self.read(container, inside)
        return replace(found, number=None)

    def write(self, container: Value, index: Value, value: Value, field: str | None = None) -> None:
        """Process `container[index] = value`, or `container.field = value` with the index `FIELD`."""
        is_slice = index.is_slice and index.items is None and index is not FIELD
        fits = Fits() if is_slice and value.is_number else None  # a number fits any slice
        for part in parts(container):
            self._store(part.argument, self._column(part, index) if field is None else field)
            self.access(part, container, index, write=True, fits=fits)
        if not value.is_number and (is_slice or self.depth(container) != 1):  # its shape may differ from the row's
            is_row = index.items is None and not index.is_slice and (self.depth(container), self.depth(value)) == (2, 1)
            row = self.size(container, 1) if is_row else None
            alike = Fits() if row is not None and row == self.size(value) else None
            self.may_fail(Value(), self.length(value) | self.length(container), fits=alike)
        if locals_of(container):
            fits = self._fit(index, container) if fits is None else fits
            self.may_fail(index, self.length(container), container, fits, is_index=True)
            self.put(container, value.with_sources(self.sources(index)), resizes=False)

    def _store(self, argument: int, column: Column | None) -> None:
        self.effects.writes.setdefault(argument, self.line)
        stores = self.effects.stores.setdefault(argument, {})
        stores[self.place] = column if stores.get(self.place, column) == column else None

    def overwrite(self, target: Value, sources: Sources) -> None:
        """Write to an array as a whole, as `out=` and `+=` do."""
        for part in parts(target):
            self._store(part.argument, part.field)
            self.access(part, target, Value(is_slice=True), write=True)
        self.put(target, Value(sources=sources), resizes=False)

    def access(self, part: Part, container: Value, index: Value, *, write: bool, fits: Fits | None = None) -> None:
        """Record an access to a table, or to a part of one of its rows, which certainly exists if some sizes fit."""
        if not part.whole:
            bound = container.length | self._which(container)
            fits = self._fit(index, container) if fits is None else fits
            self.may_fail(index, bound, container, fits, is_index=True)
            return
        row, *inner = index.items if index.items else (index,)
        is_row = not (row.is_slice or row.is_memory or row.constant is None or row.constant is Ellipsis)
        if not is_row and row.segment is None:
            self.effects.escapes.add(part.argument)
        is_element = is_row and bool(inner) and self._is_element(part, index)
        number = row.number if is_row else None
        if part.keyed and number is not None:  # the row of a key is not the row of that number
            number = self.numbers.of(("key", number))
        self.effects.accesses.add(
            Access(
                part.argument,
                write,
                sources=self.sources(row) | container.sources | container.length,
                control=self.control,
                place=self.place,
                line=self.line,
                number=number,
                is_row=is_row,
                by_loop_index=number is not None and number == self.index,
                by_next_index=number is not None and number == self.next_index,
                segment=row.segment,
                element=is_element,
                scattered=is_element and largest(inner[-1]) is not None,
                near=row.near if is_row and not part.keyed else None,
                fits=self._fit(row, container) if is_row else None,
            )
        )
        if inner:
            of = self._row(container, row)
            rest = inner[0] if len(inner) == 1 else Value(items=tuple(inner), number=index.number)
            inside = self._fit(index, container, 1)
            self.may_fail(rest, container.length | self.sources(row), of, inside, is_index=True, table=part.argument)

    def _is_element(self, part: Part, index: Value) -> bool:
        """Whether an index of a table selects a single number, with an integer for each axis."""
        kind = self.kinds[part.argument]
        return not kind.fields and _shape_of(index) == (kind.depth, False, False)

    def _row(self, container: Value, row: Value) -> Value:
        """Return the value of a row that is indexed directly, as in `T[i, j]`."""
        known = container.number is not None and row.number is not None
        return Value(number=self.numbers.of(("item", container.number, row.number)) if known else None)

    def _fit(self, index: Value, container: Value, first: int = 0) -> Fits | None:
        """Return the pairs of sizes that make an index valid from the given axis on; None if sizes do not decide it."""
        if index is FIELD:
            return None if locals_of(container) else frozenset()
        found = set()
        for axis, item in enumerate(index.items if index.items is not None else (index,)):
            if axis >= first:
                size = self.size(container, axis)
                below = limit_of(item)
                if below is None or size is None:
                    return None
                found.add((below, size))
        return frozenset(pair for pair in found if pair[0] != pair[1])

    def may_fail(
        self,
        index: Value,
        bound: Sources = NOTHING,
        of: Value | None = None,
        fits: Fits | None = None,
        *,
        is_index: bool = False,
        table: int | None = None,
    ) -> None:
        """Record that an operation may fail, depending on an index or size; `of` is the array that is indexed.

        See `FallibleOperation` for the other parameters.
        """
        sources = self.sources(index) | bound
        if of is None or of.number is None or index.number is None or index.is_slice:
            number = None
        else:
            number = of.number, index.number
        by_array = any(item.is_memory for item in index.items or (index,))
        is_index = is_index and not (index.is_slice and index.items is None)
        self.effects.fallible.add(
            FallibleOperation(sources, self.control, number, fits, self.place, self.line, is_index, by_array, table)
        )

    def doubt(self, values: Iterable[Value]) -> None:
        """Assume the worst of an operation without a rule: it may write, and retain, all memory that it is given."""
        waiting = list(values)
        seen: set[Hashable] = set()
        while waiting:
            value = waiting.pop()
            self.effects.doubtful |= {part.argument for part in parts(value)}
            self.escape(value)
            waiting += value.items or ()
            waiting += [inner for inner in (value.elements, value.method and value.method[1]) if inner]
            for local in locals_of(value):
                if local is not UNKNOWN and local.place not in seen:
                    seen.add(local.place)
                    waiting.append(self._contents.get(local.place, Value()))
                    self._put(local, Value(frozenset({UNKNOWN}), frozenset({OPAQUE})))
                    self._lengths[local.place] = self._lengths.get(local.place, NOTHING) | {OPAQUE}

    def touch_anything(self, values: Iterable[Value]) -> None:
        """Assume any access to the arguments of a user's function that cannot be inlined, such as a recursive one."""
        waiting = list(values)
        if any(value.is_memory or value.items or value.elements for value in waiting):
            self.may_fail(Value(sources=frozenset({OPAQUE})), is_index=True)
        while waiting:
            value = waiting.pop()
            waiting += [*(value.items or ()), *(inner for inner in (value.elements,) if inner)]
            waiting += [self._contents.get(local.place, Value()) for local in locals_of(value) if not local.is_array]
            for part in parts(value):
                if part.whole:
                    opaque = frozenset({OPAQUE})
                    access = Access(part.argument, True, opaque, self.control, self.place, self.line)
                    self.effects.accesses.add(access)

    def escape(self, value: Value, *, needs_numbers: bool = True) -> None:
        """Record that tables are used other than row by row, and rows, if it `needs_numbers`, other than by number."""
        if value.segment is None:
            self.effects.escapes |= {part.argument for part in parts(value) if part.whole}
        if needs_numbers:
            self.effects.arrays |= {part.argument for part in parts(value) if not part.whole and part.depth != 0}
        for item in value.items or ():
            self.escape(item)


def _shape_of(index: Value) -> tuple[int, bool, bool]:
    """Return how many axes an index removes, whether it slices, and whether it makes a copy."""
    taken, sliced, copied = 0, False, False
    for item in index.items if index.items is not None else (index,):
        if item.is_slice or item.constant is Ellipsis:
            sliced = True
        elif item.constant is None:
            taken -= 1
        elif item.is_memory:
            copied = True
        else:
            taken += 1
    return taken, sliced, copied
