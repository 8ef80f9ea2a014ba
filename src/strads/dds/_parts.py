"""Resolving paths to files, and assigning parts of them to nodes."""

import glob
import os
from collections.abc import Iterable, Sequence
from typing import Any

from strads.dds.files import FilePath, MissingFileError, Part, check_file, compression_of
from strads.errors import ArgumentError

Paths = FilePath | Iterable[FilePath]


def names_of(path: Any) -> list[str]:
    """Return a path, or several, as a list of names.

    Raises
    ------
    ArgumentError
        If it is neither a path nor a list of paths.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else path
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise ArgumentError(f"a path is a str or an os.PathLike, not {type(path).__name__}")
    names = []
    for each in paths:
        if not isinstance(each, str | os.PathLike):
            raise ArgumentError(f"a path is a str or an os.PathLike, not {type(each).__name__}")
        names.append(os.fspath(each))
    if not names:
        raise ArgumentError("the list of paths is empty")
    return names


def find_files(path: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern, or a list of those stands for; see `read_csv`.

    Files of a folder or pattern are sorted by name; empty ones are skipped.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read or is empty.
    """
    return [file for name in names_of(path) for file in _files_of(name)]


def _files_of(name: str) -> list[str]:
    if os.path.isdir(name):
        entries = [os.path.join(name, entry) for entry in os.listdir(name) if not entry.startswith((".", "_"))]
        return _filled(entries, f"{name}: is a folder without files to read")
    if any(mark in name for mark in "*?[") and not os.path.exists(name):
        return _filled(glob.glob(name, recursive=True), f"{name}: no file has this name")
    return [check_file(name)]


def _filled(names: Sequence[str], otherwise: str) -> list[str]:
    filled = sorted(name for name in names if os.path.isfile(name) and os.path.getsize(name))
    if not filled:
        raise MissingFileError(otherwise)
    return filled


def share_out(names: Sequence[str], nodes: int) -> list[list[Part]]:
    """Assign about equally many bytes to each node, in file order.

    Compressed files cannot be read from the middle: the node in whose share one starts reads all of it.
    """
    sizes = [os.path.getsize(name) for name in names]
    cuts = [sum(sizes) * node // nodes for node in range(nodes + 1)]
    shares: list[list[Part]] = [[] for _ in range(nodes)]
    start = 0
    for name, size in zip(names, sizes, strict=True):
        end = start + size
        if nodes == 1 or compression_of(name) is not None:
            shares[max(node for node in range(nodes) if cuts[node] <= start)].append(Part(name))
        else:
            for node in range(nodes):
                low, high = max(start, cuts[node]), min(end, cuts[node + 1])
                if low < high:
                    shares[node].append(Part(name, low - start, None if high == end else high - start))
        start = end
    return shares
