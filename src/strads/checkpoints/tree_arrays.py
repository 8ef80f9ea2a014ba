"""The names of arrays in a tree."""

from collections.abc import Callable, Iterator

from strads.checkpoints.trees import Tree


def renamed(tree: Tree, name_of: Callable[[str], str]) -> Tree:
    """Return a tree with other names of its arrays."""
    if isinstance(tree, list):
        return [renamed(item, name_of) for item in tree]
    if isinstance(tree, dict):
        if isinstance(tree.get("array"), str):
            return {"array": name_of(tree["array"])}
        return {key: renamed(item, name_of) for key, item in tree.items()}
    return tree


def arrays_in(tree: Tree) -> Iterator[str]:
    """Return the names of all arrays of a tree."""
    if isinstance(tree, list):
        for item in tree:
            yield from arrays_in(item)
    elif isinstance(tree, dict):
        if isinstance(tree.get("array"), str):
            yield tree["array"]
        else:
            for item in tree.values():
                yield from arrays_in(item)
