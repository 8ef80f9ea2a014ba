"""Which users like which items, in any input format."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.dds.ragged import offsets_of, places_of
from strads.errors import ArgumentError, InputError
from strads.models.factorization.item_log import ItemLog
from strads.models.interactions.interactions import Interactions


@dataclass(frozen=True)
class Likes:
    """The items of user u are `items[offsets[u]:offsets[u + 1]]`, in ascending order, each once.

    Attributes
    ----------
    offsets : int64 ndarray of shape (n_users + 1,)
    items : int32 ndarray of shape (n,)
    n_items : int
        Number of items, including those that nobody likes.
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    n_items: int

    @classmethod
    def of(cls, users: NDArray[np.integer], items: NDArray[np.integer], shape: tuple[int, int]) -> Self:
        """Group pairs of rows, numbers of users and of items; repeated ones count once."""
        matrix = scipy.sparse.csr_array((np.ones(len(users), np.int8), (users, items)), shape=shape)
        matrix.sum_duplicates()
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), shape[1])

    @classmethod
    def of_matrix(cls, matrix: Any) -> Self:
        """Return what is not 0 in a sparse matrix of weights, users × items.

        Raises
        ------
        ArgumentError, InputError
            For negative, NaN or infinite weights.
        """
        likes = as_likes(matrix)
        return cls.of(likes.users.codes, likes.items.codes, matrix.shape)

    @classmethod
    def none(cls, n_users: int, n_items: int) -> Self:
        """Return the likes of users who like nothing."""
        return cls(np.zeros(n_users + 1, np.int64), np.zeros(0, np.int32), n_items)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.offsets) - 1

    @property
    def of_users(self) -> NDArray[np.int64]:
        """Number of items that each user likes, (n_users,)."""
        return np.diff(self.offsets)

    @property
    def of_items(self) -> NDArray[np.int64]:
        """Number of users who like each item, (n_items,)."""
        return np.bincount(self.items, minlength=self.n_items)

    def select(self, users: NDArray[np.integer]) -> "Likes":
        """Return the likes of some users, in the order given; a user may be named more than once."""
        return Likes(offsets_of(self.of_users[users]), self.items[places_of(self.offsets, users)], self.n_items)

    def among(self, items: NDArray[np.integer]) -> "Likes":
        """Return the likes among some items, which are numbered from 0 in the order given."""
        number_of = np.full(self.n_items, -1, np.int32)
        number_of[items] = np.arange(len(items))
        numbers = number_of[self.items]
        before = np.concatenate([[0], np.cumsum(numbers >= 0)])
        return Likes(before[self.offsets], numbers[numbers >= 0], len(items))

    def without(self, others: "Likes") -> "Likes":
        """Return the likes that are not among others, of the same users and items."""
        matrix, other = self.matrix(), others.matrix()
        rest = matrix - matrix.multiply(other)
        rest.eliminate_zeros()
        rest.sort_indices()
        return Likes(rest.indptr.astype(np.int64), rest.indices.astype(np.int32), self.n_items)

    def has(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which pairs of rows are likes; −1 is the row of nothing."""
        owners = np.repeat(np.arange(self.n_users), self.of_users)
        found = np.isin(users.astype(np.int64) * self.n_items + items, owners * self.n_items + self.items)
        return found & (users >= 0) & (items >= 0)

    def matrix(self) -> Any:
        """Return a sparse array of ones, users × items."""
        ones = np.ones(len(self.items), np.int8)
        return scipy.sparse.csr_array((ones, self.items, self.offsets), shape=(self.n_users, self.n_items))


@dataclass(frozen=True)
class KnownLikes:
    """All likes that a model has seen.

    Attributes
    ----------
    first : Likes
        Those of the last `fit`; here, in any order and perhaps repeated.
    later : ItemLog
        Those of batches since, of these and of further users and items, as often as they came.
    """

    first: Likes
    later: ItemLog

    def select(self, users: NDArray[np.integer], n_items: int) -> Likes:
        """Return the likes of some users, in the order given."""
        early = users < self.first.n_users
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int32))]
        if early.any():
            likes = self.first.select(users[early])
            found.append((np.repeat(np.flatnonzero(early), likes.of_users), likes.items))
        if len(self.later) and len(users):
            items = [self.later.of_user(int(user)) for user in users]
            found.append((np.repeat(np.arange(len(users)), [len(each) for each in items]), np.concatenate(items)))
        rows, columns = (np.concatenate(each) for each in zip(*found, strict=True))
        return Likes.of(rows, columns, (len(users), n_items))

    def all(self, n_users: int, n_items: int) -> Likes:
        """Return all likes of so many users and items."""
        early = np.repeat(np.arange(self.first.n_users), self.first.of_users)
        users = np.concatenate([early, self.later.users])
        return Likes.of(users, np.concatenate([self.first.items, self.later.items]), (n_users, n_items))


def check_rankable(likes: Likes, *, verify: bool) -> None:
    """Reject likes that rank nothing."""
    if len(likes.items) == 0:
        raise InputError("there are no likes: every weight is 0, or nothing was given")
    if likes.n_items < 2:
        raise InputError("there is only one item: nothing to rank it against")
    if verify and int(likes.of_users[likes.of_users > 0].min()) == likes.n_items:
        raise InputError(
            f"every user with likes likes all {likes.n_items} items: there is nothing to rank them against; "
            "leave out weak interactions, or set verify_negative_samples=False"
        )


def as_likes(X: Any) -> Interactions:
    """Return the entries of interactions whose weight is not 0, or that have none; see `Interactions.of`.

    Raises
    ------
    ArgumentError, InputError
        For other types, negative, NaN or infinite weights, and ids that are none.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        raise ArgumentError(
            "interactions are a SciPy sparse matrix, a table of users and items, a pair (users, items) or an array of "
            "shape (n, 2); convert an array of weights with scipy.sparse.csr_array(weights)"
        )
    given = Interactions.of(X, what="weight")
    weights = given.scores
    if weights is None:
        return given
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        user, item = given.users.id_of(row), given.items.id_of(row)
        raise InputError(
            f"user {user} has item {item} with the weight {weights[row]}: weights are 0 or positive; leave out what a "
            "user dislikes"
        )
    return given if weights.all() else given[weights != 0]
