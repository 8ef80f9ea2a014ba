"""Backend `ray`: the nodes are actors, on distinct machines of a Ray cluster where possible."""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strads.cluster.cluster import Cluster, decoded
from strads.cluster.messages import encode
from strads.cluster.node import Outcome, ProgramCall
from strads.errors import ArgumentError, NodeFailure, ProgramStopped

try:
    import ray
except ImportError as error:
    raise ArgumentError('backend="ray" needs Ray: pip install ray') from error

from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.placement_group import PlacementGroup, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from strads.cluster.ray import actor as ray_actor
from strads.cluster.ray.node import pack, unpack
from strads.cluster.ray.places import connect, reserve

_LOOK = 0.5  # seconds between timeout checks in a wait
_START = 120.0  # seconds that the actors may take to start
_INLINE = 100_000  # bytes up to which Ray sends an argument within the call

_GROUPS = {"programs": 1, "messages": 1, "control": 1}  # threads of each concurrency group


def start_ray(nodes: int | None, threads: int | None, timeout: float, address: str | None) -> Cluster:
    """Start nodes on a Ray cluster; the arguments are those of `strads.init`."""
    connected_here = connect(address, nodes, threads)
    try:
        group, threads = reserve(nodes, threads, timeout)
        return RayCluster(group, threads, timeout, connected_here=connected_here)
    except BaseException:
        if connected_here:
            ray.shutdown()
        raise


class RayCluster(Cluster):
    """Actors on a Ray cluster, each in a bundle of reserved resources."""

    backend = "ray"

    def __init__(self, group: PlacementGroup, threads: int, timeout: float, *, connected_here: bool):
        super().__init__(group.bundle_count, threads, timeout)
        self._group = group
        self._connected_here = connected_here  # and disconnected on close
        self._actors: list[Any] = []
        self.hosts = ["unknown host"] * self.size
        try:
            self._actors = _start_actors(group, threads)
            self._connect()
        except BaseException:
            self._end_actors()
            raise

    @property
    def is_local(self) -> bool:
        """Always False: the driver is not a node."""
        return False

    def _connect(self) -> None:
        """Introduce the actors to each other."""
        self.hosts = self._ask([actor.host.remote() for actor in self._actors])
        everybody = self.hosts, self._actors, self.threads, self.timeout
        self._ask([actor.connect.remote(rank, *everybody) for rank, actor in enumerate(self._actors)])

    def _ask(self, refs: Sequence[Any]) -> list[Any]:
        """Return the actors' answers during startup."""
        limit = time.monotonic() + _START
        answers = []
        for rank, ref in enumerate(refs):
            try:
                answers.append(ray.get(ref, timeout=max(0.0, limit - time.monotonic())))
            except RayError as error:
                late = isinstance(error, GetTimeoutError)
                reason = f"not within {_START:g} s" if late else str(error)
                raise NodeFailure(f"node {rank} did not start: {reason}", rank=rank) from error
        return answers

    def _start(self, calls: Sequence[ProgramCall]) -> list[Outcome]:
        run = calls[0].run
        pending = self._execute(calls)
        try:
            return self._collect(run, pending)
        except BaseException as error:
            self._interrupt(run, pending, f"the driver was interrupted by {type(error).__name__}")
            raise

    def _execute(self, calls: Sequence[ProgramCall]) -> dict[Any, int]:
        """Start the calls; return the rank of each pending answer."""
        shared = _shared_arguments(calls)
        program = encode((calls[0].program, calls[0].discarded, calls[0].arguments[:shared]), functions=True)
        own = [pack(encode(call.arguments[shared:], functions=True)) for call in calls]
        common = ray.put(pack(program)) if program.nbytes > _INLINE else pack(program)
        path = _search_path()
        actors = zip(self._actors, own, strict=True)
        return {
            actor.execute.remote(calls[0].run, path, common, arguments): rank
            for rank, (actor, arguments) in enumerate(actors)
        }

    def _collect(self, run: int, pending: dict[Any, int]) -> list[Outcome]:
        """Wait for all nodes; when one fails, stop the others and wait for them only for a limited time."""
        outcomes: dict[int, Outcome] = {}
        limit = float("inf")
        while pending and time.monotonic() < limit:
            ready, _ = ray.wait(list(pending), timeout=_LOOK)
            for ref in ready:
                outcome, lost = self._outcome(pending.pop(ref), ref)
                outcomes[outcome.rank] = outcome
                if lost:
                    limit = 0.0
                elif outcome.error is not None and limit == float("inf"):
                    limit = time.monotonic() + self.timeout
                    self._stop(run, pending, f"node {outcome.rank} failed")
        for rank in pending.values():
            outcomes[rank] = Outcome(rank, error=ProgramStopped("ended because another node has failed"))
        if limit < time.monotonic():
            failures = [found.error for found in outcomes.values() if isinstance(found.error, NodeFailure)]
            self.close(failures[0] if failures else self._ended("a program failed"))
        return [outcomes[rank] for rank in range(self.size)]

    def _outcome(self, rank: int, ref: Any) -> tuple[Outcome, bool]:
        """Return a node's outcome, and whether the node is lost."""
        try:
            message = unpack(ray.get(ref, timeout=self.timeout))
        except RayError as error:
            return Outcome(rank, error=self._lost(rank, error)), True
        return decoded(rank, message), False

    def _lost(self, rank: int, error: RayError) -> NodeFailure:
        host = self.hosts[rank]
        what = "its actor or its machine has died" if isinstance(error, RayActorError) else type(error).__name__
        message = f"node {rank} ({host}) is lost: {what}. Call strads.init again to continue with new nodes"
        return NodeFailure(message, rank=rank, host=host)

    def _stop(self, run: int, pending: dict[Any, int], reason: str) -> None:
        for rank in pending.values():
            self._actors[rank].stop.remote(run, reason)

    def _interrupt(self, run: int, pending: dict[Any, int], reason: str) -> None:
        """End the program on all nodes; if any does not stop, all are killed."""
        running = list(pending)
        try:
            self._stop(run, pending, reason)
            if running:
                _, running = ray.wait(running, num_returns=len(running), timeout=self.timeout)
        finally:
            if running:
                self.close(self._ended(reason))

    def _ended(self, reason: str) -> NodeFailure:
        return NodeFailure(
            f"the nodes were ended because {reason}, and not all of them stopped within {self.timeout:g} s. Call "
            "strads.init again to continue with new nodes"
        )

    def _close(self) -> None:
        self._end_actors()
        if self._connected_here:
            ray.shutdown()  # ends a cluster that was started for this connection

    def _end_actors(self) -> None:
        if ray.is_initialized():
            for actor in self._actors:
                with suppress(Exception):
                    ray.kill(actor)
            with suppress(Exception):
                remove_placement_group(self._group)


def _start_actors(group: PlacementGroup, threads: int) -> list[Any]:
    ray.cloudpickle.register_pickle_by_value(ray_actor)  # the Ray workers cannot import strads yet
    try:
        kind = ray.remote(concurrency_groups=_GROUPS)(ray_actor.NodeActor)
        path = [str(Path(__file__).resolve().parents[3]), *_search_path()]
        return [
            kind.options(
                num_cpus=threads,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank),
            ).remote(path)
            for rank in range(group.bundle_count)
        ]
    finally:
        ray.cloudpickle.unregister_pickle_by_value(ray_actor)


def _search_path() -> list[str]:
    """Return this process's module search path, for the actors: programs may refer to the driver's modules."""
    return [os.path.abspath(entry) for entry in sys.path]


def _shared_arguments(calls: Sequence[ProgramCall]) -> int:
    """Return how many leading arguments are the same object for all nodes: they are sent only once."""
    columns = zip(*(call.arguments for call in calls), strict=False)
    for count, column in enumerate(columns):
        if any(argument is not column[0] for argument in column):
            return count
    return min(len(call.arguments) for call in calls)
