"""Interactions of users with items, and their scores, in any input format."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from strads.dds import dvector
from strads.errors import ArgumentError, InputError
from strads.models._sparse_input import refuse_corrupt
from strads.models.interactions.column_names import choose
from strads.models.interactions.id_column import IdColumn

_FORMS = (
    "a SciPy sparse matrix, a table with columns such as user, item and {what} (a data frame, an Arrow table, a dict, "
    "records), or {pairs}"
)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of user and item, and their scores or weights.

    Attributes
    ----------
    users, items : IdColumn
    scores : ndarray of shape (n,) or None
        Numbers, as given.
    times : ndarray of shape (n,) or None
        When, in any unit.
    shape : tuple of int
        Of a sparse matrix: numbers of users and items that exist at least. Else (0, 0).
    records : dvector or None
        Records user, item, score that these are, unchanged.
    """

    users: IdColumn
    items: IdColumn
    scores: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    shape: tuple[int, int] = (0, 0)
    records: dvector | None = None

    @classmethod
    def of(cls, X: Any, y: Any = None, *, what: str = "score") -> Self:
        """Convert what a user gives.

        Parameters
        ----------
        X
            A SciPy sparse matrix or array, users × items, whose *stored* entries count: its positions are the ids. Or
            ids, whole numbers or texts: a table with columns for users, items, and perhaps scores and times, which are
            recognized by name (a data frame, an Arrow table, a dict of columns, a structured array, or a dvector of
            records); a pair (users, items); or an array of shape (n, 2).
        y
            Scores, shape (n,), if X does not hold them.
        what : str
            "score" if there must be scores, "weight" if there may be weights, "pair" if there are none.

        Raises
        ------
        ArgumentError, InputError
            For other types, and ids that are missing or neither whole numbers nor texts.
        """
        if isinstance(X, cls):
            return X
        forms = _FORMS.format(what=what, pairs="fit((users, items), scores)" if what == "score" else "(users, items)")
        table = columns_of(X)
        if y is not None and (isinstance(X, dvector) or scipy.sparse.issparse(X)):
            kind = "dvector" if isinstance(X, dvector) else "sparse matrix"
            raise ArgumentError(f"a {kind} of ratings holds its scores: leave y out")
        if scipy.sparse.issparse(X):
            refuse_corrupt(X)
            matrix = X.tocoo()
            return cls(IdColumn(matrix.row), IdColumn(matrix.col), _numbers(what, matrix.data), None, X.shape)
        if table is not None:
            return cls._of_table(X, table, y, what)
        if isinstance(X, dvector):
            raise ArgumentError(f"records need the fields user, item, {what}: give {forms}")
        if y is None and what == "score":
            raise ArgumentError(f"give ratings as {forms}")
        users, items = _pairs(X, forms)
        return cls(users, items, None if y is None else _scores_of(y, what, len(users)))

    @classmethod
    def _of_table(cls, X: Any, table: Mapping[str, Any], y: Any, what: str) -> Self:
        names = list(table)
        if y is not None and len(names) == 2:
            chosen = {"user": names[0], "item": names[1]}
        else:
            chosen = choose(
                names,
                scored=what == "score" and y is None,
                advice="rename the columns, or give (users, items), scores; one",
            )
        users, items = (IdColumn.of(role, table[chosen[role]]) for role in ("user", "item"))
        if len(users) != len(items):
            raise InputError(f"{len(users)} users, but {len(items)} items")
        scores = y if y is not None else table[chosen["score"]] if "score" in chosen else None
        times = table[chosen["timestamp"]] if "timestamp" in chosen else None
        is_ready = isinstance(X, dvector) and {"user", "item", "score"} <= set(names)
        return cls(
            users,
            items,
            None if scores is None else _scores_of(scores, what, len(users)),
            None if times is None else np.asarray(times),
            records=X if is_ready else None,
        )

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, rows: NDArray[Any]) -> "Interactions":
        """Return the given rows."""
        scores, times = (None if each is None else each[rows] for each in (self.scores, self.times))
        return Interactions(self.users[rows], self.items[rows], scores, times, self.shape)

    def pair(self, row: int) -> str:
        """Describe a row for messages."""
        return f"user {self.users.id_of(row)}, item {self.items.id_of(row)}"


def columns_of(X: Any) -> Mapping[str, Any] | None:
    """Return the columns of a table by name; None if it is none."""
    if isinstance(X, dvector):
        if X.dtype.names is None:
            return None
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        return None if X.dtype.names is None else {name: X[name] for name in X.dtype.names}
    if isinstance(X, Mapping):
        return {str(name): column for name, column in X.items()}
    if isinstance(X, pa.Table):
        return dict(zip(X.column_names, X.columns, strict=True))
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):  # data frames
        return {str(name): X[name] for name in X.columns}
    return None


def _pairs(X: Any, forms: str) -> tuple[IdColumn, IdColumn]:
    if isinstance(X, tuple) and len(X) == 2:
        columns: tuple[Any, ...] = X
    else:
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ArgumentError(f"pairs of user and item have the shape (n, 2), not {pairs.shape}: give {forms}")
        is_mixed = pairs.dtype.kind == "U" and isinstance(X, list)  # whole numbers have become texts
        columns = tuple(map(list, zip(*X, strict=True))) if is_mixed else (pairs[:, 0], pairs[:, 1])
    users, items = IdColumn.of("user", columns[0]), IdColumn.of("item", columns[1])
    if len(users) != len(items):
        raise InputError(f"{len(users)} users, but {len(items)} items")
    return users, items


def _scores_of(given: Any, what: str, count: int) -> NDArray[Any]:
    scores = _numbers(what, np.asarray(given))
    if len(scores) != count:
        raise InputError(f"{count} pairs of user and item, but {len(scores)} {what}s")
    return scores


def _numbers(what: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        raise ArgumentError(f"{what}s must be a one-dimensional array of numbers, not {values.ndim}-D {values.dtype}")
    return values
