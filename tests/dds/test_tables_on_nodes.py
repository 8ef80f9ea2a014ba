"""Tables whose rows lie on nodes read, write and travel like those at the driver."""

import gc
import pickle

import cloudpickle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strads
from strads.cluster import Node, current
from strads.dds import RaggedArray, dvector
from strads.dds.shard import Shard, fetch_rows, gather_all_rows
from strads.errors import ArgumentError, InputError, NodeFailure

pytestmark = pytest.mark.nodes

RATING = np.dtype([("user", "i4"), ("score", "f8")], align=True)
ROWS = 17
REPEATED = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def make(kind: str) -> dvector:
    rng = np.random.default_rng(0)
    if kind == "ragged":
        return dvector(RaggedArray.from_rows([rng.integers(0, 99, n) for n in rng.integers(0, 5, ROWS)], "i8"))
    if kind == "records":
        table = np.zeros(ROWS, RATING)
        table["user"], table["score"] = rng.integers(0, 99, ROWS), rng.random(ROWS)
        return dvector(table)
    return dvector(rng.random((ROWS, 3) if kind == "rows" else ROWS))


KINDS = pytest.mark.parametrize("kind", ["scalars", "rows", "records", "ragged"])


def local_rows(node: Node, name: str) -> tuple[int, int, list]:
    shard: Shard = node.store[name]
    rows = shard.rows
    return shard.low, shard.high, rows.to_list() if isinstance(rows, RaggedArray) else rows.tolist()


@KINDS
def test_rows_are_shared_out_and_come_back(runtime, nodes, kind):
    table, plain = make(kind), make(kind).to_list()
    name = table.distribute(runtime.cluster)
    assert table.is_distributed
    found = runtime.run(local_rows, name)
    assert [row for _, _, rows in found for row in rows] == plain
    assert [low for low, _, _ in found] == table.bounds[:-1].tolist()
    table.written_on_nodes()
    assert table.version == 1
    assert table.to_list() == plain
    assert table.distribute(runtime.cluster) == name  # nothing to do


@KINDS
@REPEATED
@given(data=st.data())
def test_rows_move_to_any_bounds(runtime, nodes, kind, data):
    table, plain = make(kind), make(kind).to_list()
    for _ in range(data.draw(st.integers(1, 3))):
        cuts = sorted(data.draw(st.lists(st.integers(0, ROWS), min_size=nodes - 1, max_size=nodes - 1)))
        bounds = [0, *cuts, ROWS]
        name = table.distribute(runtime.cluster, bounds)
        assert table.bounds.tolist() == bounds
        found = runtime.run(local_rows, name)
        assert [row for _, _, rows in found for row in rows] == plain
        table.written_on_nodes()
        if data.draw(st.booleans()):
            runtime.run(lambda node, name: gather_all_rows(node, node.store[name]), name)
    assert table.to_list() == plain


def test_rows_that_moved_away_take_no_memory(runtime, nodes):
    table = dvector(np.ones((1 << 18, 4)))  # 8 MiB: mapped
    table.distribute(runtime.cluster)
    name = table.distribute(runtime.cluster, [0] * nodes + [1 << 18])
    sums = runtime.run(lambda node, name: float(node.store[name].whole.sum()), name)
    assert sums == [0.0] * (nodes - 1) + [float(1 << 20)]


INDICES = st.one_of(
    st.integers(-ROWS, ROWS - 1),
    st.slices(ROWS),
    st.lists(st.integers(-ROWS, ROWS - 1), max_size=8),
    st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array),
)


def same(found, expected) -> bool:
    if isinstance(expected, RaggedArray):
        return isinstance(found, RaggedArray) and found.to_list() == expected.to_list()
    return type(found) is type(expected) and found.tolist() == expected.tolist()


@KINDS
@REPEATED
@given(index=INDICES)
def test_reading_gives_what_it_gives_at_the_driver(runtime, nodes, kind, index):
    table, plain = make(kind), make(kind)
    table.distribute(runtime.cluster)
    table.written_on_nodes()
    assert same(table[index], plain[index])
    assert not table._content.is_home  # only those rows have been fetched
    if isinstance(index, int | slice) and not (kind == "scalars" and isinstance(index, int)):
        found = table[index]
        assert not (found.values if isinstance(found, RaggedArray) else found).flags.writeable


@KINDS
@REPEATED
@given(data=st.data(), index=INDICES)
def test_writing_does_what_it_does_at_the_driver(runtime, nodes, kind, data, index):
    table, plain = make(kind), make(kind)
    name = table.distribute(runtime.cluster)
    table.written_on_nodes()
    if kind == "ragged":
        rows = [plain[index]] if isinstance(index, int) else plain[index]
        value = [[7 * k + n for n in range(len(row))] for k, row in enumerate(rows)]
        value = value[0] if isinstance(index, int) else value
    else:
        shape = np.shape(np.asarray(plain[index]))
        rng = np.random.default_rng(1)
        value = (9, 0.5) if kind == "records" else rng.random(shape) if data.draw(st.booleans()) else 7
    table[index] = value
    plain[index] = value
    assert not table._content.is_home
    assert table.version == 2
    assert runtime.run(lambda node, name: node.store[name].is_complete, name) == [False] * nodes
    assert table.to_list() == plain.to_list()


def test_several_indices_and_fields(runtime, nodes):
    rows, plain = make("rows"), make("rows")
    rows.distribute(runtime.cluster)
    rows.written_on_nodes()
    for index in [(3, 1), (slice(2, 9), 0), ([1, 5], [0, 2]), (slice(None, None, -2), slice(1, None))]:
        assert same(np.asarray(rows[index]), np.asarray(plain[index]))
        rows[index] = plain[index] = 8.0
        assert not rows._content.is_home
    assert same(rows[..., 1], plain[..., 1])  # needs all rows
    assert rows.to_list() == plain.to_list()
    ratings, plain = make("records"), make("records")
    ratings.distribute(runtime.cluster)
    ratings.written_on_nodes()
    assert ratings[4].user == plain[4].user
    assert ratings[2:5].score.tolist() == plain[2:5].score.tolist()
    for value in (3.5, np.arange(ROWS)):
        ratings["score"] = plain["score"] = value
        assert ratings["score"].tolist() == plain["score"].tolist()
    assert not ratings._content.is_home
    assert [row.tolist() for row in ratings] == [row.tolist() for row in plain]


def test_what_is_refused_at_the_driver_is_refused_on_nodes(runtime, nodes):
    rows, ragged, records = (make(kind) for kind in ("rows", "ragged", "records"))
    for table in (rows, ragged, records):
        table.distribute(runtime.cluster)
        table.written_on_nodes()
        before = table.to_list()
        table.distribute(runtime.cluster)
        table.written_on_nodes()
        for index in (ROWS, [0, -ROWS - 1], [True]):
            with pytest.raises(IndexError, match="17 rows"):
                table[index]
            with pytest.raises(IndexError, match="17 rows"):
                table[index] = 0
        with pytest.raises(ArgumentError, match="integers"):
            table[1.5]
        with pytest.raises(InputError, match="cannot"):
            table[0] = [1, 2, 3, 4, 5, 6, 7]
        with pytest.raises(ArgumentError, match="no field"):
            table["item"]
        assert table.to_list() == before
    with pytest.raises(IndexError, match="too many"):
        rows[0, 0, 0]
    with pytest.raises(InputError):
        rows[2:4] = [[1, 2, 3]] * 3
    with pytest.raises(InputError, match="cannot be assigned"):
        records["score"] = "x"


@pytest.mark.parametrize("bounds", [[0, ROWS, ROWS, ROWS, ROWS], [1, ROWS], "ab", [[0]], None])
def test_wrong_bounds_are_refused(runtime, nodes, bounds):
    with pytest.raises(ArgumentError, match="bounds"):
        make("rows").distribute(runtime.cluster, [0.0] * (nodes + 1) if bounds is None else bounds)


def test_the_drivers_writes_replace_those_of_the_nodes(runtime, nodes):
    table = make("rows")
    first = table.distribute(runtime.cluster)
    table.storage[:] = 3.0
    table.mark_written()
    assert not table.is_distributed
    second = table.distribute(runtime.cluster)
    assert runtime.run(lambda node, a, b: (a in node.store, b in node.store), first, second) == [(False, True)] * nodes
    assert table.bounds is not None

    def add(node: Node, name: str) -> None:
        node.store[name].rows[...] += node.rank

    runtime.run(add, second)
    table.written_on_nodes()
    ranks = np.repeat(np.arange(nodes), np.diff(table.bounds))
    assert table.to_numpy()[:, 0].tolist() == (3.0 + ranks).tolist()
    assert table.is_distributed  # both copies are valid
    assert table.version == 2


def test_a_table_that_nobody_has_leaves_the_nodes(runtime, nodes):
    table = make("ragged")
    name = table.distribute(runtime.cluster)
    del table
    gc.collect()
    assert runtime.run(lambda node, name: name in node.store, name) == [False] * nodes


@KINDS
def test_copies_and_pickles_are_independent(runtime, nodes, kind):
    table, plain = make(kind), make(kind).to_list()
    table.distribute(runtime.cluster)
    table.written_on_nodes()
    copies = [table.copy(), dvector(table)]
    assert copies[0].is_distributed
    assert not table._content.is_home
    copies += [pickle.loads(pickle.dumps(table)), cloudpickle.loads(cloudpickle.dumps(table))]
    table[0] = 1 if kind != "records" else (1, 1)
    assert [copy.to_list() for copy in copies] == [plain] * 4


@KINDS
def test_repr_fetches_only_what_it_shows(runtime, nodes, kind):
    table = make(kind)
    before = repr(table)
    table.distribute(runtime.cluster)
    table.written_on_nodes()
    shown = repr(table).split("\n")
    assert shown[0] == f"{before.splitlines()[0]}, on {nodes} node{'s' if nodes > 1 else ''}"
    assert shown[1:] == before.split("\n")[1:]
    assert (len(table), table.shape, table.nbytes) == (ROWS, make(kind).shape, make(kind).nbytes)
    assert not table._content.is_home


@KINDS
def test_any_rows_reach_any_node(runtime, nodes, kind):
    table, plain = make(kind), make(kind)
    name = table.distribute(runtime.cluster)

    def program(node: Node, name: str) -> tuple[list[int], list]:
        wanted = np.random.default_rng(node.rank).integers(0, ROWS, 5 * node.rank + 3)
        rows = fetch_rows(node, node.store[name], wanted)
        return wanted.tolist(), rows.to_list() if isinstance(rows, RaggedArray) else rows.tolist()

    for wanted, rows in runtime.run(program, name):
        expected = plain[wanted]
        assert rows == (expected.to_list() if kind == "ragged" else expected.tolist())
    with pytest.raises(IndexError, match=f"index {ROWS} .* {ROWS} rows"):
        runtime.run(lambda node, name: fetch_rows(node, node.store[name], np.array([ROWS])), name)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tables_with_fewer_rows_than_nodes(runtime, nodes, rows):
    for table in (dvector(np.arange(rows)), dvector(RaggedArray.from_rows([[n] for n in range(rows)], "i8"))):
        plain = table.to_list()
        table.distribute(runtime.cluster)
        table.written_on_nodes()
        assert repr(table)
        assert len(table[:]) == rows
        assert [np.asarray(row).tolist() for row in table] == plain
        table[:] = plain
        assert table.to_list() == plain


def test_tables_come_home_before_the_nodes_end(request):
    if request.config.getoption("--backend") != "threads":
        pytest.skip("starts and ends nodes of its own")
    with strads.init("threads", nodes=2, threads=1) as runtime:
        table, both = make("rows"), make("ragged")
        both.distribute(runtime.cluster)
        table.distribute(runtime.cluster)
        table[3] = 7.0
        table.written_on_nodes()
        with pytest.raises(IndexError):
            table[ROWS]
    assert table.to_list() == [[7.0] * 3 if n == 3 else row for n, row in enumerate(make("rows").to_list())]
    assert both.to_list() == make("ragged").to_list()
    assert not table.is_distributed
    with strads.init("threads", nodes=3, threads=1) as runtime:
        table.distribute(runtime.cluster)
        assert len(table.bounds) == 4


def test_what_lay_on_lost_nodes_is_said_to_be_lost(request, monkeypatch):
    if request.config.getoption("--backend") != "threads":
        pytest.skip("breaks the nodes")
    table = make("rows")
    with strads.init("threads", nodes=2, threads=1) as runtime:
        table.distribute(runtime.cluster)
        table.written_on_nodes()

        def fail(calls):
            raise NodeFailure("node 1 (there) is gone", rank=1, host="there")

        monkeypatch.setattr(current().cluster, "_start", fail)
        with pytest.raises(NodeFailure, match="lost with them: node 1") as caught:
            table[0]
        assert caught.value.rank == 1
    for read in (lambda: table[0], table.to_numpy, lambda: repr(table), lambda: list(table)):
        with pytest.raises(NodeFailure, match="lost with them: node 1"):
            read()
    assert table.shape == (ROWS, 3)


def test_a_table_moves_to_another_cluster(request):
    if request.config.getoption("--backend") != "threads":
        pytest.skip("starts nodes of its own")
    from strads.cluster.threads import ThreadsCluster

    first, second = ThreadsCluster(2, 1), ThreadsCluster(3, 1)
    table = make("records")
    table.distribute(first)
    table.written_on_nodes()
    table.distribute(second)
    assert len(table.bounds) == 4
    first.close()
    assert table.is_distributed
    assert table.to_list() == make("records").to_list()
    second.close()
