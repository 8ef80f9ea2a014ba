"""The layer rule: a module imports only from its own layer and from those that it may depend on.

Modules whose names begin with an underscore, and such names, are for their own layer only; so are such attributes of a
node's connection to the others (`Comm`), which every layer holds.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import strads

PACKAGE = Path(strads.__file__).parent

# Each layer with those that it may import from, besides itself and those of `ANYWHERE`.
LAYERS: dict[str, set[str]] = {
    "code_names": set(),
    "installed": set(),
    "launchers": set(),
    "partition": set(),
    "rng": set(),
    "progress": set(),
    "signals_while_compiling": set(),
    "checkpoints": set(),
    "cluster": {"checkpoints"},
    "user_code": {"cluster"},
    "dds": {"checkpoints", "cluster", "user_code"},
    "schedule": set(),
    "engine": {"cluster", "user_code", "dds", "schedule"},
    "bodies": {"cluster", "user_code", "dds", "schedule", "engine"},
    "loops": {"checkpoints", "cluster", "user_code", "dds", "schedule", "engine", "bodies"},
    "schmp": {"checkpoints", "cluster", "dds", "schedule", "engine"},
    "ps": {"checkpoints", "cluster", "dds", "schedule", "engine"},
    "models": {"checkpoints", "cluster", "dds", "schedule", "engine", "bodies", "loops", "schmp", "progress"},
}
_SHOWN = {"cli", "__main__"}  # what a person sees
ANYWHERE = {"code_names", "errors", "installed", "launchers", "partition", "rng", "signals_while_compiling"}
EXEMPT = {"__init__", "_kernel_cache", "_public", "_starting", "errors"}  # the package, with its public names


def imported_modules(source: str, module: tuple[str, ...], *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and full name of every module of strads that a source imports, absolutely or relatively."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            package = module if is_package else module[:-1]
            base = package[: len(package) - (node.level - 1)] if node.level else ()
            full = ".".join((*base, *filter(None, [node.module])))
            if full == "strads":  # `from strads import cluster` names modules, or names of the package
                for name in node.names:
                    yield node.lineno, f"strads.{name.name}"
            else:
                private = [f".{name.name}" for name in node.names if name.name.startswith("_")]
                for name in private or [""]:
                    yield node.lineno, full + name


def private_attributes_of_comm(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every private attribute that a source reads of something called `comm` or `_comm`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name in ("comm", "_comm"):
                yield node.lineno, f"{name}.{node.attr}"


def violations(source: str, path: str) -> list[str]:
    """Describe each import in the source of `path` (relative to the package) that breaks the rule."""
    parts = Path(path).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = ("strads", *(parts[:-1] if is_package else parts))
    layer = parts[0]
    if layer not in LAYERS.keys() | EXEMPT | _SHOWN:
        return [f"{path}: {layer} is no layer of the design"]
    found = []
    if layer != "cluster":
        found += [f"{path}:{line}: {layer} reaches into {name}" for line, name in private_attributes_of_comm(source)]
    for line, name in imported_modules(source, module, is_package=is_package):
        package, _, rest = name.partition(".")
        target, *inside = rest.split(".")
        if package == "strads" and target != layer and any(part.startswith("_") for part in inside):
            found.append(f"{path}:{line}: {layer} reaches into {name}")
        if layer in EXEMPT | _SHOWN:  # nothing is above these
            continue
        allowed = LAYERS[layer] | {layer} | ANYWHERE
        if package == "strads" and target not in allowed:
            known = target in LAYERS.keys() | _SHOWN
            what = name if known else f"{name} (the package itself imports every layer)"
            found.append(f"{path}:{line}: {layer} imports {what}")
    return found


@pytest.mark.parametrize("path", sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")))
def test_modules_import_from_their_own_layer_and_those_above(path):
    assert violations((PACKAGE / path).read_text(), path) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("cluster/threads.py", "from strads.dds import dvector"),
        ("schedule/plan.py", "import strads.engine.plans.executor"),
        ("schedule/plan.py", "from strads import cluster"),
        ("engine/views/live.py", "def f():\n    from strads.loops import async_for"),
        ("dds/dvector.py", "from ..schedule import plan"),
        ("dds/__init__.py", "from ..loops.async_for import async_for"),
        ("bodies/analysis/proofs.py", "from ...models import MatrixFactorization"),
        ("loops/async_for.py", "import strads"),
        ("loops/async_for.py", "from strads import dvector"),
        ("models/x.py", "from strads.cli import main"),
        ("models/x.py", "from strads.dds._text import First"),
        ("cli/x.py", "from strads.dds import _text"),
        ("cli/x.py", "def f():\n    from strads.models.lasso import _private"),
        ("loops/x.py", "def f(node):\n    return node.comm._inbox.run"),
        ("engine/x.py", "class X:\n    def f(self):\n        return self._comm._inbox.run"),
        ("models/x.py", "def f(comm):\n    comm._idle(0, 1.0)"),
        ("unheard_of/x.py", ""),
    ],
)
def test_violations_are_found(path, source):
    assert len(violations(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "engine/views/live.py",
            "from strads.engine.views.kinds import make_ragged\nfrom strads.errors import PlanError",
        ),
        ("bodies/analysis/proofs.py", "from .values import Alias\nfrom ...dds import dvector"),
        ("loops/async_for.py", "from strads import cluster\nimport numpy as np\nimport stradsify"),
        ("dds/files.py", "from strads.dds._text import First"),
        ("cluster/mpi/x.py", "def f(comm):\n    comm._inbox.abandon()"),
        ("engine/x.py", "class X:\n    def f(self):\n        return self._comm.run"),
        ("cli/train.py", "from strads.models import MatrixFactorization\nfrom strads import progress"),
        ("__init__.py", "from strads.models import MatrixFactorization"),
    ],
)
def test_allowed_imports(path, source):
    assert violations(source, path) == []
