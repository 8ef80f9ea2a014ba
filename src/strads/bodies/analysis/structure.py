"""Control flow of a function: what determines whether a block runs, and what runs before it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from numba.core import ir

Node = TypeVar("Node", int, str)


def reachable(starts: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """Return the nodes of a graph that lie on ways from some of them, these included."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def leaving(cfg: Any, loop: Any) -> set[int]:
    """Return the blocks of a loop whose branch may leave it."""
    return {label for label in loop.body if any(target not in loop.body for target, _ in cfg.successors(label))}


def directed_control(cfg: Any) -> dict[int, set[tuple[int, int]]]:
    """Return, for each block, the branches that determine whether it runs, and the targets with which it does.

    These are its control dependences (Ferrante et al. 1987).
    """
    post = cfg.post_dominators()
    result: dict[int, set[tuple[int, int]]] = {label: set() for label in cfg.nodes()}
    for branch in cfg.nodes():
        targets = [target for target, _ in cfg.successors(branch)]
        if len(targets) < 2:
            continue
        for target in targets:
            for label in post[target] - (post[branch] - {branch}):
                result[label].add((branch, target))
    return result


def controlling_branches(cfg: Any) -> dict[int, set[int]]:
    """Return, for each block, the blocks whose branch determines whether it runs."""
    return {label: {branch for branch, _ in pairs} for label, pairs in directed_control(cfg).items()}


def while_loops(cfg: Any, blocks: Mapping[int, Any]) -> list[Any]:
    """Return the `while` loops, which may never end; a `for` loop always does."""
    return [loop for loop in cfg.loops().values() if not begins_counted(loop.header, blocks)]


def exits_of_while_loops(cfg: Any, blocks: Mapping[int, Any]) -> set[int]:
    """Return the blocks whose branch may leave a `while` loop: none, if it never ends."""
    return set().union(*(leaving(cfg, loop) for loop in while_loops(cfg, blocks)))


def begins_counted(header: int, blocks: Mapping[int, Any]) -> bool:
    """Whether the header of a loop takes the next element of an iterator, or only leads to a block that does."""
    first = blocks[header].body[0]
    return is_counted(blocks[first.target if isinstance(first, ir.Jump) else header])


def is_counted(block: Any) -> bool:
    """Whether a block takes the next element of an iterator."""
    return any(
        isinstance(statement.value, ir.Expr) and statement.value.op == "iternext"
        for statement in block.find_insts(ir.Assign)
    )


def raising_blocks(blocks: Mapping[int, Any]) -> set[int]:
    """Return the blocks that end with an exception."""
    return {label for label, block in blocks.items() if isinstance(block.body[-1], ir.Raise | ir.StaticRaise)}


class Iterations:
    """Which loop iterations of a function a block, or a value, belongs to."""

    def __init__(self, cfg: Any, blocks: Mapping[int, Any]):
        self._cfg = cfg
        self._loops = list(cfg.loops().values())
        self._home = {s.target.name: label for label, block in blocks.items() for s in block.find_insts(ir.Assign)}
        self._implied: dict[tuple[int, int], bool] = {}

    def left_between(self, name: str, label: int) -> set[int]:
        """Return the exit blocks of the loops that contain the assignment of a variable but not the given block."""
        home = self._home.get(name)
        left = [loop for loop in self._loops if home in loop.body and label not in loop.body]
        return set().union(*(leaving(self._cfg, loop) for loop in left))

    def is_implied(self, branch: int, label: int) -> bool:
        """Whether the execution of a block implies the last outcome of a branch.

        It does if, within an iteration of the loops around both, the block can be reached after only one outcome.
        """
        if (branch, label) not in self._implied:
            around = [loop for loop in self._loops if {branch, label} <= loop.body]
            inner = min(around, key=lambda loop: len(loop.body), default=None)
            within = set(self._cfg.nodes()) if inner is None else inner.body - {inner.header}
            targets = {target for target, _ in self._cfg.successors(branch)}
            reaching = [target for target in targets if self._reaches(target, label, within - {branch})]
            self._implied[branch, label] = len(reaching) <= 1
        return self._implied[branch, label]

    def _reaches(self, start: int, end: int, within: set[int]) -> bool:
        def following(label: int) -> list[int]:
            return [target for target, _ in self._cfg.successors(label)] if label in within else []

        return end in reachable([start], following)
