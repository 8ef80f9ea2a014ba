"""Linked lists of each user's entries in a log: `last[user]` is the last one, `before[entry]` the previous one; or −1.

`users` and `items` hold the user and the item of an entry (int32); entry numbers, in `before` and `last`, are int64.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def link(users, start, before, last):  # type: ignore[no-untyped-def]
    """Add entries of these users, numbered from `start`, to the chains."""
    for place in range(len(users)):
        before[start + place] = last[users[place]]
        last[users[place]] = start + place


@njit(nogil=True, cache=True)
def unlink(users, count, before, last):  # type: ignore[no-untyped-def]
    """Take the entries from number `count` on out of the chains; only `last` changes, `before` is to be cut afterwards.

    `users` has the user of every entry, including those that stay. Entries that are in no chain yet, as after an
    interrupt, are passed over.
    """
    for entry in range(len(users) - 1, count - 1, -1):
        user = users[entry]
        if user < len(last) and last[user] == entry:
            last[user] = before[entry]


@njit(nogil=True, cache=True)
def walk(items, before, entry):  # type: ignore[no-untyped-def]
    """Return the items of a chain, from an entry backwards."""
    count, place = 0, entry
    while place >= 0:
        count += 1
        place = before[place]
    found = np.empty(count, np.int32)
    for k in range(count):
        found[k] = items[entry]
        entry = before[entry]
    return found
