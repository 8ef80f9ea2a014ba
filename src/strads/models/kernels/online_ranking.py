"""The other items of triples, drawn from lists of likes that grow."""

import numpy as np
from numba import njit

from strads.rng.philox import below, random_words


@njit(nogil=True, cache=True)
def draw_others(users, offsets, items, later_items, before, last, verify, key, others):  # type: ignore[no-untyped-def]
    """Draw an item for each like: the item of any like, so with a probability proportional to its likes.

    Parameters
    ----------
    users : int32 ndarray of shape (n,)
        The user of each like.
    offsets, items : int64 ndarray of shape (users + 1,), int32 ndarray
        Likes of the first users: those of user u are `items[offsets[u]:offsets[u + 1]]`, ascending.
    later_items, before, last : int32, int64, int64 ndarrays
        Further likes; see `item_chains`.
    verify : bool
        Whether −1 takes the place of an item that the user likes.
    key : uint64
    others : int32 ndarray of shape (n,)
        Receives the items.
    """
    count = len(items) + len(later_items)
    for k in range(len(users)):
        place = below(random_words(key, np.uint64(0), np.uint64(k))[0], count)
        other = items[place] if place < len(items) else later_items[place - len(items)]
        if verify:
            user = users[k]
            found = False
            if user + 1 < len(offsets):
                listed = items[offsets[user] : offsets[user + 1]]
                spot = np.searchsorted(listed, other)
                found = spot < len(listed) and listed[spot] == other
            entry = last[user] if user < len(last) else np.int64(-1)
            while entry >= 0 and not found:
                found = later_items[entry] == other
                entry = before[entry]
            if found:
                other = np.int32(-1)
        others[k] = other
