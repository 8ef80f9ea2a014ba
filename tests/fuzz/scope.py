"""What the generator knows of the body that it is writing: names in scope, and what their values depend on."""

from dataclasses import dataclass, field
from random import Random

from .arguments import Arg


@dataclass
class Num:
    """A number: its text, whether it depends on what the loop changes, and bits before and after the binary point.

    Floats are multiples of a power of two with few bits, so that no order of additions rounds.
    """

    text: str
    volatile: bool = False
    bits: int = 5
    fraction: int = 0


STORED_BITS = 11  # of what variables and tables hold; a cell that is only added to stays below that
STORED_FRACTION = 2
MAX_BITS = 22  # f4 has 24


@dataclass
class Array:
    """A name of one or two dimensions: a row of a table, or an array or list of the body."""

    name: str
    is_float: bool
    volatile: bool  # its values
    shortest: int = 0
    writable: bool = True
    dimensions: int = 1
    origin: str = ""  # arrays of one origin have one Numba type
    growable: bool = False  # a list
    steady: bool = True  # its length does not depend on what the loop changes


@dataclass
class Rec:
    """A name of a record."""

    name: str
    arg: Arg
    volatile: bool


@dataclass
class Facts:
    """What is known of the whole program."""

    rng: Random
    args: list[Arg]
    floating: str  # the dtype of all float tables
    obeys: bool = True  # no row was chosen by what the loop changes, as far as the generator sees
    risky: bool = False  # indices may be out of range
    helpers: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    changing: list[str] = field(default_factory=list)  # globals that calls change in between
    closure: bool = False
    counter: int = 0
    own_row: tuple[str, str] = ("", "")  # (W, r): the data of a minibatch are row numbers r of W
    index: str = "k"  # the variable that counts tasks, or rows of a minibatch

    @property
    def randoms(self) -> list[str]:
        """Names of random numbers."""
        return [a.name for a in self.args if a.kind == "random"]

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"


@dataclass
class Scope:
    """The names that a block may use. A nested block gets a copy: what it defines may not exist after it."""

    ints: list[Num] = field(default_factory=list)  # variables and loop variables
    floats: list[Num] = field(default_factory=list)
    assignable: list[str] = field(default_factory=list)  # those of them that may be assigned
    arrays: list[Array] = field(default_factory=list)
    records: list[Rec] = field(default_factory=list)
    within: list[tuple[str, str]] = field(default_factory=list)  # (i, w): i is an index of w
    volatile: bool = False  # whether this block runs only under what the loop changes
    in_loop: bool = False
    loops: int = 0

    def nested(self, *, volatile: bool = False, in_loop: bool | None = None) -> "Scope":
        return Scope(
            list(self.ints),
            list(self.floats),
            list(self.assignable),
            list(self.arrays),
            list(self.records),
            list(self.within),
            self.volatile or volatile,
            self.in_loop if in_loop is None else in_loop,
            self.loops + bool(in_loop),
        )
