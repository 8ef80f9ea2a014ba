"""Reading files on one node or many: each reads its part, with line numbers relative to the file.

A node does not know how many lines precede its part, so it first counts from its own first line. Only if a line is
malformed are the line ends of the preceding parts summed, and the part is read again to report the true number.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from strads.cluster import Node, current
from strads.dds._layout import Bounds, Layout
from strads.dds._node_tables import store_rows
from strads.dds._parts import find_files, names_of
from strads.dds._placement import Content
from strads.dds._results import filled_of, join_rows, like_of
from strads.dds._text import First, PartReader
from strads.dds.dvector import dvector
from strads.errors import InputError, ProgramStopped

T = TypeVar("T")
Share = Callable[[Sequence[str], int], list[list[Any]]]
MakeReader = Callable[[Any], PartReader]


def read_files(path: Any, share: Share, make: MakeReader, no_rows: str) -> dvector:
    """Read files on all nodes of the runtime.

    Parameters
    ----------
    path
        A path, or several; see `read_csv`.
    share
        Returns the parts of some files that each of a number of nodes reads.
    make
        Returns the reader of a part.
    no_rows
        What is wrong if there are none.
    """
    runtime = current()
    if runtime.is_local:
        names = find_files(path)
        results = _read_in_order([make(part) for part in share(names, 1)[0]], {}, None)
        filled = filled_of(results)
        if not filled:
            raise InputError(f"{_and_others(names)}: {no_rows}")
        return dvector(join_rows(filled, like_of(filled)), copy=False)
    cluster = runtime.cluster
    name = cluster.new_name()
    layout, bounds = cluster.run(
        _read_on_nodes, name, [os.path.abspath(name) for name in names_of(path)], share, make, no_rows
    )[0]
    table = dvector._of(Content.on_nodes(cluster, name, layout, bounds))
    table.distribute(cluster, layout.equal_bounds(cluster.size))
    return table


def _read_on_nodes(
    node: Node, name: str, path: list[str], share: Share, make: MakeReader, no_rows: str
) -> tuple[Layout, Bounds]:
    plan = None
    if node.rank == 0:
        names = find_files(path)
        plan = names, share(names, node.size)
    names, shares = node.comm.broadcast(plan)
    readers = [make(part) for part in shares[node.rank]]
    _first_failure(node, lambda: _check_visible(node, readers))
    results, failed = _try_to_read(readers)
    results = _agree(node, readers, results, failed)
    filled = filled_of(results)
    like = like_of(node.comm.allgather(like_of(filled)))
    if like is None:
        raise InputError(f"{_and_others(names)}: {no_rows}")
    return store_rows(node, name, join_rows(filled, like))


def _first_failure(node: Node, attempt: Callable[[], T]) -> T:
    """Attempt an operation that may fail on any node; of several failures, that of the lowest rank is raised.

    Otherwise a node that fails early could stop others before they reach their own failure.
    """
    error = None
    try:
        result = attempt()
    except InputError as wrong:
        error = wrong
    failing = [rank for rank, failed in enumerate(node.comm.allgather(error is not None)) if failed]
    if not failing:
        return result
    if error is not None and failing[0] == node.rank:
        raise error
    node.comm.barrier()  # never passed, as that node does not reach it: leaving earlier could stop it too early
    raise ProgramStopped(f"{node.comm.name(failing[0])} failed")


def _check_visible(node: Node, readers: Sequence[PartReader]) -> None:
    """Check that this node can open its files, which node 0 has found."""
    for name in [reader.part.name for reader in readers]:
        try:
            open(name, "rb").close()
        except OSError as error:
            raise InputError(
                f"{name}: {node.comm.name(node.rank)} cannot open it ({error.strerror}): "
                "every node needs the files, for instance on a shared file system"
            ) from error


def _try_to_read(readers: Sequence[PartReader]) -> tuple[list[Any], bool]:
    try:
        return _read_in_order(readers, {}, None), False
    except InputError:
        return [], True


def _read_in_order(readers: Sequence[PartReader], lines: dict[str, int], first: First | None) -> list[Any]:
    """Return the readers' results, in order; `lines` counts the line ends so far in each file."""
    results = []
    for reader in readers:
        result, first = reader.read(lines.get(reader.part.name, 0) + 1, first)
        results.append(result)
    return results


def _agree(node: Node, readers: Sequence[PartReader], results: list[Any], failed: bool) -> list[Any]:
    """Read again, with the true line numbers, where lines were malformed or unlike those of earlier nodes."""
    counted = [(reader.part.name, reader.newlines) for reader in readers]
    kinds = [reader.first for reader in readers if reader.first is not None][:1]
    everyone = node.comm.allgather((counted, kinds, failed))
    lines: dict[str, int] = {}
    expected: First | None = None
    for others_counted, others_kinds, _ in everyone[: node.rank]:
        if others_kinds and expected is None:
            shape, line, file = others_kinds[0]
            expected = shape, lines.get(file, 0) + line, file
        for file, newlines in others_counted:
            lines[file] = lines.get(file, 0) + newlines
    as_expected = not failed and (expected is None or not kinds or kinds[0][0] == expected[0])
    return _first_failure(node, lambda: results if as_expected else _read_in_order(readers, lines, expected))


def _and_others(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} other files"
