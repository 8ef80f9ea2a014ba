"""Matrix factorization on the parameter server with logical workers, whose computing time and network are imitated.

Workers sleep instead of computing: eight of them would be too many for two cores, and sleep takes nothing from the
server. What they do take is the server's and the kernels' own time, a few percent of a clock.
"""

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import strads
from strads import ps
from strads.cluster import current

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
from parameter_server_mf import RANK, Ratings, deal, factorize, planted_ratings, read_ratings, rmse, starting_factors

MOVIELENS = Path(__file__).resolve().parents[2] / "shared" / "data" / "ml-100k" / "u.data.gz"
MINIBATCHES = 5  # of a clock: as many times a worker reads in it


@dataclass(frozen=True)
class Setting:
    """What all runs of an experiment have in common.

    Attributes
    ----------
    ratings
        To factorize.
    workers
        On a logical node each, unless there are fewer `nodes`.
    clocks
        Of an epoch.
    epochs
        Of each worker.
    clock_seconds
        Imitated computing time of a clock; of each minibatch it varies by `jitter` (σ of its logarithm).
    latency
        Seconds that a message takes.
    """

    ratings: Ratings
    workers: int = 8
    clocks: int = 10
    epochs: int = 20
    clock_seconds: float = 0.15
    jitter: float = 0.05
    latency: float = 0.002
    nodes: int | None = None


class TimeOver(Exception):
    """The run has lasted long enough."""


@dataclass(frozen=True)
class Point:
    """Where a run was: seconds and ratings since its start, and the RMSE of what the shards held."""

    seconds: float
    samples: int
    rmse: float


@dataclass
class Outcome:
    """How a run went.

    Attributes
    ----------
    curve
        A point for every so many ratings.
    staleness
        Of the reads of both tables.
    prompt
        What it would be if updates took no time to be seen: how far workers are apart.
    statistics
        Of the run.
    """

    curve: list[Point]
    staleness: ps.StalenessProfile
    prompt: ps.StalenessProfile
    statistics: ps.RunStatistics


@dataclass
class Observer:
    """Sleeps for the workers, and looks at the factors while they change.

    Attributes
    ----------
    setting
        Of the run.
    tables
        W and H.
    slowdown
        By worker and clock, how many times as long it takes.
    every
        Ratings between two looks.
    limit
        Seconds after which workers are stopped.
    """

    setting: Setting
    tables: tuple[ps.Table, ps.Table]
    slowdown: Callable[[int, int], float]
    every: int
    limit: float
    seed: int
    curve: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        workers = self.setting.workers
        self._generators = [np.random.default_rng((self.seed, worker)) for worker in range(workers)]
        self._minibatches = np.zeros(workers, np.int64)
        self._differentials: Counter[int] = Counter()
        self._samples, self._lock = 0, threading.Lock()
        self._start = time.perf_counter()

    def __call__(self, worker: int, samples: int) -> None:
        """Be told of a minibatch of a worker, on its thread."""
        slowdown = self.slowdown(worker, self._minibatches[worker] // MINIBATCHES)
        seconds = self.setting.clock_seconds / MINIBATCHES * slowdown
        time.sleep(seconds * self._generators[worker].lognormal(0, self.setting.jitter))
        with self._lock:
            self._minibatches[worker] += 1
            clocks = self._minibatches // MINIBATCHES
            self._differentials.update((clocks - clocks[worker] - 1).tolist())
            before, self._samples = self._samples, self._samples + samples
            now = self._samples
        seconds = time.perf_counter() - self._start
        if before // self.every < now // self.every:
            self.curve.append(Point(seconds, now, self._rmse()))
        if seconds > self.limit:
            raise TimeOver

    @property
    def prompt(self) -> ps.StalenessProfile:
        """How far workers have been apart when they read."""
        differentials, counts = zip(*sorted(self._differentials.items()), strict=True)
        return ps.StalenessProfile(np.array(differentials), np.array(counts))

    def _rmse(self) -> float:
        error = rmse(self.setting.ratings, *(_content(table) for table in self.tables))
        return error if math.isfinite(error) else math.inf


def _content(table: ps.Table) -> NDArray[Any]:
    """Return the rows of the shards, while workers change them: logical nodes live in this process."""
    cluster, out = current().cluster, np.empty(table.shape, table.dtype)
    for rank in range(cluster.size):
        out[rank :: cluster.size] = cluster._nodes[rank].store[table._name].values
    return out


def train(
    setting: Setting,
    consistency: ps.Consistency,
    step: float,
    *,
    slowdown: Callable[[int, int], float] = lambda worker, clock: 1.0,
    looks: int = 1,
    limit: float = math.inf,
    seed: int = 0,
) -> Outcome:
    """Factorize under a consistency model, looking so many times an epoch."""
    start = starting_factors(setting.ratings, RANK, seed + 1)
    nodes = setting.nodes or setting.workers
    with (
        strads.init("threads", nodes=nodes, threads=1, latency=setting.latency),
        np.errstate(all="ignore"),
    ):
        W, H = (ps.Table.from_numpy(values, consistency=consistency) for values in start)
        every = len(setting.ratings.scores) // looks
        observer = Observer(setting, (W, H), slowdown, every, limit, seed)
        program = partial(_until_time_is_over, on_minibatch=observer)
        parts = deal(setting.ratings, setting.workers)
        statistics = ps.run(program, W, H, setting.epochs, setting.clocks, step, workers=setting.workers, data=parts)
        return Outcome(observer.curve, _pooled(W.staleness, H.staleness), observer.prompt, statistics)


def _until_time_is_over(worker: ps.Worker, *arguments: Any, on_minibatch: Observer) -> None:
    with np.errstate(all="ignore"), suppress(TimeOver):
        factorize(worker, *arguments, minibatches=MINIBATCHES, on_minibatch=on_minibatch)


def _pooled(*profiles: ps.StalenessProfile) -> ps.StalenessProfile:
    found, inverse = np.unique(np.concatenate([p.differentials for p in profiles]), return_inverse=True)
    counts = np.bincount(inverse, np.concatenate([p.counts for p in profiles])).astype(np.int64)
    newest = [profile.newest for profile in profiles if profile.newest is not None]
    return ps.StalenessProfile(found, counts, _pooled(*newest) if newest else None)


def ratings_of(path: Path | None) -> Ratings:
    """Read a file of ratings; without one MovieLens 100K if it is there, else planted ones."""
    if path is None and not MOVIELENS.exists():
        return planted_ratings()
    return read_ratings(path or MOVIELENS)
