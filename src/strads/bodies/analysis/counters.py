"""Tables in which a body only counts: it adds integers to them and does not read them (`counts[word] += 1`).

Sums of integers are the same in every order, bit for bit, also where they overflow. So tasks that add to the same row
do not conflict: each thread can add to a copy of its own.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from strads.bodies.analysis import known_functions
from strads.bodies.analysis.inlining import resolved
from strads.bodies.analysis.kinds import TableKind

_ITEMS = ("getitem", "static_getitem")
_SUMS = (operator.add, operator.sub, operator.iadd, operator.isub)
_INTEGER_OPERATORS = frozenset(
    [
        *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift, operator.rshift),
        *(operator.and_, operator.or_, operator.xor, operator.neg, operator.pos, operator.invert),
    ]
)
_COMPARISONS = frozenset([operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.not_])
_INTEGER_FUNCTIONS = (abs, min, max, int, bool)


def counters(blocks: Mapping[int, Any], kinds: Mapping[int, TableKind], integers: Collection[int]) -> frozenset[int]:
    """Return the tables in which a body only counts.

    Parameters
    ----------
    blocks
        The body in SSA form, functions that it calls inlined.
    kinds
        Its tables, by position.
    integers
        Positions of its further arguments that are integers which fit into int64.
    """
    code = _Code(blocks, kinds, integers)
    if code.mentions_unsigned():
        return frozenset()
    able = [p for p, kind in kinds.items() if kind.integer and not (kind.ragged or kind.relaxed or kind.readonly)]
    return frozenset(position for position in able if code.only_counts(position))


class _Code:
    """Definitions and uses of the variables of a body."""

    def __init__(self, blocks: Mapping[int, Any], kinds: Mapping[int, TableKind], integers: Collection[int]):
        self._kinds = kinds
        self._integers = integers
        self._definitions: dict[str, Any] = {}
        self._uses: dict[str, list[tuple[tuple[int, int], Any]]] = {}
        for label, block in blocks.items():
            for number, statement in enumerate(block.body):
                if isinstance(statement, ir.Del):
                    continue
                defined = statement.target.name if isinstance(statement, ir.Assign) else None
                if defined is not None:
                    self._definitions[defined] = statement.value
                for variable in _read(statement):
                    self._uses.setdefault(variable, []).append(((label, number), statement))
        self._lists = {name: [value] for name, value in self._definitions.items()}
        loops = compute_cfg_from_blocks(blocks).loops().values()
        self._loops = {label: frozenset(loop.header for loop in loops if label in loop.body) for label in blocks}

    def mentions_unsigned(self) -> bool:
        """Whether the body may compute with 64-bit unsigned integers: mixed with signed ones, these become floats."""
        names = [
            value.attr if isinstance(value, ir.Expr) and value.op == "getattr" else getattr(value.value, "__name__", "")
            for value in self._definitions.values()
            if isinstance(value, ir.Global | ir.FreeVar) or (isinstance(value, ir.Expr) and value.op == "getattr")
        ]
        return any(name.startswith(("uint", "ulong")) for name in names)

    def only_counts(self, position: int) -> bool:
        """Whether a table is only used in sums."""
        waiting = [
            name
            for name, value in self._definitions.items()
            if isinstance(value, ir.Arg) and value.index == position + 1
        ]
        family = set(waiting)  # variables that are the table, one of its rows or one of its values
        sums: list[tuple[Any, str]] = []
        stores: list[tuple[tuple[int, int], Any]] = []
        while waiting:
            name = waiting.pop()
            for place, statement in self._uses.get(name, []):
                if isinstance(statement, ir.SetItem | ir.StaticSetItem):
                    stores.append((place, statement))
                    continue
                found = self._used_as(statement, name)
                if found is None:
                    return False
                if found == "sum":
                    sums.append((statement, name))
                elif found == "alias" and statement.target.name not in family:
                    family.add(statement.target.name)
                    waiting.append(statement.target.name)
        closing = {self._closing(statement, name): name for statement, name in sums}
        if not closing or len(sums) != len(stores) or {place for place, _ in stores} != set(closing):
            return False
        return all(close and self._is_at_once(name, close, stores) for close, name in closing.items())

    def _used_as(self, statement: Any, name: str) -> str | None:
        """Return the kind of a use of the table, of a row or of a value; None if it is not known to be harmless."""
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(value, ir.Var):
            return "alias"
        if not isinstance(value, ir.Expr):
            return None
        if value.op in _ITEMS and value.value.name == name and getattr(value.index, "name", None) != name:
            return "alias"
        if value.op in ("binop", "inplace_binop") and value.fn in _SUMS and value.lhs.name == name:
            return "sum" if self._is_integer(value.rhs.name, set()) else None
        if value.op == "getattr" and value.attr in known_functions.SHAPES:
            return "shape"
        if value.op == "call" and self._resolved(value.func.name) is len:
            return "shape"
        if value.op == "binop" and value.fn is operator.contains and value.lhs.name == name:
            table = self._origin(name)
            return "keys" if isinstance(table, ir.Arg) and self._kinds[table.index - 1].keyed else None
        return None

    def _closing(self, statement: Any, name: str) -> tuple[int, int] | None:
        """Return where a sum is stored: in the place from which its first operand was read, and nowhere else."""
        read = self._origin(name)
        uses = self._uses.get(statement.target.name, [])
        if not (isinstance(read, ir.Expr) and read.op in _ITEMS and len(uses) == 1):
            return None
        where, store = uses[0]
        if not isinstance(store, ir.SetItem | ir.StaticSetItem) or store.value.name != statement.target.name:
            return None
        same = self._same(read.value, store.target) and self._same(read.index, store.index)
        return where if same else None

    def _is_at_once(self, name: str, close: tuple[int, int], stores: list[tuple[tuple[int, int], Any]]) -> bool:
        """Whether nothing else is stored in the table between the reading of a value and the storing of the sum."""
        read = self._origin(name)  # the value that is read from the table
        uses = self._uses.get(read.value.name, [])
        reads = [place for place, statement in uses if getattr(statement, "value", None) is read]
        if len(reads) != 1:
            return False
        (block, number), (last_block, last) = reads[0], close
        if block == last_block:
            return not any(b == block and number < n < last for (b, n), _ in stores)
        return len(stores) == 1 and self._loops[block] == self._loops[last_block]

    def _origin(self, name: str) -> Any:
        """Return the definition of a variable, past assignments of one variable to another."""
        return self._definitions.get(self._source(name))

    def _source(self, name: str) -> str:
        """Return the variable of which one is a copy."""
        while isinstance(self._definitions.get(name), ir.Var):
            name = self._definitions[name].name
        return name

    def _same(self, one: Any, other: Any) -> bool:
        """Whether two operands are the same variable, or equal constants."""
        if isinstance(one, ir.Var) and isinstance(other, ir.Var):
            if self._source(one.name) == self._source(other.name):
                return True
            one, other = (self._constant(variable) for variable in (one, other))
        else:
            one, other = (self._constant(item) if isinstance(item, ir.Var) else item for item in (one, other))
        return type(one) is int and type(other) is int and one == other

    def _constant(self, variable: Any) -> Any:
        value = self._origin(variable.name)
        return value.value if isinstance(value, ir.Const) else None

    def _resolved(self, name: str) -> Any:
        return resolved(name, self._lists)

    def _is_integer(self, name: str, seen: set[str]) -> bool:
        """Whether a variable is certainly a signed integer of at most 64 bits, a bool, or a row of such."""
        if name in seen:
            return True  # a value that goes round a loop
        seen.add(name)
        value = self._definitions.get(name)
        every: Callable[[Collection[Any]], bool] = lambda items: all(self._is_integer(v.name, seen) for v in items)  # noqa: E731
        if isinstance(value, ir.Var):
            return self._is_integer(value.name, seen)
        if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
            return isinstance(value.value, bool | int) and -(1 << 63) <= value.value < 1 << 63
        if isinstance(value, ir.Arg):
            return value.index == 0 or value.index - 1 in self._integers
        if not isinstance(value, ir.Expr):
            return False
        if value.op == "phi":
            return every([v for v in value.incoming_values if v is not ir.UNDEFINED])
        if value.op in ("binop", "inplace_binop"):
            function = value.fn if value.op == "binop" else value.immutable_fn
            return function in _COMPARISONS or (function in _INTEGER_OPERATORS and every([value.lhs, value.rhs]))
        if value.op == "unary":
            return value.fn in _COMPARISONS or (value.fn in _INTEGER_OPERATORS and every([value.value]))
        if value.op in (*_ITEMS, "getattr"):
            return self._is_integer_item(value)
        if value.op == "pair_first":
            return self._counts_up(value)
        if value.op == "call" and not value.kws and value.vararg is None:
            function = self._resolved(value.func.name)
            return function is len or (function in _INTEGER_FUNCTIONS and every(value.args))
        return False

    def _is_integer_item(self, value: Any) -> bool:
        """Whether an item, or a field of a record, of a table is an integer; or the size of one of its axes."""
        of = self._origin(value.value.name)
        if value.op in _ITEMS and isinstance(of, ir.Expr) and of.op == "getattr" and of.attr == "shape":
            kind, through = self._table_of(of.value.name)
            return kind is not None and through is None and kind.field("shape") is None
        field = value.attr if value.op == "getattr" else value.index if isinstance(value.index, str) else None
        owner = value.value if field is not None else None
        kind, through = self._table_of(owner.name if owner is not None else value.value.name)
        if kind is None:
            return False
        if field is not None:
            found = kind.field(field)
            return through is None and found is not None and found.integer
        if through is not None:
            found = kind.field(through)
            return found is not None and found.integer
        return kind.integer

    def _table_of(self, name: str) -> tuple[TableKind | None, str | None]:
        """Return the table of which a variable is a part, and the field of its records that was selected."""
        value, field = self._origin(name), None
        while isinstance(value, ir.Expr) and value.op in (*_ITEMS, "getattr"):
            chosen = value.attr if value.op == "getattr" else value.index
            if isinstance(chosen, str):
                if field is not None:
                    return None, None
                field = chosen
            value = self._origin(value.value.name)
        if not isinstance(value, ir.Arg):
            return None, None
        return self._kinds.get(value.index - 1), field

    def _counts_up(self, pair: Any) -> bool:
        """Whether a variable takes the numbers of a range."""
        step = self._origin(pair.value.name)
        if not (isinstance(step, ir.Expr) and step.op == "iternext"):
            return False
        iterator = self._origin(step.value.name)
        if not (isinstance(iterator, ir.Expr) and iterator.op == "getiter"):
            return False
        numbers = self._origin(iterator.value.name)
        return isinstance(numbers, ir.Expr) and numbers.op == "call" and self._resolved(numbers.func.name) is range


def _read(statement: Any) -> list[str]:
    """Return the variables that a statement reads."""
    names = [variable.name for variable in statement.list_vars()]
    if isinstance(statement, ir.Assign):
        names.remove(statement.target.name)
    return sorted(set(names))
