"""What a body does: its accesses to tables, and what it writes."""

from dataclasses import dataclass

LOCAL = -2  # stands for the argument where a local array is indexed

# A branch taken: the call it belongs to, its block, and the block it goes to.
Condition = tuple[object, int, int]


@dataclass(frozen=True)
class Access:
    """One place in the program where a table, a row of it, or a local array is indexed."""

    argument: int  # or LOCAL
    whole: bool  # indexes the table; False: a part of one of its rows
    by_loop_index: bool
    write: bool
    sources: frozenset[int]  # what decides the index
    control: frozenset[int]  # what decides whether the access happens
    conditions: frozenset[Condition]  # branches that must be taken for it to happen
    expression: object  # of what is indexed, and of the index
    line: int


@dataclass
class Effects:
    """What a body does, collected over its functions."""

    accesses: set[Access]
    writes: dict[int, int]  # argument → first line that surely writes it
    doubtful: set[int]  # arguments that an unknown function may write
    escapes: set[int]  # tables used as a whole: iterated, passed to a function, sliced
    loop_sources: set[int]  # what decides how often a loop runs that no `range` bounds

    @classmethod
    def empty(cls) -> "Effects":
        """No effects."""
        return cls(set(), {}, set(), set(), set())

    def add(self, other: "Effects") -> None:
        """Take over the effects of a called function."""
        self.accesses |= other.accesses
        self.writes = other.writes | self.writes
        self.doubtful |= other.doubtful
        self.escapes |= other.escapes
        self.loop_sources |= other.loop_sources
