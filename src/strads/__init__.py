"""strads: write the sequential machine-learning loop over shared parameters, run it in parallel.

Loops are serializable: the result is that of some sequential order, without data races. See `async_for`.
"""

import importlib
from typing import Any

from strads import _starting as _starting

__version__ = "0.1.0"

if _starting.IS_COMMAND:  # whose help needs nothing else: what a command needs, it imports
    _starting.end_quietly()
else:
    from strads import _public
    from strads._public import *  # noqa: F403

    __all__ = [*_public.__all__, "models"]  # noqa: F405


def __getattr__(name: str) -> Any:
    """Load the estimators when they are first used, as scikit-learn takes a second; in commands, all other names."""
    if name == "models":
        return importlib.import_module("strads.models")
    public = importlib.import_module("strads._public")
    if name in public.__all__:
        return getattr(public, name)
    raise AttributeError(f"module 'strads' has no attribute {name!r}")
