"""The role of each argument of a loop, and the numbers of the tables in the access records."""

from collections.abc import Mapping
from dataclasses import dataclass

from strads.bodies.analysis import BodyAnalysis
from strads.engine.views.roles import Role
from strads.loops.arguments import AccumulatorArgument, Argument, BoundArguments, RandomArgument, TableArgument
from strads.schedule.records.access import TableShape

_ELEMENT, _SCATTERED = 64, 512  # bytes of a row of which tasks access an element, or several: one cache line, or eight


@dataclass(frozen=True)
class ArgumentRoles:
    """Roles of the arguments of a compiled loop, by position."""

    roles: tuple[Role, ...]
    table_of: dict[int, int]  # arguments whose accesses are recorded → number of the table in the records
    by_element: frozenset[int]  # of which elements are recorded rather than rows; with ghosts only
    near: Mapping[int, int]  # tables whose rows are drawn by `near`, or indexed by such rows → their group
    in_turn: tuple[int, ...]  # tables read as A[k] that determine rows of others
    most_used: Mapping[int, int]  # written tables accessed only as T[i, j] → at most so many bytes of a row are touched
    # Written tables with columns that the loop does not write and that determine rows: ghosts show their real values.
    read_in_ghosts: frozenset[int]
    counters: frozenset[int]  # relaxed tables to which tasks only add integers: any thread may add to any replica
    _reads_count_as_writes: frozenset[int]

    @classmethod
    def of(cls, bound: BoundArguments, facts: BodyAnalysis, *, by_element: bool = False) -> "ArgumentRoles":
        """Assign roles to the arguments according to the analysis."""
        roles = tuple(_role(position, argument, facts) for position, argument in enumerate(bound.arguments))
        numbers: dict[int, int] = {}
        table_of = {
            position: numbers.setdefault(bound.same[position], len(numbers))
            for position, role in enumerate(roles)
            if role.is_recorded
        }
        elements = facts.by_element if by_element else frozenset[int]()
        # A row that may be drawn has one owner at a time, even if tasks only read it.
        as_writes = facts.reads_count_as_writes | facts.volatile | facts.near.keys()
        in_turn = tuple(p for p, role in enumerate(roles) if role is Role.ALIGNED and p in facts.deciding)
        most_used = dict.fromkeys(facts.scattered, _SCATTERED) | dict.fromkeys(facts.by_element, _ELEMENT)
        counters = frozenset(position for position, table in bound.tables.items() if table.counts)
        read = facts.deciding_columns
        return cls(roles, table_of, elements, facts.near, in_turn, most_used, read, counters, as_writes)

    def with_role(self, *roles: Role) -> list[int]:
        """Return the positions of the arguments that play one of these roles."""
        return [position for position, role in enumerate(self.roles) if role in roles]

    @property
    def position_of(self) -> dict[int, int]:
        """Number of a table in the records → the first of its positions."""
        return {table: position for position, table in reversed(self.table_of.items())}

    def near_tables(self) -> list[frozenset[int]]:
        """Return the tables of each group, by their numbers in the records."""
        groups = sorted(set(self.near.values()))
        return [frozenset(self.table_of[p] for p, group in self.near.items() if group == g) for g in groups]

    def in_plan_order(self, segments: Mapping[int, int]) -> frozenset[int]:
        """Return the positions of arguments stored in plan order, and of those that define their segments."""
        segmented = self.with_role(Role.SEGMENTED)
        return frozenset([*self.with_role(Role.ALIGNED, Role.OFFSETS), *segmented, *(segments[p] for p in segmented)])

    def tag(self, position: int) -> int:
        """Return the tag of a recorded argument's accesses: twice the table's number, plus 1 if all are writes."""
        return 2 * self.table_of[position] | (position in self._reads_count_as_writes)

    def tables_of_rows(self, bound: BoundArguments, deepest: int = 2) -> frozenset[int]:
        """Return the positions of the arguments recorded by rows, with two to `deepest` axes."""
        kinds = {position: bound.tables[position].kind for position in self.table_of}
        of_rows = {position for position, kind in kinds.items() if 1 < kind.depth <= deepest and not kind.keyed}
        return frozenset(of_rows - self.by_element)

    @property
    def has_relaxed(self) -> bool:
        """Whether jobs work on replicas of some table, which are summed at barriers."""
        return any(role.is_relaxed for role in self.roles)

    @property
    def has_lanes(self) -> bool:
        """Whether it matters which job works on which replica."""
        return any(role.is_relaxed and position not in self.counters for position, role in enumerate(self.roles))

    def table_shapes(self, bound: BoundArguments, *, by_row: bool = False) -> tuple[TableShape, ...]:
        """Return the shapes of the recorded tables, in the order of their numbers; with `by_row`, all as rows."""
        shapes: dict[int, TableShape] = {}
        for position, table in self.table_of.items():
            argument = bound.tables[position]
            name, rows, size = argument.name, len(argument.storage), argument.storage.nbytes
            found = TableShape(name, rows, size // max(rows, 1), most_used=self.most_used.get(position))
            if position in self.by_element and not by_row:
                found = TableShape(name, argument.dense.size, argument.dense.itemsize, argument.dense.shape)
            shapes.setdefault(table, found)
        return tuple(shapes[table] for table in range(len(shapes)))


def _role(position: int, argument: Argument, facts: BodyAnalysis) -> Role:
    if isinstance(argument, AccumulatorArgument):
        return Role.ACCUMULATOR
    if isinstance(argument, RandomArgument):
        return Role.RANDOM
    if not isinstance(argument, TableArgument):
        return Role.SCALAR
    unchecked = position in facts.unproved_tables
    if position in facts.written:
        if argument.relaxed:
            return Role.CHECKED_RELAXED if unchecked else Role.RELAXED
        return Role.GUARDED if position in facts.volatile else Role.WRITTEN
    if position in facts.aligned:
        return Role.ALIGNED
    # If nothing else needs it, an array's content is not worth hashing in each call.
    knows_changes = argument.table is not None or position in facts.deciding
    if position in facts.segments and knows_changes:
        return Role.SEGMENTED
    if position in facts.offsets:
        return Role.OFFSETS
    return Role.CHECKED if unchecked else Role.READ
