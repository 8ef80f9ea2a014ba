"""Where it runs: the threads of this machine."""

from strads.cluster.runtime import Runtime, available_cores, check_threads, current, init, shutdown
from strads.cluster.threads import ThreadTeam

__all__ = ["Runtime", "ThreadTeam", "available_cores", "check_threads", "current", "init", "shutdown"]
