"""Facts about the control flow of a function: what decides whether a block runs, and what runs before it."""

from typing import Any

from numba.core import ir


def controlling_branches(cfg: Any) -> dict[int, set[int]]:
    """Return for each block the blocks whose branch decides whether it runs (Ferrante et al. 1987)."""
    post = cfg.post_dominators()
    result: dict[int, set[int]] = {label: set() for label in cfg.nodes()}
    for branch in cfg.nodes():
        targets = [target for target, _ in cfg.successors(branch)]
        if len(targets) < 2:
            continue
        for target in targets:
            for label in post[target] - (post[branch] - {branch}):
                result[label].add(branch)
    return result


def endless_exits(cfg: Any, blocks: dict[int, Any]) -> set[int]:
    """Return the blocks whose branch may leave a `while` loop; a `for` loop ends whatever the values are."""
    return {
        label
        for loop in cfg.loops().values()
        if not is_counted(blocks[loop.header])
        for label in loop.body
        if any(target not in loop.body for target, _ in cfg.successors(label))
    }


def is_counted(header: Any) -> bool:
    """Whether the block that begins a loop takes the next element of something."""
    return any(
        isinstance(statement.value, ir.Expr) and statement.value.op == "iternext"
        for statement in header.find_insts(ir.Assign)
    )


def raising_blocks(blocks: dict[int, Any]) -> set[int]:
    """Return the blocks that end with an exception."""
    return {label for label, block in blocks.items() if isinstance(block.body[-1], ir.Raise | ir.StaticRaise)}
