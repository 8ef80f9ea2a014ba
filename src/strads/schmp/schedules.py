"""Library schedules for the Static Engine (thesis §4.1.2, algorithms 3 and 4; supplement fig. 1 and 4), and pairs."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from strads.cluster.cores import check_count
from strads.errors import ArgumentError
from strads.schedule.static.rounds import Job, Round, Schedule


@lru_cache(maxsize=16)
def static_rotation(workers: int, k: int = 1, *, synchronizations: int = 1) -> Schedule:
    """Rotate the shards of k parameter sets over the workers: algorithm 3 for k = 1, algorithm 4 for k > 1.

    Each of the k sets has one shard per worker. In M^k rounds every worker gets every combination of shards once.

    Parameters
    ----------
    workers
        Number of workers, M.
    k
        Number of parameter sets; an update uses one parameter of each.
    synchronizations
        Aggregations per full turn of the innermost loop (M rounds): 1 is the thesis's *macro synchronization*, M
        aggregates after every round.

    Returns
    -------
    Schedule
        Job p of round i has the shards ((i₀ + p) mod M, …), where i₀ … are the digits of i in base M.
    """
    check_count("workers", workers)
    check_count("k", k)
    check_count("synchronizations", synchronizations)
    if synchronizations > workers:
        raise ArgumentError(f"synchronizations={synchronizations}: a turn has only {workers} rounds, one per worker")
    ends = {round(turn * workers / synchronizations) - 1 for turn in range(1, synchronizations + 1)}
    rounds = []
    for shifts in product(range(workers), repeat=k):
        jobs = tuple(Job(p, tuple((shift + p) % workers for shift in shifts)) for p in range(workers))
        rounds.append(Round(jobs, synchronize=shifts[-1] in ends))
    return Schedule(tuple(rounds))


def round_robin(workers: int, blocks: Sequence[Any]) -> Schedule:
    """Let all workers update the same block of parameters, one block after another, and aggregate after each.

    Parameters
    ----------
    workers
        Number of workers.
    blocks
        The block that each round updates; the jobs carry it as `parameters`.
    """
    check_count("workers", workers)
    return Schedule(tuple(Round(tuple(Job(p, parameters=block) for p in range(workers))) for block in blocks))


def random(workers: int, parameters: int, size: int, *, rounds: int = 1, seed: int | Sequence[int] = 0) -> Schedule:
    """Assign disjoint random parameters to the workers in every round (thesis §3.2.1: random model-parallel).

    Parameters
    ----------
    workers
        Number of workers.
    parameters
        Number of parameters.
    size
        Number of parameters that a worker updates in a round.
    rounds
        Number of rounds.
    seed
        Pass `(seed, iteration)`, so that iterations differ and nodes agree.

    Returns
    -------
    Schedule
        The jobs carry ascending int64 arrays as `parameters`; those of a round are disjoint.
    """
    for name, value in (("workers", workers), ("parameters", parameters), ("size", size), ("rounds", rounds)):
        check_count(name, value)
    if workers * size > parameters:
        raise ArgumentError(f"{workers} workers × {size} parameters per round exceed the {parameters} that exist")
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(rounds):
        chosen = rng.choice(parameters, (workers, size), replace=False)
        jobs = tuple(Job(p, parameters=np.sort(chosen[p])) for p in range(workers))
        made.append(Round(jobs))
    return Schedule(tuple(made))


def paired(shards: int, difference: int, *, parameters: Any = None, synchronize: bool = True) -> Round:
    """Let each shard of one parameter set meet the shard whose number differs in the bits of `difference`.

    Parameters
    ----------
    shards
        Number of shards, a power of two.
    difference
        From 1 to `shards` − 1: shard i meets shard i XOR `difference`.
    parameters
        What the jobs carry as `parameters`.
    synchronize
        Whether the workers' results are aggregated after the round.

    Returns
    -------
    Round
        A job for each of `shards` / 2 workers, with two shards of set 0, the lower number first. The worker's number is
        the lower shard's without the highest bit of `difference`: rounds whose differences share their upper bits move
        few shards between nodes, which have consecutive workers.
    """
    check_count("shards", shards)
    if shards < 2 or shards & (shards - 1):
        raise ArgumentError(f"shards={shards}: give a power of two, 2 or more")
    if not 0 < difference < shards:
        raise ArgumentError(f"difference={difference}: give a number from 1 to {shards - 1}")
    top = difference.bit_length() - 1
    jobs = []
    for worker in range(shards // 2):
        low = (worker >> top) << (top + 1) | worker & ((1 << top) - 1)
        jobs.append(Job(worker, (low, low ^ difference), parameters, sets=(0, 0)))
    return Round(tuple(jobs), synchronize)


@lru_cache(maxsize=16)
def tournament(shards: int, *, synchronizations: int = 1) -> Schedule:
    """Let every two shards of one parameter set meet once: in round r the pairs are those of `paired(shards, r)`.

    For updates that use two parameters of the same set, such as both ends of an edge: the buckets of Lerer et al. 2019.

    Parameters
    ----------
    shards
        Number of shards, a power of two; the program has half as many workers.
    synchronizations
        Aggregations in the `shards` − 1 rounds, evenly spaced; the last round ends with one.
    """
    check_count("shards", shards)
    check_count("synchronizations", synchronizations)
    if synchronizations >= shards:
        raise ArgumentError(f"synchronizations={synchronizations}: there are only {shards - 1} rounds")
    ends = {round(number * (shards - 1) / synchronizations) for number in range(1, synchronizations + 1)}
    return Schedule(tuple(paired(shards, number, synchronize=number in ends) for number in range(1, shards)))
