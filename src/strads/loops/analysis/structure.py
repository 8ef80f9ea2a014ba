"""Facts about a function's IR that hold whatever its variables are: control dependence, assignments."""

from collections import Counter
from typing import Any

from numba.core import ir


def controlling_branches(cfg: Any) -> dict[int, set[tuple[int, int]]]:
    """Control dependence (Ferrante et al. 1987): the branches that decide whether a block runs.

    A branch is a pair: the block that ends with it, and the block that it goes to.
    """
    post = cfg.post_dominators()
    result: dict[int, set[tuple[int, int]]] = {label: set() for label in cfg.nodes()}
    for branch in cfg.nodes():
        targets = [target for target, _ in cfg.successors(branch)]
        if len(targets) < 2:
            continue
        for label in cfg.nodes():
            if label in post[branch] and label != branch:
                continue
            result[label] |= {(branch, target) for target in targets if label in post[target]}
    return result


def count_assignments(function_ir: Any) -> Counter[str]:
    """Return how often each variable is assigned."""
    return Counter(
        statement.target.name
        for block in function_ir.blocks.values()
        for statement in block.body
        if isinstance(statement, ir.Assign)
    )
