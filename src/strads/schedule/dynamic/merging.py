"""The order in which workers' results are merged: a tree over the workers, the same for any number of nodes.

Floating-point sums depend on the order of summation. A node merges the subtrees whose workers are all its own, to
keep traffic low, and the coordinator merges the rest of the tree: the sums are the same wherever the workers are.
"""

from collections.abc import Callable, Mapping
from typing import Any

Range = tuple[int, int]  # half-open range of workers


def own_subtrees(workers: Range, own: Range) -> list[Range]:
    """Return the maximal subtrees of the tree over `workers` that lie in `own`: at most 2 log₂ of their number."""
    low, high = workers
    if own[0] <= low and high <= own[1]:
        return [workers]
    if high <= own[0] or own[1] <= low:
        return []
    middle = (low + high) // 2
    return own_subtrees((low, middle), own) + own_subtrees((middle, high), own)


def merge_subtree(workers: Range, results: Mapping[Range, Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Return the merged result of the tree over `workers`, given the results of subtrees.

    Raises
    ------
    KeyError
        If a worker is in none of the given subtrees.
    """
    if workers in results:
        return results[workers]
    low, high = workers
    if high - low == 1:
        raise KeyError(workers)
    middle = (low + high) // 2
    earlier = merge_subtree((low, middle), results, merge)
    return merge(earlier, merge_subtree((middle, high), results, merge))
