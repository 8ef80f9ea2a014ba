"""Plans on nodes, without any cluster: rows are where they are needed, whatever the timing."""

from collections.abc import Iterator

import numpy as np
from access_patterns import any_loops, loops_that_read_elsewhere
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strads.errors import PlanError
from strads.schedule.choice import STRATEGIES
from strads.schedule.loop import Loop
from strads.schedule.nodes.assignment import assign
from strads.schedule.nodes.placement import NodePlan, place
from strads.schedule.plan import Plan
from strads.schedule.planner import build_plan
from strads.schedule.records.access import AccessRecords
from strads.schedule.records.parts import as_sparse


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(any_loops(), st.integers(1, 4), st.sampled_from(["auto", *STRATEGIES]), st.integers(0, 2**32 - 1))
def test_any_timing_on_any_nodes_gives_the_plans_order(records, nodes, strategy, seed):
    try:
        plan = build_plan(records, threads=nodes, strategy=strategy)
    except PlanError:
        return
    run_on_nodes(plan, records, nodes, seed)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(loops_that_read_elsewhere(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_rotations_of_dealt_blocks_on_any_nodes(records, nodes, seed):
    loop = Loop(tasks=records.tasks, near=(frozenset({0}),), deal=(seed, 0))
    run_on_nodes(build_plan(records, loop, threads=nodes, strategy="rotation"), records, nodes, seed)


def run_on_nodes(plan: Plan, records: AccessRecords, nodes: int, seed: int) -> None:
    bounds = [np.linspace(0, table.rows, nodes + 1).astype(np.int64) for table in records.tables]
    found = assign(plan, records, bounds, nodes)
    for table, cut in found.bounds.items():
        assert cut[0] == 0
        assert cut[-1] == records.tables[table].rows
        assert np.all(np.diff(cut) >= 0)
        bounds[table] = cut
    parts = place(plan, found.node_of, found.units, nodes, 1)
    assert sorted(np.concatenate([part.tasks for part in parts]).tolist()) == list(range(records.tasks))
    replay_rows(plan, records, parts, bounds, np.random.default_rng(seed))


def replay_rows(
    plan: Plan,
    records: AccessRecords,
    parts: list[NodePlan],
    bounds: list[np.ndarray],
    rng: np.random.Generator,
) -> None:
    """Let each task write its number to its rows, on nodes with memories of their own that exchange rows as told."""
    memories = [[np.full(table.rows, -1, np.int64) for table in records.tables] for _ in parts]
    for table, cut in enumerate(bounds):
        for memory, low, high in zip(memories, cut[:-1], cut[1:], strict=True):
            memory[table][low:high] = 0
    shared = [np.zeros(table.rows, np.int64) for table in records.tables]
    history = {}
    for job in range(plan.jobs):
        for task in plan.order[plan.offsets[job] : plan.offsets[job + 1]]:
            history[int(task)] = touch(records, int(task), shared)
    for node, job in any_timing(parts, rng):
        part = parts[node]
        if job < len(part.departures):
            move = part.departures[job]
            memories[move.target][move.table][move.rows] = memories[node][move.table][move.rows]
        else:
            for task in part.tasks[part.plan.offsets[job] : part.plan.offsets[job + 1]]:
                assert touch(records, int(task), memories[node]) == history[int(task)]
    for table in range(len(records.tables)):
        for node in range(len(parts)):
            own = slice(bounds[table][node], bounds[table][node + 1])
            np.testing.assert_array_equal(memories[node][table][own], shared[table][own])


def touch(records: AccessRecords, task: int, tables: list[np.ndarray]) -> list[int]:
    """Read all rows of a task, then write its number to those that it writes; returns what was read."""
    sparse = as_sparse(records)
    entries = range(sparse.offsets[task], sparse.offsets[task + 1])
    seen = [int(tables[sparse.tags[e] >> 1][sparse.rows[e]]) for e in entries]
    for e in entries:
        if sparse.tags[e] & 1:
            tables[sparse.tags[e] >> 1][sparse.rows[e]] = task + 1
    return seen


def any_timing(parts: list[NodePlan], rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Run the jobs of all nodes in a random order that their precedence allows; yields node and job."""
    pending = [part.plan.predecessors.copy() for part in parts]
    ready = [(n, int(j)) for n, part in enumerate(parts) for j in np.flatnonzero(part.plan.predecessors == 0)]
    landing = {
        (n, move.number): part.plan.jobs - len(part.arrivals) + i
        for n, part in enumerate(parts)
        for i, move in enumerate(part.arrivals)
    }
    done = 0
    while ready:
        node, job = ready.pop(rng.integers(len(ready)))
        yield node, job
        done += 1
        finished = [(node, job)]
        if job < len(parts[node].departures):
            move = parts[node].departures[job]
            finished.append((move.target, landing[move.target, move.number]))
            done += 1
        for n, j in finished:
            plan = parts[n].plan
            for after in plan.successors[plan.successor_offsets[j] : plan.successor_offsets[j + 1]]:
                pending[n][after] -= 1
                if pending[n][after] == 0:
                    ready.append((n, int(after)))
    assert done == sum(part.plan.jobs for part in parts)  # nothing waits for ever
