"""The processes of an MPI job: where each runs, and whether it is alive."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One process of the job, as the others know it."""

    host: str  # name of the host
    machine: str  # processes of one machine can see each other's pids
    pid: int  # process number in its pid namespace
    started: str  # time of its start, in clock ticks since boot; empty where there is no /proc
    cores: frozenset[int]  # numbers of the cores that it may use

    @classmethod
    def this(cls) -> "Process":
        """Return the calling process."""
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        pid = os.getpid()
        return cls(socket.gethostname(), _machine(), pid, _started(pid) or "", frozenset(cores))

    @property
    def is_alive(self) -> bool:
        """Whether this process, on the same machine, is still running."""
        return _started(self.pid) == self.started


def _machine() -> str:
    """Identify the pid namespace: this boot of the machine, or a container on it."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        return f"{boot.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """Return a process's start time, which tells it from a later one with the same pid; None if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    except OSError:
        return None
    else:
        return None if state in "ZX" else fields[18]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""


class Processes:
    """All processes of the job, by rank, seen from one of them."""

    def __init__(self, rank: int, processes: Sequence[Process]):
        self._all = list(processes)
        here = processes[rank].machine
        self._neighbours = [r for r, process in enumerate(processes) if process.machine == here and r != rank]

    @property
    def hosts(self) -> list[str]:
        """Name of each rank's host."""
        return [process.host for process in self._all]

    def lost(self) -> list[int]:
        """Ranks on this machine whose processes have ended."""
        return [rank for rank in self._neighbours if not self._all[rank].is_alive]

    def pid(self, rank: int) -> int | None:
        """Return the pid of a running process on this machine."""
        alive = rank in self._neighbours and self._all[rank].is_alive
        return self._all[rank].pid if alive else None

    def threads_each(self) -> int:
        """Threads per process such that no machine runs more threads than the job may use cores there."""
        machines: dict[str, list[Process]] = {}
        for process in self._all:
            machines.setdefault(process.machine, []).append(process)
        shares = (len(frozenset().union(*(p.cores for p in group))) // len(group) for group in machines.values())
        return max(1, min(shares))
