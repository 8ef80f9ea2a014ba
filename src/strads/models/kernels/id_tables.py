"""Which ids occur, and their numbers, by tables that ids index: some nanoseconds a row."""

from numba import njit


@njit(nogil=True, cache=True)
def mark(ids, low, seen):  # type: ignore[no-untyped-def]
    """Set `seen[id - low]` for each id."""
    for place in range(len(ids)):
        seen[ids[place] - low] = True


@njit(nogil=True, cache=True)
def renumber(ids, low, counts, numbers):  # type: ignore[no-untyped-def]
    """Set the number of each id, given how many ids up to each one occur."""
    for place in range(len(ids)):
        numbers[place] = counts[ids[place] - low] - 1
