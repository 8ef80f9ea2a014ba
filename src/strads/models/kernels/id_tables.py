"""Which ids occur, and their numbers, by tables that ids index: some nanoseconds a row."""

from numba import njit


@njit(nogil=True, cache=True)
def mark(ids, low, seen):  # type: ignore[no-untyped-def]
    """Set `seen[id - low]` to True for each of `ids`; `low` is at most the smallest of them."""
    for place in range(len(ids)):
        seen[ids[place] - low] = True


@njit(nogil=True, cache=True)
def renumber(ids, low, counts, numbers):  # type: ignore[no-untyped-def]
    """Set `numbers[i]` to the number of `ids[i]`, which is its position among the ids that occur, in ascending order.

    `counts[id - low]` is how many different ids up to this one occur; `counts` and `numbers` are int32.
    """
    for place in range(len(ids)):
        numbers[place] = counts[ids[place] - low] - 1
