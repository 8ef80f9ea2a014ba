"""Reading of triples: labels separated by tabs, or the numbered files of OpenKE; compressed or not."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.errors import InputError
from strads.models.corpora.documents import read_lines
from strads.models.knowledge_graphs.triples import places_of_columns


def read_triples(path: Any) -> NDArray[Any]:
    """Read the triples of a file, plain or compressed with gzip, bz2, zstd or lz4.

    Parameters
    ----------
    path : str or path
        Lines of head, relation and tail as labels, separated by tabs, after a header or without one: head, relation and
        tail, or h, r, t, or subject, predicate, object, in any order. Or OpenKE's format (`train2id.txt`): the number
        of triples on the first line, then lines of head, tail and relation as ids from 0.

    Returns
    -------
    ndarray of shape (n, 3)
        Head, relation and tail: str objects, or int64 ids.

    Raises
    ------
    InputError
        If the file is missing, empty or corrupt, or at a line that is no triple or not UTF-8; names file and line.
    """
    lines = ((number, line) for number, line in enumerate(read_lines(path), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path}: there are no triples")
    if _is_id(first[1].strip()):
        return _read_numbered(path, first, lines)
    places = places_of_columns(_labels(path, *first))
    found = [_labels(path, number, line) for number, line in (lines if places else chain([first], lines))]
    if not found:
        raise InputError(f"{path}: there are no triples")
    return np.array(found, object)[:, places or [0, 1, 2]]


def read_labels(path: Any) -> list[str]:
    """Read the labels of entities or relations in OpenKE's format (`entity2id.txt`): the number of labels, then lines
    of a label, a tab and its id.

    Raises
    ------
    InputError
        As `read_triples`, and if ids are missing, or ids or labels occur twice.
    """
    lines = ((number, line) for number, line in enumerate(read_lines(path), 1) if line.strip())
    count = _count(path, next(lines, (1, "")))
    labels: dict[int, str] = {}  # nothing is allocated by announcement
    known: set[str] = set()
    for number, line in lines:
        label, _, text = line.rpartition("\t")
        if not label or not _is_id(text.strip()):
            raise InputError(f"{path}:{number}: expected a label, a tab and its id, found {line!r:.60}")
        place = int(text)
        if place >= count or place in labels:
            problem = "is there already" if place < count else f"is outside 0 … {count - 1}"
            raise InputError(f"{path}:{number}: the id {place} of {label!r} {problem}")
        if label in known:
            raise InputError(f"{path}:{number}: the label {label!r} is there already")
        labels[place] = label
        known.add(label)
    if len(labels) < count:
        missing = next(place for place in range(count) if place not in labels)
        raise InputError(f"{path}: there is no label of the id {missing}; is the file complete?")
    return [labels[place] for place in range(count)]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _labels(path: Any, number: int, line: str) -> tuple[str, ...]:
    fields = tuple(field.strip() for field in line.split("\t"))
    if len(fields) != 3 or not all(fields):
        raise InputError(
            f"{path}:{number}: expected head, relation and tail separated by tabs, found "
            f"{len(fields)} field{'s' * (len(fields) != 1)}: {line!r:.60}"
        )
    return fields


def _count(path: Any, first: tuple[int, str]) -> int:
    number, line = first
    if not _is_id(line.strip()) or int(line) == 0:
        raise InputError(f"{path}:{number}: expected how many lines follow, found {line!r:.60}")
    return int(line)


def _read_numbered(path: Any, first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> NDArray[np.int64]:
    count = _count(path, first)
    rows: list[tuple[int, int, int]] = []
    for number, line in lines:
        fields = line.split()
        if len(fields) != 3 or not all(_is_id(field) for field in fields):
            raise InputError(f"{path}:{number}: expected the ids of head, tail and relation, found {line!r:.60}")
        if len(rows) == count:
            raise InputError(f"{path}:{number}: there are more triples than the {count} that the first line announces")
        head, tail, relation = map(int, fields)
        rows.append((head, relation, tail))
    if len(rows) < count:
        raise InputError(
            f"{path}:{first[0]}: {count} triples are announced, but {len(rows)} follow; is the file complete?"
        )
    return np.array(rows, np.int64)
