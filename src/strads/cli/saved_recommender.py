"""A saved model of users and items, and the ids that a user of the command line gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from strads.cli.interactions_file import read_interactions
from strads.cli.interactions_options import FileFormat
from strads.cli.terminal import first_of
from strads.errors import InputError
from strads.models.corpora.documents import read_lines
from strads.models.interactions.id_column import IdColumn, is_whole_number
from strads.models.interactions.interactions import Interactions


@dataclass(frozen=True)
class Pairs:
    """Users and items in a file."""

    given: Interactions  # with all ids of the file; whole numbers are texts if the model's ids are
    known: Interactions  # with ids of the model's type: a text that is no number becomes an unknown number
    where: Callable[[int], str]  # the file and line of a pair, for errors


def read_pairs(path: Path, form: FileFormat, model: Any, *, scored: bool | None = False) -> Pairs:
    """Read users, items and perhaps scores, with ids as the model has them: "7" is 7 if its ids are numbers."""
    content = read_interactions(path, form, scored=scored)
    found = content.interactions
    if model.user_ids_.dtype == object:
        found = replace(found, users=found.users.with_texts())
    if model.item_ids_.dtype == object:
        found = replace(found, items=found.items.with_texts())
    users, items = _like(found.users, model.user_ids_), _like(found.items, model.item_ids_)
    return Pairs(found, replace(found, users=users, items=items), content.where)


def ids_of(texts: Sequence[str], known: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return ids that options name, as the model has them.

    Raises
    ------
    InputError
        If the model has numbers and one is none.
    """
    if known.dtype == object:
        return np.array([*texts, None], object)[:-1]
    wrong = next((text for text in texts if not is_whole_number(text)), None)
    if wrong is not None:
        raise InputError(f"the {kind} ids of the model are whole numbers: {wrong!r} is not one")
    return np.array([int(text) for text in texts], np.int64)


def read_ids(path: Path, known: NDArray[Any], kind: str) -> NDArray[Any]:
    """Read ids, one per line, as the model has them; each once, in the order of the file."""
    texts = list(dict.fromkeys(filter(None, map(str.strip, read_lines(path)))))
    if not texts:
        raise InputError(f"{path}: there are no ids: give one {kind} id a line")
    try:
        return ids_of(texts, known, kind)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def only_known(ids: NDArray[Any], is_known: NDArray[np.bool_], kind: str, notes: Console) -> NDArray[Any]:
    """Return the known ids, and say which are left out."""
    if not is_known.all():
        rest = list(dict.fromkeys(ids[~is_known].tolist()))
        count = f"{len(rest):,} {kind}s were" if len(rest) > 1 else f"1 {kind} was"
        notes.print(f"{count} not in the training data and left out: {first_of(rest)}", soft_wrap=True, markup=False)
    return ids[is_known]


def _like(column: IdColumn, known: NDArray[Any]) -> IdColumn:
    if known.dtype == object or column.distinct is None or not column.are_texts:
        return column
    taken = set(known.tolist())
    unknown = next(number for number in range(len(taken) + 1) if number not in taken)
    numbers = [int(text) if is_whole_number(text) else unknown for text in column.distinct.tolist()]
    return IdColumn(np.array(numbers, np.int64)[column.codes])
