"""Branches whose outcome is known only in the run, and the outcomes to record under so that no row is missed.

If the loop changes the condition of a branch, but not which rows its arms touch, reconnaissance can take both arms: it
records a superset of what any run touches. A block is *reached whenever the run reaches it* if every undecided branch
that determines whether it runs goes towards it, and no iteration of an enclosing loop is cut short. Iterations are
considered one by one (back edges to the head of such a loop are removed), as a fixed value is constant only within one
iteration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numba.core.controlflow import CFGraph

from strads.bodies.analysis.inlining import Branch
from strads.bodies.analysis.structure import directed_control, is_counted, raising_blocks, reachable

MAX_SETS = 4  # of outcomes with which reconnaissance runs each task

Outcomes = Mapping[Branch, bool]


@dataclass
class UndecidedBranches:
    """The branches of a body, some of which are undecided.

    Parameters
    ----------
    cfg, blocks
        The body.
    origins
        Source branch of each block; other branches are not to be chosen.
    is_undecided
        Whether the branch at the end of a block is undecided.
    """

    cfg: Any
    blocks: Mapping[int, Any]
    origins: Mapping[int, Branch]
    is_undecided: Callable[[int], bool]

    def __post_init__(self) -> None:
        self._loops = list(self.cfg.loops().values())
        self._control: dict[frozenset[int], dict[int, set[tuple[int, int]]]] = {}

    def towards(self, label: int) -> dict[int, int] | None:
        """Return undecided branches and their targets with which a block is reached whenever the run reaches it.

        None if there are no such targets.
        """
        loops = [loop for loop in self._loops if label in loop.body]
        control = self._control_within_a_turn(loops)
        sure = self._surely_towards(label, control)
        undecided = [pair for pair in _closure(control, [label]) if self.is_undecided(pair[0])]
        wanted = [*sure.items(), *(pair for pair in undecided if pair[0] not in sure)]
        for loop in loops:
            for branch in loop.body:
                outside = [target for target, _ in self.cfg.successors(branch) if target not in loop.body]
                if not outside:
                    continue
                if self.is_undecided(branch):
                    wanted += [(branch, target) for target, _ in self.cfg.successors(branch) if target in loop.body]
                    if len(outside) > 1:
                        return None
                    continue
                # The run may not reach this exit: then reconnaissance must not, either.
                inside = [pair for pair in _closure(control, [branch]) if pair[0] in loop.body]
                deciding = [pair for pair in inside if self.is_undecided(pair[0])]
                wanted += [self._other(*pair) for pair in deciding]
        found: dict[int, int] = {}
        for branch, target in wanted:
            if found.setdefault(branch, target) != target or not self._can_be_chosen(branch):
                return None
        return found

    def _surely_towards(self, label: int, control: Mapping[int, set[tuple[int, int]]]) -> dict[int, int]:
        """Return undecided branches and the targets from which a block is reached whatever the decided branches do.

        For example in `if a or b`, the path to b is another target of a, but is not needed.
        """
        found: dict[int, int] = {}
        waiting = [label]
        for block in waiting:
            for branch, target in sorted(control[block]):
                if branch not in found and branch != label and self.is_undecided(branch):
                    found[branch] = target
                    waiting.append(branch)
        return found

    def _control_within_a_turn(self, loops: list[Any]) -> dict[int, set[tuple[int, int]]]:
        heads = frozenset(loop.header for loop in loops)
        if heads not in self._control:
            self._control[heads] = directed_control(_without_back_edges(self.cfg, loops))
        return self._control[heads]

    def _can_be_chosen(self, branch: int) -> bool:
        """Whether reconnaissance can choose the outcome: it cannot choose when an iterator ends."""
        if branch not in self.origins or is_counted(self.blocks[branch]):
            return False
        return all(map(self.is_undecided, self._same(branch)))

    def _same(self, branch: int) -> list[int]:
        """Return the branches with the same source: those of a function that is called several times."""
        return [label for label, origin in self.origins.items() if origin == self.origins[branch]]

    def _other(self, branch: int, target: int) -> tuple[int, int]:
        return branch, next(other for other, _ in self.cfg.successors(branch) if other != target)

    def outcomes(self, need: Mapping[int, int]) -> dict[Branch, bool] | None:
        """Return the outcomes of source branches; None if one needs both, as in a function that is called twice."""
        found: dict[Branch, bool] = {}
        for branch, target in need.items():
            outcome = target == self.blocks[branch].body[-1].truebr
            if found.setdefault(self.origins[branch], outcome) != outcome:
                return None
        return found

    def quick(self) -> dict[Branch, bool]:
        """Return outcomes with which a task ends soon, for branches that can be chosen."""
        free = [b for b in self.blocks if self.is_undecided(b) and self._can_be_chosen(b) and len(self._same(b)) == 1]
        return self.outcomes({branch: self._quick(branch) for branch in free}) or {}

    def _quick(self, branch: int) -> int:
        """Return the target from which the end is closer."""
        post = self.cfg.post_dominators()
        raising = raising_blocks(self.blocks)
        last = self.blocks[branch].body[-1]
        for target, other in ((last.truebr, last.falsebr), (last.falsebr, last.truebr)):
            if raising & post[target] and not raising & post[other]:
                return int(other)
        for loop in self._loops:
            inside = [target for target in (last.truebr, last.falsebr) if target in loop.body]
            if branch in loop.body and len(inside) == 1:
                return int(last.truebr if inside == [last.falsebr] else last.falsebr)
        return int(last.falsebr)


class OutcomeSets:
    """Sets of outcomes that grow until each block has one that reaches it."""

    def __init__(self, branches: UndecidedBranches):
        self._branches = branches
        self._sets: list[dict[Branch, bool]] = [{}]
        self._reached: dict[int, bool] = {}

    def reach(self, label: int, most: int) -> bool:
        """Make some set reach a block, using at most `most` sets; returns whether that is possible."""
        if label not in self._reached:
            self._reached[label] = self._reach(label, most)
        return self._reached[label]

    def _reach(self, label: int, most: int) -> bool:
        need = self._branches.towards(label)
        outcomes = None if need is None else self._branches.outcomes(need)
        if outcomes is None:
            return False
        for found in self._sets:
            if all(found.get(branch, outcome) == outcome for branch, outcome in outcomes.items()):
                found.update(outcomes)
                return True
        if len(self._sets) >= most:
            return False
        self._sets.append(outcomes)
        return True

    def outcomes(self) -> tuple[Outcomes, ...]:
        """Return the sets; branches that a set leaves open get the outcome after which a task ends soon."""
        quick = self._branches.quick()
        return tuple({**quick, **found} for found in self._sets)


def _closure(control: Mapping[int, set[tuple[int, int]]], labels: list[int]) -> set[tuple[int, int]]:
    """Return the branches and targets that determine, directly or indirectly, whether blocks run."""
    blocks = reachable(labels, lambda label: (branch for branch, _ in control[label]))
    return set().union(*(control[label] for label in blocks))


def _without_back_edges(cfg: Any, loops: list[Any]) -> Any:
    """Return a graph in which an iteration of the given loops ends the task."""
    graph, end = CFGraph(), max(cfg.nodes()) + 1
    heads = {loop.header: loop.body for loop in loops}
    for label in cfg.nodes():
        graph.add_node(label)
    graph.add_node(end)
    for label in cfg.nodes():
        for target, data in cfg.successors(label):
            goes_back = target in heads and label in heads[target]
            graph.add_edge(label, end if goes_back else target, data)
    graph.set_entry_point(cfg.entry_point())
    graph.process()
    return graph
