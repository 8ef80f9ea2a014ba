"""Kernels round in the same way whether they have just been compiled or come from the disk.

A function that another one calls exists twice: as it was compiled by itself, and as a copy in the code of its caller.
Which of them runs depends on what the process has compiled or loaded before. Where `fastmath` allows sums to be
reordered, the two may round differently, unless the function is inlined.
"""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import strads

_SOURCE = Path(strads.__file__).parent
_INLINING = ("forceinline", "INLINED", "UNCOUNTED")

_FIT = """
import hashlib, sys, numpy as np
from strads.models.kernels import softmax
rng = np.random.default_rng(0)
X, codes, weights = rng.normal(size=(600, 120)), rng.integers(0, 26, 600).astype(np.int32), np.ones(600)
digest = hashlib.sha256()
W, intercept = rng.normal(size=(120, 26)).astype(sys.argv[1]), np.zeros(26, sys.argv[1])
gradient, sums, curvature = np.zeros((120, 26)), np.zeros(26), np.zeros((26, 26))
softmax.dense_rows(X, codes, weights, W, intercept, gradient, sums, curvature)
for found in (gradient, sums, curvature):
    digest.update(found.tobytes())
print(digest.hexdigest())
"""


def compiled_functions() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the name, the decorator, and the names of the module's own or imported functions that the body uses."""
    for path in sorted(_SOURCE.rglob("*.py")):
        module = ast.parse(path.read_text())
        known = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
        imports = [node for node in ast.walk(module) if isinstance(node, ast.ImportFrom)]
        known.update(alias.asname or alias.name for node in imports for alias in node.names)
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef):
                for decorator in map(ast.unparse, node.decorator_list):
                    if decorator.startswith(("njit", "overload")):
                        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                        yield node.name, decorator, used & known


def test_functions_that_may_reorder_sums_are_inlined_into_their_callers() -> None:
    callers = defaultdict(set)
    for name, _, used in compiled_functions():
        for each in used - {name}:
            callers[each].add(name)
    found = [(name, decorator) for name, decorator, _ in compiled_functions() if "fastmath" in decorator]
    assert len(found) > 20
    for name, decorator in found:
        is_called = name in callers or decorator.startswith("overload")
        assert not is_called or any(word in decorator for word in _INLINING), f"{name}, called by {callers[name]}"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_from_the_disk_gives_the_bits_of_the_one_just_compiled(tmp_path: Path, dtype: str) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    digests = [
        subprocess.run(
            [sys.executable, "-c", _FIT, dtype], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert digests[0] == digests[1]
