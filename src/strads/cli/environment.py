"""The software and the machine that a run used, for its records and for `strads info`."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import strads
from strads.cluster.runtime import available_cores

_PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "scikit-learn", "pyarrow")


def versions() -> dict[str, str]:
    """Version of strads, of Python and of the packages that results depend on."""
    found = {"strads": strads.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, str | int]:
    """Platform, processor and cores; `cores_available` is this process' share of `cores`."""
    return {
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "cores_available": available_cores(),
    }


def _cpu_model() -> str:
    """The processor's name as its maker writes it, which `platform.processor` does not tell on Linux."""
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
