"""Undoing a run that has failed: copies of what it may write, and tables consistent again, with rows at home."""

import os
import threading
import weakref
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strads.cluster import Node, ThreadTeam
from strads.dds.shard import Shard
from strads.loops.arguments import BoundArguments
from strads.loops.on_nodes.binding import shards_of
from strads.loops.on_nodes.specs import NodeLoop
from strads.loops.program import LoopProgram
from strads.schedule.nodes.placement import Move

_PIECE = 1 << 22  # bytes that a thread copies at a time
_buffers: "weakref.WeakKeyDictionary[Any, NDArray[Any]]" = weakref.WeakKeyDictionary()  # for old values, by table
_keeping = threading.Lock()


def undo(node: Node, name: str, failed_run: int) -> None:
    """Make tables consistent after an aborted run: restore the copies made before it or, without any, send rows home.

    A row is at the target of the last of its moves that has arrived: the sender keeps its copy. A node may have
    failed before it reached the loop, or have finished its part: `failed_run` is the number of the program run.
    """
    loop: NodeLoop = node.store[name]
    if loop.run != failed_run:
        loop.before, loop.arrived = None, None
    shards = shards_of(node, loop.tables)
    undone = node.comm.allgather(loop.before is not None)
    restore(loop.before)
    if not any(undone) and node.size > 1:
        _bring_home(node, loop, shards)
    for shard in shards.values():
        shard.is_complete = False
    loop.before, loop.arrived = None, None


def values_before(
    bound: BoundArguments, program: LoopProgram, shards: dict[int, Shard], team: ThreadTeam
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Copy this node's rows of written tables before a run that something unchecked may stop midway, for `restore`."""
    found = []
    for position, table in bound.tables.items():
        if position in program.facts.written and bound.same[position] == position:
            shard = shards.get(position)
            values = table.values if shard is None else shard.values(shard.low, shard.high)
            found.append((values, _copied(values, shard or table.table, team)))
    return found


def _copied(values: NDArray[Any], owner: Any, team: ThreadTeam) -> NDArray[Any]:
    """Copy the values of a table, with all threads, into a buffer that is kept for the next copy.

    Fresh memory takes three times as long. `owner`: what the buffer is kept with.
    """
    if values.nbytes <= _PIECE or not values.flags.c_contiguous:
        return values.copy()
    with _keeping:
        buffer = _buffers.pop(owner, None)
    if buffer is None or (buffer.shape, buffer.dtype) != (values.shape, values.dtype):
        buffer = np.empty_like(values)
    source, target = (array.reshape(-1).view(np.uint8) for array in (values, buffer))

    def copy(piece: int) -> None:
        part = slice(piece * _PIECE, (piece + 1) * _PIECE)
        target[part] = source[part]

    team.for_each(copy, -(-values.nbytes // _PIECE))
    with _keeping:
        _buffers[owner] = buffer  # the latest is last
        while sum(kept.nbytes for kept in _buffers.values()) > _most_kept():
            del _buffers[next(iter(_buffers))]
    return buffer


@cache
def _most_kept() -> int:
    """Return how many bytes of buffers a process keeps at most: a sixteenth of the machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16


def restore(before: list[tuple[NDArray[Any], NDArray[Any]]] | None) -> None:
    """Give rows their old values, if any were kept."""
    for rows, values in before or ():
        rows[...] = values


def _bring_home(node: Node, loop: NodeLoop, shards: dict[int, Shard]) -> None:
    arrived = [] if loop.arrived is None else np.flatnonzero(loop.arrived).tolist()
    own = [loop.part.arrivals[number] for number in arrived]
    moves = [move for of_node in node.comm.allgather(own) for move in of_node]
    for table, position in loop.tables_of_moves.items():
        of_table = sorted((move for move in moves if move.table == table), key=_turn)
        if of_table:
            _bring_table_home(node, shards[position], of_table)


def _turn(move: Move) -> float:
    """Return a sort key that orders moves of the same rows by the time at which they happen."""
    return float(move.before[0]) if len(move.before) else float("inf")


def _bring_table_home(node: Node, shard: Shard, moves: list[Move]) -> None:
    rows = int(shard.bounds[-1])
    home = np.searchsorted(shard.bounds, np.arange(rows), side="right") - 1
    holder = home.copy()
    for move in moves:
        holder[move.rows] = move.target
    lost = [np.flatnonzero((holder == node.rank) & (home == to)) for to in range(node.size)]
    lost[node.rank] = np.empty(0, np.int64)
    sent = [(to_rows, [shard.values(int(row), int(row) + 1).copy() for row in to_rows]) for to_rows in lost]
    for found, values in node.comm.alltoall(sent):
        for row, value in zip(found, values, strict=True):
            shard.values(int(row), int(row) + 1)[...] = value
