"""Node programs on every backend: messages, puts into place, collectives, errors."""

import traceback

import numpy as np
import pytest

from strads.cluster import Node
from strads.errors import NodeFailure, ProgramStopped

pytestmark = pytest.mark.nodes


def test_every_node_runs_the_program(runtime, nodes):
    assert runtime.run(lambda node, x: (node.rank, node.size, x), "x") == [(rank, nodes, "x") for rank in range(nodes)]


def test_nodes_get_arguments_of_their_own(runtime, nodes):
    each = [(10 * rank, np.full(3, rank)) for rank in range(nodes)]
    results = runtime.run(lambda node, a, b, c: (a, b, c.sum()), "a", each=each)
    assert results == [("a", 10 * rank, 3 * rank) for rank in range(nodes)]


def _interrupt(calls):
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_what_is_stored_stays_until_it_is_discarded(runtime, nodes, monkeypatch, is_interrupted):
    name = runtime.cluster.new_name()

    def store(node: Node) -> None:
        node.store[name] = node.rank

    runtime.run(store)
    assert runtime.run(lambda node: node.store[name]) == list(range(nodes))
    runtime.cluster.discard(name)
    if is_interrupted:  # before the program is sent
        with monkeypatch.context() as patch:
            patch.setattr(runtime.cluster, "_start", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                runtime.run(store)
    assert runtime.run(lambda node: name in node.store) == [False] * nodes


def test_an_error_tells_how_long_a_node_has_waited(runtime, nodes):
    def wait(node: Node) -> str:
        with pytest.raises(NodeFailure) as caught:
            node.comm.wait_for(lambda: None, "nothing", None, limit=0.05)
        return str(caught.value)

    assert all("waited 0.05 s for nothing" in told for told in runtime.run(wait))


def _ring(node: Node) -> tuple[list[int], np.ndarray]:
    after, before = (node.rank + 1) % node.size, (node.rank - 1) % node.size
    large = np.full(100_000, node.rank)
    for number in range(5):
        node.comm.send((number, large), after, tag=number % 2)
        large += 1  # what was sent must not change
    received = [node.comm.recv(before, tag=number % 2) for number in range(5)]
    return [number for number, _ in received], np.array([array[-1] for _, array in received])


def test_messages_arrive_in_order_with_the_content_at_sending(runtime, nodes):
    for rank, (numbers, values) in enumerate(runtime.run(_ring)):
        assert numbers == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(values, (rank - 1) % nodes + np.arange(5))


@pytest.mark.parametrize("rows", [0, 1, 100_000])
def test_a_put_lands_where_it_is_expected(runtime, nodes, rows):
    def program(node: Node) -> bool:
        table = np.zeros((3, rows))
        arrivals = [node.comm.expect(table[k], (node.rank - 1) % node.size, k) for k in range(2)]
        for k in (1, 0):
            node.comm.put(np.full(rows, 10.0 * node.rank + k), (node.rank + 1) % node.size, k)
        for arrival in arrivals:
            node.comm.wait_arrival(arrival)
        before = (node.rank - 1) % node.size
        return bool(np.all(table == np.array([[10.0 * before], [10.0 * before + 1], [0.0]])))

    assert runtime.run(program) == [True] * nodes


def test_an_early_put_waits(runtime, nodes):
    def program(node: Node) -> float:
        node.comm.put(np.full(1000, float(node.rank)), (node.rank + 1) % node.size, 3)
        node.comm.barrier()
        out = np.empty(1000)
        node.comm.wait_arrival(node.comm.expect(out, (node.rank - 1) % node.size, 3))
        return float(out.sum())

    assert runtime.run(program) == [1000.0 * ((rank - 1) % nodes) for rank in range(nodes)]


def test_collectives(runtime, nodes):
    def program(node: Node) -> dict[str, object]:
        comm, last = node.comm, node.size - 1
        comm.barrier()
        return {
            "broadcast": comm.broadcast("root" if node.rank == last else None, root=last),
            "gather": comm.gather(node.rank, root=last),
            "allgather": comm.allgather((node.rank,)),
            "alltoall": comm.alltoall([(node.rank, to) for to in range(node.size)]),
            "sum": comm.allreduce(node.rank + 1),
            "most": comm.allreduce(np.array([node.rank, -node.rank]), np.maximum).tolist(),
            "slices": comm.allreduce(np.arange(100_001) * (node.rank + 1))[[0, 1, -1]].tolist(),
        }

    triangle = nodes * (nodes + 1) // 2
    for rank, found in enumerate(runtime.run(program)):
        assert found["broadcast"] == "root"
        assert found["gather"] == (list(range(nodes)) if rank == nodes - 1 else None)
        assert found["allgather"] == [(other,) for other in range(nodes)]
        assert found["alltoall"] == [(other, rank) for other in range(nodes)]
        assert found["sum"] == triangle
        assert found["most"] == [nodes - 1, 0]
        assert found["slices"] == [0, triangle, 100_000 * triangle]


def test_float_sums_are_the_same_bits_on_all_nodes(runtime, nodes):
    def program(node: Node) -> bytes:
        values = np.random.default_rng(node.rank).standard_normal(50_000).astype(np.float32)
        return node.comm.allreduce(values).tobytes()

    parts = [np.random.default_rng(rank).standard_normal(50_000).astype(np.float32) for rank in range(nodes)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert runtime.run(program) == [total.tobytes()] * nodes


def test_traffic_is_counted(runtime, nodes):
    def program(node: Node) -> tuple[int, int]:
        before = node.comm.traffic.copy()
        out = np.empty(1000)
        arrival = node.comm.expect(out, (node.rank - 1) % node.size, 0)
        node.comm.put(np.zeros(1000), (node.rank + 1) % node.size, 0)
        node.comm.wait_arrival(arrival)
        traffic = node.comm.traffic.since(before)
        return traffic.bytes_sent, traffic.messages_sent

    assert runtime.run(program) == [(8000, 1) if nodes > 1 else (0, 0)] * nodes


class _Odd(Exception):
    def __init__(self, code: int, text: str):  # so pickle cannot rebuild it
        super().__init__(f"{text} {code}")


def test_an_exception_reaches_the_driver_and_stops_the_others(runtime, nodes):
    def program(node: Node) -> None:
        if node.rank == node.size - 1:
            raise KeyError("what went wrong")
        node.comm.recv(node.size - 1)  # would wait for a minute

    with pytest.raises(KeyError, match="what went wrong") as caught:
        runtime.run(program)
    assert f"raised on node {nodes - 1} (" in "\n".join(caught.value.__notes__)
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count('raise KeyError("what went wrong")') == 1  # wherever it was raised
    assert runtime.run(lambda node: node.comm.allreduce(1)) == [nodes] * nodes  # nothing is left behind


def test_an_exception_that_cannot_travel_is_quoted(runtime, nodes):
    def program(node: Node) -> None:
        raise _Odd(7, "odd")

    with pytest.raises(Exception, match="odd 7"):
        runtime.run(program)


def test_the_stopped_nodes_do_not_hide_the_cause(runtime, nodes):
    def program(node: Node) -> None:
        if node.rank == node.size - 1:
            node.comm.progress(0.2)
            raise ZeroDivisionError
        node.comm.recv(node.size - 1)

    with pytest.raises(ZeroDivisionError):
        runtime.run(program)
    assert issubclass(ProgramStopped, RuntimeError)
