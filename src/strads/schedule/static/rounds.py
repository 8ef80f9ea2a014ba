"""What a SchMP program's schedule returns: rounds with one job per worker (thesis §3.3.1, algorithms 2–4)."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from strads.errors import PlanError

ShardKey = tuple[int, int]  # parameter set, number of the shard in it


@dataclass(frozen=True)
class Job:
    """The parameters that one worker updates in one round.

    Attributes
    ----------
    worker
        Number of the worker p, from 0.
    shards
        Numbers of the shards that the job needs: no other worker uses these shards in this round.
    parameters
        What to update, for programs whose parameters do not move; interpreted by the program.
    sets
        The parameter set of each shard; by default shard number i is one of set i. A job may need several of one set:
        `Job(worker, (3, 5), sets=(0, 0))`.
    """

    worker: int
    shards: tuple[int, ...] = ()
    parameters: Any = None
    sets: tuple[int, ...] | None = None

    def shard_keys(self) -> Iterator[ShardKey]:
        """Yield the keys of the shards that the job needs."""
        return iter(enumerate(self.shards)) if self.sets is None else iter(zip(self.sets, self.shards, strict=True))


@dataclass(frozen=True)
class Round:
    """Jobs that may run concurrently: the thesis' subiteration.

    Attributes
    ----------
    jobs
        At most one for each worker.
    synchronize
        Whether the results since the last synchronization are aggregated before the next round begins. If not, a
        worker begins its next job as soon as the required shards have arrived (*macro synchronization*).
    """

    jobs: tuple[Job, ...]
    synchronize: bool = True


@dataclass(frozen=True, eq=False)
class Schedule:
    """The rounds of one iteration. Return the same object for identical rounds, so that it is planned only once."""

    rounds: tuple[Round, ...]

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> "Schedule":
        """Return rounds as a schedule.

        Raises
        ------
        PlanError
            If the argument is anything else.
        """
        if not isinstance(rounds, Iterable):
            raise PlanError(f"schedule() returned a {type(rounds).__name__}: return a Schedule, or Rounds")
        return rounds if isinstance(rounds, Schedule) else cls(tuple(rounds))

    @cached_property
    def digest(self) -> int:
        """A hash of the workers, shards and synchronizations."""
        known = [[(job.worker, *job.shard_keys()) for job in each.jobs] + [each.synchronize] for each in self.rounds]
        return zlib.crc32(repr(known).encode())

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    def __len__(self) -> int:
        return len(self.rounds)


def check_schedule(schedule: Schedule, workers: int, shards: tuple[int, ...]) -> None:
    """Reject a schedule in which a shard is used twice at the same time, or that names a missing shard or worker.

    Parameters
    ----------
    schedule
        The rounds of an iteration.
    workers
        Number of workers.
    shards
        Number of shards of each moving parameter set.

    Raises
    ------
    PlanError
        If the schedule is invalid; names the round, the worker and the shard.
    """
    for number, each in enumerate(schedule):
        if not isinstance(each, Round):
            raise PlanError(f"schedule() gave a {type(each).__name__} where a Round is expected (round {number})")
        users: dict[ShardKey, int] = {}
        busy: set[int] = set()
        for job in each.jobs:
            if not 0 <= job.worker < workers:
                raise PlanError(f"round {number}: there is no worker {job.worker}, only 0 … {workers - 1}")
            if job.worker in busy:
                raise PlanError(f"round {number}: worker {job.worker} has two jobs; put one into another round")
            busy.add(job.worker)
            if job.sets is not None and len(job.sets) != len(job.shards):
                raise PlanError(
                    f"round {number}: worker {job.worker} asks for {len(job.shards)} shards of {len(job.sets)} sets: "
                    "give the set of each"
                )
            for key in job.shard_keys():
                _check_shard(number, job, key, users, shards)


def _check_shard(number: int, job: Job, key: ShardKey, users: dict[ShardKey, int], shards: tuple[int, ...]) -> None:
    parameter_set, shard = key
    if not 0 <= parameter_set < len(shards):
        raise PlanError(
            f"round {number}: worker {job.worker} asks for a shard of parameter set {parameter_set}, "
            f"but the engine was given {len(shards)}, numbered from 0"
        )
    if not 0 <= shard < shards[parameter_set]:
        raise PlanError(
            f"round {number}: worker {job.worker} asks for shard {shard} of parameter set {parameter_set}, "
            f"which has the shards 0 … {shards[parameter_set] - 1}"
        )
    if key in users:
        raise PlanError(
            f"round {number}: workers {users[key]} and {job.worker} would both use shard {shard} of parameter set "
            f"{parameter_set}"
        )
    users[key] = job.worker
