"""When servers send rows to those who have read them, without being asked."""

import numpy as np
import pytest

from strads.engine.ps.messages import Read, Update
from strads.engine.ps.server import Server
from strads.engine.ps.table_format import TableFormat
from strads.schedule.consistency import BSP, ESSP, SSP, Consistency

ROW = np.array([0])


class _OncePerClock(ESSP):
    pushes_between = 0


def _pushes_after_updates(rules: Consistency, workers: int) -> list[int]:
    """Let node 0 read a row, then each worker, a node of its own, add 1 to it: after which of these does 0 get it?"""
    server = Server(0, TableFormat(1, 1, "f8").make_rows(1), 1, range(workers), rules)
    server.receive(0, Read(0, 0, ROW, 0))
    server.outbox.clear()
    pushed = []
    for worker in range(workers):
        server.receive(worker, Update(0, worker, 0, 1, ROW, np.ones((1, 1)), -1))
        for client, message in server.outbox:
            assert client == 0  # nobody else has read anything
            assert message.values.tolist() == [[worker + 1]]
            pushed.append(worker + 1)
        server.outbox.clear()
    return pushed


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (ESSP(1), [2, 4, 6, 8]),
        (_OncePerClock(1), [8]),
        (SSP(1), []),
        (BSP(), []),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Consistency) else str(value),
)
def test_readers_get_what_has_changed(rules, expected):
    assert _pushes_after_updates(rules, 8) == expected


@pytest.mark.parametrize(("workers", "expected"), [(1, [1]), (2, [1, 2]), (6, [2, 4, 6]), (64, [16, 32, 48, 64])])
def test_the_number_of_pushes_does_not_grow_with_the_workers(workers, expected):
    assert _pushes_after_updates(ESSP(0), workers) == expected
