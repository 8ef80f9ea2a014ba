"""Loops that write some fields or columns of a table and let others choose rows: these stay as they are."""

import numpy as np
import pytest
from serial import run_or_refuse

import strads
from strads.bodies.analysis import BodyAnalysis, Field, TableKind, analyse_body
from strads.cluster import Runtime

LINK = np.dtype([("a", "i8"), ("b", "i8"), ("is_on", "i8"), ("force", "f8"), ("at", "f8", (2,))], align=True)
LINKS, BODIES = 3_000, 400

RECORDS = TableKind(1, (Field("a", integer=True), Field("b", integer=True), Field("force"), Field("at", (2,), True)))
ROWS, VALUES = TableKind(2, integer=True), TableKind(1)


def links(seed=0):
    rng = np.random.default_rng(seed)
    found = np.zeros(LINKS, LINK)
    found["a"], found["b"] = rng.integers(0, BODIES, (2, LINKS))
    found["is_on"], found["force"], found["at"] = rng.integers(0, 2, LINKS), rng.random(LINKS), rng.random((LINKS, 2))
    return found


def bodies(seed=0):
    return strads.dvector(np.random.default_rng(seed).random((BODIES, 2)))


# -- bodies ------------------------------------------------------------------------------------------------


def relax(k, c, B):
    link = c[k]
    if link.is_on > 0:
        p, q = B[link.a], B[link.b]
        old = link.force
        link.force = max(old + 0.1 * (p[0] - q[1]), 0.0)
        p[0] -= 0.01 * (link.force - old)
        q[1] += 0.01 * (link.force - old)


def relax_neighbours(k, c, B):
    after = (k + 1) % len(c)
    B[c[after].a, 0] += c[after].force
    c[k].force += 0.5 * B[c[after].b, 1]
    c[k].at[1] += 1.0


def count(k, E, B):
    B[E[k, 0], 0] += 0.5 * B[E[k, 1], 1]
    E[k, 2] += 1


def count_in_rows(k, E, B):
    row = E[k]
    B[row[0], 0] += 0.5 * B[row[1], 1]
    row[2] += 1


def steer(k, E, B):
    B[E[k, 0], 0] += 0.5
    E[k, 0] = E[(k + 1) % len(E), 1]


def steer_from_the_end(k, E, B):
    B[E[k, 2], 0] += 0.5
    E[k, -1] = E[k, 1]


def steer_some_column(k, E, B):
    B[E[k, 1], 0] += 0.5
    E[k, k % 2] = E[k, 0]


def steer_a_row(k, E, B):
    B[E[k, 1], 0] += 0.5
    E[k] = E[(k + 1) % len(E)]


def steer_a_part(k, E, B):
    B[E[k, 1], 0] += 0.5
    part = E[k][1:]
    part[0] = E[k, 0]


def steer_a_column(k, E, B):
    B[E[k, 1], 0] += 0.5
    E.T[1][k] = E[k, 0]


def steer_a_link(k, c, B):
    B[c[k].a, 0] += 0.5
    c[k].a = c[(k + 1) % len(c)].b


def steer_links(k, c, B):
    B[c[k].a, 0] += 0.5
    c[k] = c[(k + 1) % len(c)]


def store(row, value):
    row[0] = value


def steer_in_a_function(k, E, B):
    B[E[k, 0], 0] += 0.5
    store(E[k], E[k, 1])


STEERED = [steer, steer_some_column, steer_a_row, steer_a_part, steer_in_a_function, steer_from_the_end]


def edges(seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, BODIES, (LINKS, 3))


def facts(body, *kinds) -> BodyAnalysis:
    return analyse_body(body, kinds)


# -- tests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [count, count_in_rows])
def test_columns_that_are_not_written_are_fixed(body):
    found = facts(body, ROWS, ROWS)
    assert not found.volatile
    assert found.deciding_columns == {0}
    assert found.written_columns[0] == {2}
    assert found.is_certain


def test_fields_that_are_not_written_are_fixed():
    def move(k, c, B):
        B[c[k].a] += c[k].force
        c[k].force = 1.0
        c[k].at[0] += 1.0

    found = facts(move, RECORDS, VALUES)
    assert (found.volatile, found.deciding_columns) == (frozenset(), {0})
    assert found.written_columns[0] == {"force", "at"}


@pytest.mark.parametrize("body", [*STEERED, steer_a_column])
def test_columns_that_may_be_written_are_volatile(body):
    assert facts(body, ROWS, ROWS).volatile == {1}


@pytest.mark.parametrize("body", [steer_a_link, steer_links])
def test_fields_that_are_written_are_volatile(body):
    assert facts(body, RECORDS, ROWS).volatile == {1}


@pytest.mark.few(4)
@pytest.mark.parametrize("body", [relax, relax_neighbours, count, count_in_rows])
@pytest.mark.parametrize("order", ["any", "sequential"])
def test_results_are_those_of_the_loop(body, order):
    table = strads.dvector(links() if body in (relax, relax_neighbours) else edges())
    B = bodies()
    for _ in range(3):
        assert run_or_refuse(LINKS, body, table, B, order=order, fastmath=False, threads=2) is None


@pytest.mark.few(2)
@pytest.mark.parametrize("body", STEERED)
def test_steered_loops_are_right(body):
    E, B = strads.dvector(edges()), bodies()
    for _ in range(3):
        run_or_refuse(LINKS, body, E, B, threads=2)


@pytest.mark.nodes
@pytest.mark.few(2)
@pytest.mark.parametrize("body", [relax, relax_neighbours, count])
def test_on_nodes(runtime: Runtime, body):
    table = strads.dvector(edges() if body is count else links())
    B = bodies()
    for seed in range(3):
        assert run_or_refuse(LINKS, body, table, B, fastmath=False) is None
        if seed == 1 and body is not count:
            table["a"] = links(5)["a"]


def set_force(k, c):
    c[k].force = 0.5


def set_end(k, c):
    c[k].a = (c[k].b + 1) % 400


def test_plans_last_while_other_fields_change():
    c, B = strads.dvector(links()), bodies()
    strads.async_for(LINKS, relax, c, B)
    found = []
    for change in (lambda: None, lambda: strads.async_for(LINKS, set_force, c)):
        change()
        found.append(strads.async_for(LINKS, relax, c, B).reconnaissance_seconds)
    assert found == [0.0, 0.0]


@pytest.mark.parametrize("how", ["loop", "program"])
def test_plans_end_when_their_fields_change(how):
    c, B = strads.dvector(links()), bodies()
    strads.async_for(LINKS, relax, c, B)
    if how == "loop":
        strads.async_for(LINKS, set_end, c)
    else:
        c["a"] = links(3)["a"]
    before = c.to_numpy().copy()
    assert run_or_refuse(LINKS, relax, c, B, fastmath=False, threads=2) is None
    assert np.array_equal(c.to_numpy()["a"], before["a"])


def test_versions_beside_columns():
    table = strads.dvector(links())
    start = table.version_beside({"force"})
    table.mark_written({"force"})
    assert table.version_beside({"force"}) == start
    assert table.version_beside({"a"}) > start
    table.mark_written({"a", "force"})
    assert table.version_beside({"force"}) > start
    latest = table.version_beside({"a", "force"})
    table.mark_written()
    assert table.version_beside({"a", "force"}) > latest
