"""Which code is installed: part of Python, of strads or of a package. All other code is the user's."""

import os
import sys
import sysconfig
from pathlib import PurePath

_PACKAGES = {"site-packages", "dist-packages"}  # folders of pip and conda, and of Debian
_FOLDERS = tuple(
    os.path.join(folder, "")  # with a separator
    for folder in (os.path.dirname(os.path.abspath(__file__)), sysconfig.get_path("stdlib"))
)


def is_installed_module(name: str | None) -> bool:
    """Whether the module of this name is installed; None, of functions that have no module, is not."""
    name = name or ""
    package = name.partition(".")[0]
    if package == "__main__":  # whatever runs it
        return False
    if package == "strads" or package in sys.stdlib_module_names:
        return True
    files = (getattr(sys.modules.get(each), "__file__", None) for each in (name, package))
    return any(file is not None and is_installed_file(file) for file in files)


def is_installed_file(filename: str) -> bool:
    """Whether a source file, named as in tracebacks, is installed."""
    if filename.startswith("<frozen "):  # modules of Python that are built into it
        return True
    return filename.startswith(_FOLDERS) or not _PACKAGES.isdisjoint(PurePath(filename).parts)
