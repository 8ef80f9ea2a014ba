"""Proves facts about a body: which rows and branches are fixed, from what they depend on (`dataflow`)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strads.bodies.analysis.dataflow import Dataflow
from strads.bodies.analysis.effects import Access, AnyAccess, Effects, FallibleOperation
from strads.bodies.analysis.facts import BodyAnalysis
from strads.bodies.analysis.index_ranges import with_ranges
from strads.bodies.analysis.inlining import Branch, Variable
from strads.bodies.analysis.kinds import TableKind
from strads.bodies.analysis.near import near_groups
from strads.bodies.analysis.outcomes import MAX_SETS, OutcomeSets, UndecidedBranches
from strads.bodies.analysis.source_indices import checked_indices, row_indices
from strads.bodies.analysis.structure import is_counted
from strads.bodies.analysis.values import NOTHING, OPAQUE, ROUNDED, Fits, Sources, from_arguments, table_of_fixed
from strads.errors import ArgumentError
from strads.user_code.source_location import SourceLine


@dataclass(frozen=True)
class LoopBody:
    """What the proofs are about: a body and what it is called with.

    Attributes
    ----------
    function
        The body.
    kinds
        The kind of table of each argument without the loop index, None for others.
    random
        Arguments that are random numbers.
    only_read_rows
        Places at which rows are held in variables and clearly only read.
    adds_up
        Whether changes of written tables are added up, as they are in `sync_for`.
    indexing
        Places that index, with the variable of the source that is the index: see `checkable_places`.
    """

    function: Callable[..., Any]
    kinds: Sequence[TableKind | None]
    random: frozenset[int]
    only_read_rows: Collection[tuple[int, int]]
    adds_up: bool
    indexing: Mapping[tuple[int, int], Variable]


class Proofs:
    """Derives the facts about a body from its effects."""

    def __init__(
        self,
        body: LoopBody,
        dataflow: Dataflow,
        *,
        guards_roundings: bool = False,
        varying: frozenset[int] = frozenset(),
    ):
        self.body = body
        self._dataflow = dataflow
        self._guards_roundings = guards_roundings
        self.kinds = {position: kind for position, kind in enumerate(body.kinds) if kind is not None}
        self.effects: Effects = with_ranges(dataflow, adds_up=body.adds_up)
        self.dominators = dataflow.cfg.dominators()
        self._loops = [frozenset(loop.body) for loop in dataflow.cfg.loops().values()]
        self._in_loops = frozenset().union(*self._loops)
        readonly = {position for position, kind in self.kinds.items() if kind.readonly}
        _refuse_written_readonly(body.function, self.effects, readonly)
        self.written = (set(self.effects.writes) | self.effects.doubtful) - readonly
        self.conflicting = {position for position in self.written if not self.kinds[position].relaxed}
        self.changing = self.written | {OPAQUE}
        if guards_roundings:  # which then differ from run to run, like values that the loop changes
            self.changing |= {ROUNDED}
        # Random numbers are known before each call, but differ from call to call. Rows that conflict are recorded
        # again for each; whether an access happens is recorded both ways, and what is only read is checked in the run.
        # The same holds for `varying` arguments.
        self.undecided = self.changing | body.random | varying
        self.near, self.weights = near_groups(body.function, self.effects, self.conflicting, self.kinds)
        self.effects = replace(
            self.effects,
            accesses={access for access in self.effects.accesses if not self._is_near(access)},
        )

    def facts(self) -> BodyAnalysis:
        """Conclude."""
        effects = self.effects
        logged = [self._as_logged(access) for access in effects.accesses if access.argument in self.conflicting]
        covered_by_reads = {
            access.argument
            for access in logged
            if self._is_volatile(access)
            and not self._is_covered(access, logged, same_kind=True)
            and self._is_covered(access, logged)
        }
        logged = [replace(a, write=True) if a.argument in covered_by_reads else a for a in logged]
        volatile = [a for a in logged if self._is_volatile(a) and not self._is_covered(a, logged, same_kind=True)]
        others = [access for access in effects.accesses if access.argument not in self.conflicting]
        unchecked = {
            a.argument for a in others if self._is_volatile(a) and not a.exists and not self._is_covered(a, others)
        }
        accesses = list(effects.accesses)
        volatile_rows = [a for a in accesses if self._is_volatile(a) and not self._is_covered(a, accesses)]
        checked_in_run = [i for i in effects.fallible if self._is_volatile(i) and not self._is_checked_before(i)]
        volatile_parts = any(operation.fits is None for operation in checked_in_run)
        segments, deciding = self._segments(unchecked), self._deciding()
        loops = bool(effects.loops & self.undecided)
        raises = bool(effects.raises & self.undecided)
        return BodyAnalysis(
            written=frozenset(self.written),
            aligned=frozenset(self._only_read(unchecked, lambda access: access.by_loop_index)),
            own_rows=self._own_rows(),
            segments=segments,
            offsets=frozenset(self._offsets(unchecked, segments)),
            by_element=frozenset(self._by_element()),
            arrays=frozenset(effects.arrays),
            streamed=frozenset(access.argument for access in others if self._is_streamed(access)),
            deciding=frozenset(source for source in deciding if source >= 0),
            deciding_columns=frozenset(p for p in map(table_of_fixed, deciding) if p is not None),
            written_columns=self._dataflow.memory.written_columns,
            volatile=frozenset(access.argument for access in volatile),
            unproved_tables=frozenset(unchecked),
            volatile_parts=volatile_parts,
            volatile_fits=_all_fits(checked_in_run),
            part_indices=checked_indices(effects.fallible, self.body.indexing),
            volatile_indices=checked_indices(checked_in_run, self.body.indexing),
            reads_count_as_writes=frozenset(covered_by_reads),
            rounding_decides=not self._guards_roundings and self._rounding_decides(),
            is_certain=not (volatile or unchecked or volatile_parts or loops or raises),
            allocates=effects.allocates,
            computes=effects.computes or not all(map(self._has_access, self._loops)),
            is_short=self._is_short(),
            searches=self._searches(),
            row_indices=row_indices(self.kinds, accesses, self.body.indexing),
            volatile_row_indices=row_indices(self.kinds, volatile_rows, self.body.indexing),
            scattered=frozenset(self.written)
            - {access.argument for access in effects.accesses if not access.scattered},
            proof=self._proof(),
            lasting=effects.lasting,
            checked_in_loops=frozenset(
                access.argument
                for access in effects.accesses
                if not access.exists and access.place[0] in self._in_loops
            ),
            first_volatile_line=self._first_line(volatile),
            deciding_lines=self._deciding_lines(deciding),
            has_volatile_access=any(self._is_volatile(access) for access in logged),
            drawn=frozenset(a.argument for a in logged if a.sources & self.body.random),
            near=self.near,
            weights=self.weights,
            guards_roundings=self._guards_roundings,
        )

    def only_conditions(self) -> frozenset[int]:
        """Return which contents of arguments determine whether rows are touched that conflict, but not which rows."""
        rows = (access.sources for access in self.effects.accesses if access.argument in self.conflicting)
        return self.conditions_of_rows().difference(*rows)

    def conditions_of_rows(self) -> frozenset[int]:
        """Return which contents of arguments determine whether conflicting rows are touched, but for ends of ranges."""
        control = NOTHING.union(*(a.control for a in self.effects.accesses if a.argument in self.conflicting))
        blocks = self._dataflow.blocks
        counts = NOTHING.union(*(self._dataflow.condition(label) for label in blocks if is_counted(blocks[label])))
        return from_arguments(control - counts - self.changing)

    def _first_line(self, places: Collection[Access | FallibleOperation]) -> SourceLine | None:
        """Return the first line of some places, preferably one of the body and not of a function that it calls."""
        own = self.body.function.__code__.co_filename
        return min((place.line for place in places), key=lambda line: (line.filename != own, line), default=None)

    def _deciding_lines(self, deciding: Sources) -> dict[int, SourceLine]:
        """Return where sources decide first which row it is or, failing that, whether one is accessed."""
        places: list[Access | FallibleOperation] = [*self.effects.accesses, *self.effects.fallible]
        found = dict[int, SourceLine]()
        for source in deciding:
            of_rows = [place for place in places if source in place.sources]
            line = self._first_line(of_rows or [place for place in places if source in place.control])
            column_of = table_of_fixed(source)
            if line is not None:
                found[source if column_of is None else column_of] = line
        return found

    def _is_near(self, access: Access) -> bool:
        """Whether the job certainly owns the row, because `near` has drawn it."""
        return access.near in self.near and access.argument in self.near

    def _as_logged(self, access: Access) -> Access:
        """Reconnaissance logs a row that is held in a variable as written, unless it is clearly only read."""
        kind = self.kinds[access.argument]
        is_only_read = kind.depth == 2 and access.place in self.body.only_read_rows
        is_held = kind.depth > 1 and not access.element and not is_only_read
        return replace(access, write=access.write or is_held or bool(kind.fields))

    def _has_access(self, loop: frozenset[int]) -> bool:
        return any(access.place[0] in loop for access in self.effects.accesses)

    def _is_short(self) -> bool:
        elements = all(access.element or self.kinds[access.argument].depth == 1 for access in self.effects.accesses)
        return elements and not (self._in_loops or self.effects.allocates or self.effects.escapes)

    def _searches(self) -> bool:
        reads = {(a.argument, a.place[0]) for a in self.effects.accesses if a.argument not in self.written}
        return any(
            argument in access.sources and label in loop and access.place[0] not in loop
            for access in self.effects.accesses
            if access.argument in self.written
            for argument, label in reads
            for loop in self._loops
        )

    def _proof(self) -> Fits | None:
        effects = self.effects
        fits = [access.fits for access in effects.accesses] + [operation.fits for operation in effects.fallible]
        if None in fits or effects.may_not_end or effects.may_raise or effects.doubtful or effects.near:
            return None
        return frozenset().union(*(pairs or () for pairs in fits))

    def _is_volatile(self, access: Access | FallibleOperation) -> bool:
        return bool(access.sources & self._changing(access) or access.control & self.undecided)

    def _changing(self, access: Access | FallibleOperation) -> set[int]:
        """Return the sources that make the row of an access, or another index, volatile."""
        conflicts = isinstance(access, Access) and access.argument in self.conflicting
        return self.changing if conflicts else self.undecided

    def _is_covered(self, access: Access, others: list[Access], *, same_kind: bool = False) -> bool:
        """Whether the task always makes a fixed access to the same row earlier.

        With `same_kind`, that access must be a write if this one is. Equal value numbers imply equal values because one
        place dominates the other: nothing that both depend on is recomputed in between.
        """
        if access.number is None:
            return False
        return any(
            other.argument == access.argument
            and other.number == access.number
            and not self._is_volatile(other)
            and self._is_before(other, access)
            and (other.write or not access.write or not same_kind)
            for other in others
        )

    def _is_checked_before(self, operation: FallibleOperation) -> bool:
        """Whether the task always uses the same index of the same array earlier."""
        if operation.number is None:
            return False
        return any(
            other.number == operation.number and not self._is_volatile(other) and self._is_before(other, operation)
            for other in self.effects.fallible
        )

    def _is_before(self, first: Access | FallibleOperation, second: Access | FallibleOperation) -> bool:
        """Whether the first place dominates the second."""
        (block, statement), (later_block, later_statement) = first.place, second.place
        if block == later_block:
            return statement < later_statement
        return block in self.dominators.get(later_block, ())

    def _deciding(self) -> Sources:
        # Where undecided values end a loop or raise, nothing was relied on beforehand, and the run can be undone.
        ends = (self.effects.loops, self.effects.raises)
        sources = set().union(*(end for end in ends if not end & self.undecided))
        accesses = list(self.effects.accesses)
        for access in accesses:
            # Otherwise the run checks it too, or it needs no check, or the task has accessed the row before.
            fixed = not self._is_volatile(access)
            covered = not fixed and self._is_covered(access, accesses)
            if (access.argument in self.conflicting and not covered) or (fixed and not access.exists):
                sources |= access.sources | access.control
        for operation in self.effects.fallible:
            if not self._is_volatile(operation):  # otherwise the run checks it in any case
                sources |= operation.sources | operation.control
        return from_arguments(sources - self.changing).union(self.weights.values())

    def _rounding_decides(self) -> bool:
        """Whether rounding decides an access, or the end of a loop, that the run does not check but relies on."""
        decisions: list[Access | FallibleOperation] = [*self.effects.accesses, *self.effects.fallible]
        relied_on = [d.sources | d.control for d in decisions if not self._is_volatile(d)]  # others the run checks
        ends = [end for end in (self.effects.loops, self.effects.raises) if not end & self.undecided]
        return any(ROUNDED in sources for sources in relied_on + ends)

    def _only_read(self, unchecked: set[int], way: Callable[[Access], bool]) -> set[int]:
        """Return the tables that are only read, and only in the given way."""
        return self._accessed(set(self.kinds) - self.written - unchecked, way)

    def _accessed(self, tables: set[int], way: Callable[[Access], bool]) -> set[int]:
        """Return those of the tables that are accessed, and only in the given way."""
        accesses: dict[int, list[Access]] = {}
        for access in self.effects.accesses:
            accesses.setdefault(access.argument, []).append(access)
        return {
            position
            for position in tables - self.effects.escapes
            if position in accesses and all(map(way, accesses[position]))
        }

    def _own_rows(self) -> dict[int, Fits]:
        found = dict[int, Fits]()
        for table in self._accessed(self.conflicting - set(self.near), lambda access: access.block is not None):
            blocks = [access.block for access in self.effects.accesses if access.argument == table and access.block]
            if len({widths for widths, _ in blocks}) == 1:
                found[table] = frozenset().union(*(fits for _, fits in blocks))
        return found

    def _by_element(self) -> set[int]:
        undecided = {operation.place for operation in self.effects.fallible if self._is_volatile(operation)}
        others = {
            access.argument
            for access in self.effects.accesses
            if not access.element
            or self._is_volatile(access)
            or access.place in undecided
            or access.place[0] in self._in_loops
        }
        plain = {p for p, kind in self.kinds.items() if kind.has_elements}
        return (self.conflicting & plain) - others - self.effects.doubtful - self.effects.escapes

    def _segments(self, unchecked: set[int]) -> dict[int, int]:
        plain = {p for p, kind in self.kinds.items() if not (kind.ragged or kind.keyed or kind.relaxed)}
        found = self._only_read(unchecked, lambda access: access.segment is not None) & plain
        of = {p: {access.segment for access in self.effects.accesses if access.argument == p} for p in found}
        fixed = {p: segments.pop() for p, segments in of.items() if len(segments) == 1}
        return {p: segment for p, segment in fixed.items() if segment is not None and segment not in self.written}

    def _offsets(self, unchecked: set[int], segments: Mapping[int, int]) -> set[int]:
        ends = self._only_read(unchecked, lambda access: access.by_loop_index or access.by_next_index)
        return ends & set(segments.values())

    def _is_streamed(self, access: Access) -> bool:
        return access.segment is not None or not from_arguments(access.sources)


class ProofsWithOutcomes(Proofs):
    """Derives the facts for a reconnaissance that runs each task with chosen outcomes of the undecided branches.

    An access is then fixed if its row is, and one of the sets of outcomes reaches it whenever the run does.
    """

    def __init__(
        self,
        body: LoopBody,
        dataflow: Dataflow,
        origins: Mapping[int, Branch],
        varying: frozenset[int] = frozenset(),
    ):
        super().__init__(body, dataflow, varying=varying)
        # With chosen outcomes, a task may draw more or fewer numbers than in the run.
        if dataflow.memory.drawing() & self.undecided:
            self.changing |= body.random
        branches = UndecidedBranches(dataflow.cfg, dataflow.blocks, origins, self._is_undecided)
        self._sets = OutcomeSets(branches)
        effects = self.effects
        # Rows come first: other indices can be checked in the run.
        recorded = {self._reached(access, MAX_SETS) for access in _in_order(effects.accesses)}
        fallible = {self._reached(operation, 2) for operation in _in_order(effects.fallible)}
        self.effects = replace(effects, accesses=recorded, fallible=fallible)

    def _is_undecided(self, label: int) -> bool:
        return bool(self._dataflow.condition(label) & self.undecided)

    def _reached(self, what: AnyAccess, most: int) -> AnyAccess:
        """Return an access or an operation whose control sources are only those that remain with the outcomes."""
        control = self._dataflow.control(what.place[0], chosen=lambda condition: bool(condition & self.undecided))
        if what.sources & self._changing(what) or not self._sets.reach(what.place[0], most):
            control |= {OPAQUE}
        return replace(what, control=control)

    def facts(self) -> BodyAnalysis:
        """Conclude."""
        return replace(super().facts(), certain_share=self._certain_share(), outcomes=self._sets.outcomes())

    def _certain_share(self) -> float:
        control = [
            self._dataflow.control(access.place[0], chosen=lambda condition: not condition & self.undecided)
            for access in self.effects.accesses
            if access.argument in self.conflicting
        ]
        return sum(not undecided for undecided in control) / max(len(control), 1)


def _in_order(places: Collection[AnyAccess]) -> list[AnyAccess]:
    return sorted(places, key=lambda what: what.place)


def _all_fits(operations: Collection[FallibleOperation]) -> Fits:
    return frozenset().union(*(operation.fits or () for operation in operations))


def _refuse_written_readonly(body: Callable[..., Any], effects: Effects, readonly: set[int]) -> None:
    names = body.__code__.co_varnames[1 : body.__code__.co_argcount]
    for position in sorted(readonly & set(effects.writes)):
        where = str(effects.writes[position])
        if position >= len(names):
            raise ArgumentError(
                f"{where}: the body writes its minibatch, which is read-only: write to a table that is an argument"
            )
        raise ArgumentError(
            f"{where}: the body writes {names[position]!r}, which was passed as strads.readonly(...); "
            "pass the table itself"
        )
