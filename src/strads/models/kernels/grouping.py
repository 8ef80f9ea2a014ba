"""Counting sort of what belongs to users, blocks, or other things that are numbered from 0."""

from numba import njit


@njit(nogil=True, cache=True)
def group_by_key(keys, values, others, offsets, grouped, grouped_others):  # type: ignore[no-untyped-def]
    """Group two columns by key: `grouped[offsets[k]:offsets[k + 1]]` become the values of key k, in the order they had.

    `offsets` is initially all zeros, with one more element than there are keys. The second column and its result may
    be None.
    """
    for key in keys:
        offsets[key + 1] += 1
    for key in range(len(offsets) - 1):
        offsets[key + 1] += offsets[key]
    places = offsets[:-1].copy()
    for row in range(len(keys)):
        key = keys[row]
        grouped[places[key]] = values[row]
        if others is not None:
            grouped_others[places[key]] = others[row]
        places[key] += 1
