"""The job pool driven by random interleavings of its two events, without any thread."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strads.engine.plans.job_pool import (
    FINISHED,
    WAIT,
    JobPool,
    finish,
    jobs_done,
    make_job_pool,
    queue_lengths,
    stop,
    take,
)
from strads.schedule.plan import Plan


def make_plan(jobs: int, edges: set[tuple[int, int]]) -> Plan:
    ordered = sorted(edges)
    predecessors = np.bincount([after for _, after in ordered], minlength=jobs).astype(np.int32)
    counts = np.bincount([before for before, _ in ordered], minlength=jobs)
    return Plan(
        strategy="test",
        reason="",
        permutation=None,
        offsets=np.arange(jobs + 1),
        stage=np.zeros(jobs, np.int32),
        predecessors=predecessors,
        successor_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        successors=np.array([after for _, after in ordered], np.int32),
        parallelism=1.0,
    )


@st.composite
def dags(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    """Jobs with edges in both directions: a successor may have a lower number than its predecessor."""
    jobs = draw(st.integers(0, 12))
    rank = draw(st.permutations(range(jobs)))
    pairs = [(a, b) for a in range(jobs) for b in range(jobs) if rank[a] < rank[b]]
    return jobs, draw(st.sets(st.sampled_from(pairs))) if pairs else set()


@given(dags(), st.integers(1, 3), st.booleans(), st.data())
def test_any_interleaving_takes_every_job_once_in_order_of_precedence_and_priority(dag, members, has_homes, data):
    jobs, edges = dag
    plan, homes = make_plan(jobs, edges), np.arange(jobs) % 5
    if has_homes:
        plan = plan.with_details(cells=homes[:, None].astype(np.int32), bounds={"x": np.arange(6)})
    pool = make_job_pool(plan)
    taken: list[int] = []
    running: list[int] = []
    done: list[int] = []
    while len(done) < jobs:
        if running and data.draw(st.booleans(), label="finish?"):
            job = running.pop(data.draw(st.integers(0, len(running) - 1), label="which"))
            finish(pool, job)
            done.append(job)
            continue
        ready = [j for j in range(jobs) if j not in taken and all(a in done for a, b in edges if b == j)]
        member = data.draw(st.integers(0, members - 1), label="who?")
        job = take(pool, member, members)
        if ready:
            own = [j for j in ready if homes[j] % members == member]
            assert job == min(own if has_homes and own else ready)
            taken.append(job)
            running.append(job)
        elif len(taken) == jobs:
            assert job == FINISHED
        else:
            assert job == WAIT
    assert take(pool) == FINISHED
    assert sorted(taken) == list(range(jobs))
    assert jobs_done(pool).tolist() == done


def test_jobs_that_are_ready_at_first_count_in_the_length_of_the_queue():
    pool = make_job_pool(make_plan(3, set()))
    for _ in range(3):
        take(pool)
    assert queue_lengths(pool) == (2.0, 3)


@given(dags(), st.integers(0, 5))
def test_a_stopped_pool_gives_no_more_jobs(dag, before):
    jobs, edges = dag
    pool = make_job_pool(make_plan(jobs, edges))
    running = [job for job in (take(pool) for _ in range(before)) if job >= 0]
    stop(pool)
    assert take(pool) == FINISHED
    for job in running:  # what was at work may still end
        finish(pool, job)
    assert take(pool) == FINISHED
    assert jobs_done(pool).tolist() == running


def test_a_pool_does_not_change_its_plan():
    plan = make_plan(3, {(0, 1), (1, 2)})
    for _ in range(2):
        pool: JobPool = make_job_pool(plan)
        for job in range(3):
            assert take(pool) == job
            finish(pool, job)
    assert plan.predecessors.tolist() == [0, 1, 1]
