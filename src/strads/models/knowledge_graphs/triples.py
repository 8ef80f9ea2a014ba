"""Triples (head, relation, tail) as the user has them, and as numbers of entities and relations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from strads.dds.files import check_announced
from strads.errors import ArgumentError, InputError
from strads.models._warnings import warn
from strads.models.interactions.interactions import columns_of

_COLUMNS = ("head", "relation", "tail")
_NAMES = (_COLUMNS, ("h", "r", "t"), ("subject", "predicate", "object"))
_LARGEST = 2**31 - 1

Names = NDArray[Any]  # labels by number: strings, or 0, 1, 2, …


def as_columns(triples: Any, what: str = "triples") -> NDArray[Any]:
    """Return triples as an array of shape (n, 3), of int64 ids or of str objects; columns of tables are found by name.

    Raises
    ------
    ArgumentError, InputError
        If they are anything else; names the row, or the columns.
    """
    table = columns_of(triples)
    if table is not None:
        found = _of_table(table, what)
    else:
        found = np.asarray(triples if hasattr(triples, "shape") else _rows(triples, what))
    if found.ndim != 2 or found.shape[1] != 3:
        raise ArgumentError(f"{what} have the shape {found.shape}: give (n, 3), columns head, relation and tail")
    if not len(found):
        raise InputError(f"{what} are empty")
    if found.dtype.kind in "iu":
        if found.min() < 0 or found.max() > _LARGEST:
            row = int(np.argmax(((found < 0) | (found > _LARGEST)).any(1)))
            raise InputError(f"{what}: row {row} is {tuple(found[row].tolist())}; ids are 0, 1, 2, … up to {_LARGEST}")
        return found.astype(np.int64)
    if found.dtype.kind == "f":
        raise ArgumentError(f"{what} are {found.dtype}: give integer ids, or strings")
    labels = found.astype(object)
    for row, each in enumerate(labels):
        for column, label in zip(_COLUMNS, each, strict=True):
            if not isinstance(label, str) or not label:
                raise InputError(f"{what}: row {row} has the {column} {label!r}: give strings, or integer ids only")
    return labels


def places_of_columns(names: Sequence[str]) -> list[int] | None:
    """Return where head, relation and tail are among columns of these names; None if that cannot be told."""
    known = [name.lower() for name in names]
    chosen = next((each for each in _NAMES if all(known.count(name) == 1 for name in each)), None)
    return None if chosen is None else [known.index(name) for name in chosen]


def _of_table(table: Mapping[str, Any], what: str) -> NDArray[Any]:
    names = list(table)
    is_unnamed = names == ["0", "1", "2"]  # as pandas numbers the columns of a file without a header
    places = [0, 1, 2] if is_unnamed else places_of_columns(names)
    if places is None:
        raise InputError(
            f"{what} have the columns {', '.join(map(repr, names))}: name those of head, relation and tail so, "
            "or h, r, t, or subject, predicate, object; or give an array of shape (n, 3)"
        )
    columns = [np.asarray(table[names[place]]) for place in places]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise InputError(f"{what} have columns of the shapes {', '.join(str(column.shape) for column in columns)}")
    return np.stack(columns, 1, dtype=None if all(column.dtype.kind in "iuf" for column in columns) else object)


def _rows(triples: Any, what: str) -> NDArray[Any]:
    if isinstance(triples, str | bytes) or not isinstance(triples, Sequence):
        raise ArgumentError(f"{what} are a {type(triples).__name__}: give an array or a list of (head, relation, tail)")
    rows = [tuple(each) if isinstance(each, list | tuple | np.ndarray) else (each,) for each in triples]
    for number, row in enumerate(rows):
        if len(row) != 3:
            raise InputError(f"{what}: row {number} has {len(row)} values: give head, relation and tail")
    whole = all(isinstance(value, int | np.integer) and not isinstance(value, bool) for row in rows for value in row)
    return np.array(rows, np.int64 if whole else object).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Labels:
    """The entities, or the relations, that a model knows.

    Attributes
    ----------
    names : ndarray of shape (n,)
        Label of each number: str objects, or the numbers themselves.
    kind
        "entity" or "relation", for messages.
    """

    names: Names
    kind: str

    @classmethod
    def of(cls, found: NDArray[Any], given: Any, kind: str) -> Self:
        """Return the labels that a user gives (a number of them, or a list), or those that training triples have.

        Raises
        ------
        ArgumentError, InputError
            For other labels; for ids of training triples far beyond their number.
        """
        if given is None:
            if found.dtype == object:
                return cls(np.array(sorted(set(found.ravel().tolist())), object), kind)
            count = int(found.max()) + 1
            check_announced("triples", {f"ids of kind {kind}": count}, len(found))
            return cls(np.arange(count), kind)
        if isinstance(given, int | np.integer) and not isinstance(given, bool):
            if found.dtype == object:
                raise ArgumentError(f"{kind}: triples of strings need a list of labels, not the number {given}")
            if not 0 < given <= _LARGEST:
                raise ArgumentError(f"{given} as the number of labels of kind {kind}: give 1 or more")
            return cls(np.arange(int(given)), kind)
        return cls(_checked(given, kind), kind)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def are_strings(self) -> bool:
        """Whether labels are strings rather than numbers."""
        return bool(self.names.dtype == object)

    def numbers(self, labels: NDArray[Any], what: str) -> NDArray[np.int64]:
        """Return the numbers of labels; numbers stay as they are.

        Raises
        ------
        InputError
            For a label that is unknown, or a number out of range; names it.
        """
        if labels.dtype != object:
            wrong = (labels < 0) | (labels >= len(self))
            if wrong.any():
                place = int(np.argmax(wrong))
                raise self._unknown(f"{what} {place}: {self.kind} {labels.flat[place]} is outside 0 … {len(self) - 1}")
            return labels.astype(np.int64)
        if not self.are_strings:
            raise InputError(f"{what} 0: the {self.kind} {labels.flat[0]!r} is a string, but the model has ids")
        order = self._order
        try:
            return np.array([order[label] for label in labels.tolist()], np.int64)
        except KeyError as error:
            place = labels.tolist().index(error.args[0])
            raise self._unknown(f"{what} {place}: there is no {self.kind} {error.args[0]!r}") from None

    def _unknown(self, problem: str) -> InputError:
        advice = "leave it out, or name all of them in fit(…, entities=…, relations=…)"
        return InputError(f"{problem} in what the model was fitted to: {advice}")

    @cached_property
    def _order(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names.tolist())}


def _checked(given: Any, kind: str) -> Names:
    names = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else None
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError(f"labels of kind {kind}: give a list of strings, or how many there are")
    if len(set(names)) < len(names):
        raise InputError(f"labels of kind {kind}: {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return np.array([str(name) for name in names], object)


def to_numbers(triples: NDArray[Any], entities: Labels, relations: Labels, what: str) -> NDArray[np.int32]:
    """Return triples of `as_columns` as numbers of entities and relations, int32 of shape (n, 3)."""
    columns = (entities, relations, entities)
    found = [labels.numbers(triples[:, place], f"{what}: row") for place, labels in enumerate(columns)]
    return np.stack(found, 1).astype(np.int32)


def without_duplicates(triples: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return triples of numbers, each once, in the order of their first occurrence; warns of duplicates."""
    order = np.lexsort(triples.T)
    ordered = triples[order]
    repeated = np.concatenate([[False], (ordered[1:] == ordered[:-1]).all(1)])
    if not repeated.any():
        return triples
    count = int(repeated.sum())
    which = "1 triple is a duplicate" if count == 1 else f"{count:,} triples are duplicates"
    warn(f"{which} of others, and left out")
    return triples[np.sort(order[~repeated])]
