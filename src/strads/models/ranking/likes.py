"""Which users like which items, in any input format."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from strads.dds import dvector
from strads.errors import ArgumentError, InputError
from strads.models.factorization.ratings import as_pairs, check_ids

_MAX_ID = np.iinfo(np.int32).max
_WEIGHT_FIELDS = ("weight", "score", "rating")


@dataclass(frozen=True)
class Likes:
    """The items of user u are `items[offsets[u]:offsets[u + 1]]`, in ascending order, each once.

    Attributes
    ----------
    offsets : int64 ndarray of shape (n_users + 1,)
    items : int32 ndarray of shape (n,)
    n_items : int
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    n_items: int

    @classmethod
    def of(cls, X: Any, shape: tuple[int, int] | None = None) -> Self:
        """Convert interactions; those of weight 0 are left out, repeated ones count once.

        Parameters
        ----------
        X
            A SciPy sparse matrix or array of weights, users × items; an integer array of pairs, shape (n, 2), or a
            pair of arrays (users, items); or a dvector of records with the fields user, item and, if there are
            weights, weight, score or rating.
        shape
            Numbers of users and items; by default those of the matrix, or up to the largest ids.

        Raises
        ------
        ArgumentError, InputError
            For other types, negative, NaN or infinite weights, and ids that are negative or outside the shape.
        """
        users, items, weights = _entries(X)
        known = shape or (_MAX_ID, _MAX_ID)
        check_ids("user", users, known[0])
        check_ids("item", items, known[1])
        if weights is not None:
            _check_weights(users, items, weights)
            users, items = users[weights != 0], items[weights != 0]
        if shape is None:
            shape = X.shape if scipy.sparse.issparse(X) else (_count(users), _count(items))
        n_users, n_items = shape
        matrix = scipy.sparse.csr_array((np.ones(len(users), np.int8), (users, items)), shape=(n_users, n_items))
        matrix.sum_duplicates()
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), n_items)

    @classmethod
    def from_arrays(cls, offsets: NDArray[Any], items: NDArray[Any], n_items: int) -> Self:
        """Wrap arrays from a file.

        Raises
        ------
        ValueError
            If they are no such lists, or of another dtype.
        """
        rising = (
            offsets.ndim == 1 and len(offsets) > 0 and items.dtype == np.int32 and bool((np.diff(offsets) >= 0).all())
        )
        in_range = len(items) == 0 or (items.min() >= 0 and items.max() < n_items)
        if not (rising and in_range and offsets[0] == 0 and offsets[-1] == len(items)):
            raise ValueError("the liked items do not fit together")
        return cls(offsets, items, n_items)

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
        counts = self.of_users[users]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[users] - offsets[:-1], counts)
        return Likes(offsets, self.items[places], self.n_items)

    def extended(self, shape: tuple[int, int]) -> "Likes":
        """Return the same likes of more users and items."""
        more = np.full(shape[0] - self.n_users, self.offsets[-1])
        return Likes(np.concatenate([self.offsets, more]), self.items, shape[1])

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

    def matrix(self) -> Any:
        """Return a sparse array of ones, users × items."""
        ones = np.ones(len(self.items), np.int8)
        return scipy.sparse.csr_array((ones, self.items, self.offsets), shape=(self.n_users, self.n_items))


def with_validation(user_items: Any, validation: Any) -> tuple[Likes, Likes | None]:
    """Return likes and held-out likes of as many users and items as either has."""
    likes = Likes.of(user_items)
    if validation is None:
        return likes, None
    held_out = Likes.of(validation)
    shape = max(likes.n_users, held_out.n_users), max(likes.n_items, held_out.n_items)
    return likes.extended(shape), held_out.extended(shape)


def check_rankable(likes: Likes, *, verify: bool) -> None:
    """Reject likes that rank nothing."""
    if len(likes.items) == 0:
        raise InputError("there are no likes: every weight is 0, or nothing was given")
    if likes.n_items < 2:
        raise InputError("there is one item only: nothing to rank it against")
    if verify and int(likes.of_users[likes.of_users > 0].min()) == likes.n_items:
        raise InputError(
            f"every user with likes likes all {likes.n_items} items: there is nothing to rank them against; "
            "leave out weak interactions, or set verify_negative_samples=False"
        )


def interactions(X: Any) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[int, int]]:
    """Return users and items of likes, each pair once, and the shape of the matrix, or up to the largest ids.

    Takes time in proportion to the likes, whatever the ids are. Parameters and errors are those of `Likes.of`.
    """
    users, items, weights = _entries(X)
    check_ids("user", users, _MAX_ID)
    check_ids("item", items, _MAX_ID)
    if weights is not None:
        _check_weights(users, items, weights)
        users, items = users[weights != 0], items[weights != 0]
    pairs = np.unique(users.astype(np.int64) << 32 | items.astype(np.int64))
    shape = X.shape if scipy.sparse.issparse(X) else (_count(users), _count(items))
    return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32), shape


def _entries(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Users, items and weights of the interactions."""
    if scipy.sparse.issparse(X):
        matrix = X.tocoo()
        return matrix.row, matrix.col, matrix.data
    if isinstance(X, dvector) and X.dtype.names is not None:
        names = X.dtype.names
        if not {"user", "item"} <= set(names) or any(X.dtype[name].kind not in "iu" for name in ("user", "item")):
            raise ArgumentError(f"records of interactions have whole numbers user and item, not {', '.join(names)}")
        data = X.to_numpy()
        weight = next((name for name in _WEIGHT_FIELDS if name in names), None)
        return data["user"], data["item"], None if weight is None else data[weight]
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        raise ArgumentError(
            "interactions are a SciPy sparse matrix, whole numbers of shape (n, 2), a pair (users, items) or a dvector "
            "of records; of an array of weights make scipy.sparse.csr_array(weights)"
        )
    users, items = as_pairs(X)
    return users, items, None


def _check_weights(users: NDArray[Any], items: NDArray[Any], weights: NDArray[Any]) -> None:
    if weights.dtype.kind not in "fiub":
        raise ArgumentError(f"weights must be numbers, not {weights.dtype}")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"user {users[first]} has item {items[first]} with the weight {weights[first]}: "
            "weights are 0 or positive; leave out what a user dislikes"
        )


def _count(ids: NDArray[np.integer]) -> int:
    return int(ids.max()) + 1 if len(ids) else 0
