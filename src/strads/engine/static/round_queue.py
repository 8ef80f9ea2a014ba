"""The job pool of a node in the Static Engine: a state machine that job ends, arrivals and synchronizations drive."""

import heapq
from collections import Counter
from collections.abc import Callable

from strads.schedule.static.rounds import Job, ShardKey
from strads.schedule.static.shard_routes import ShardRoutes


class RoundQueue:
    """Selects the next job of a node in one iteration; independent of threads and messages.

    Of the ready jobs, those of the earliest round go first, the most expensive before the others (thesis §4.2.2): jobs
    that the ring waits for run before those that only this node waits for.

    Parameters
    ----------
    routes
        Jobs and shard transfers of the node.
    weight
        The cost of a job, in any unit.
    """

    def __init__(self, routes: ShardRoutes, weight: Callable[[Job], float]):
        self._routes = routes
        self._waits = list(routes.waits)
        self._arrived: Counter[ShardKey] = Counter()
        self._open = Counter(routes.segments)  # unfinished jobs by segment
        self._segment = 0
        self._keys = [
            (number, -weight(job), index)
            for index, (job, number) in enumerate(zip(routes.jobs, routes.rounds, strict=True))
        ]
        self._ready: list[list[tuple[int, float, int]]] = [[] for _ in range(routes.segments_count)]
        self.running = 0
        self.taken = self.queued = self.longest = 0
        for index, waits in enumerate(self._waits):
            if waits == 0:
                self._push(index)

    def _push(self, index: int) -> None:
        ready = self._ready[self._routes.segments[index]]
        heapq.heappush(ready, self._keys[index])
        self.longest = max(self.longest, len(ready))

    def _release(self, index: int) -> None:
        self._waits[index] -= 1
        if self._waits[index] == 0:
            self._push(index)

    def take(self) -> int | None:
        """Take the next job; None if none is ready."""
        if self.is_done or not self._ready[self._segment]:
            return None
        self.taken += 1
        self.queued += len(self._ready[self._segment])
        self.running += 1
        return heapq.heappop(self._ready[self._segment])[2]

    def job(self, index: int) -> Job:
        """Return a job by its number on this node."""
        return self._routes.jobs[index]

    def finish(self, index: int) -> list[tuple[ShardKey, int]]:
        """Record that a job has ended; returns the shards to send now, each with its destination node."""
        self.running -= 1
        self._open[self._routes.segments[index]] -= 1
        for later in self._routes.successors[index]:
            self._release(later)
        return self._routes.departures[index]

    def arrive(self, key: ShardKey) -> None:
        """Record that a shard has arrived from another node."""
        position = self._arrived[key]
        self._arrived[key] += 1
        self._release(self._routes.arrivals[key][position][1])

    @property
    def must_synchronize(self) -> bool:
        """Whether no job is left before the next synchronization."""
        return not self.is_done and self._open[self._segment] == 0

    def synchronized(self) -> None:
        """Record a synchronization: the jobs after it may begin."""
        self._segment += 1

    @property
    def is_done(self) -> bool:
        """Whether the iteration has ended with its last synchronization."""
        return self._segment == self._routes.segments_count

    def missing(self) -> tuple[ShardKey, int] | None:
        """Return a shard that has not arrived yet, and the node that will send it."""
        for key, expected in self._routes.arrivals.items():
            if self._arrived[key] < len(expected):
                return key, expected[self._arrived[key]][0]
        return None
