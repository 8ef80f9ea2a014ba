"""Writes the gallery, `docs/gallery/`: a page for each loop of `examples/loops`, and a table of all.

A page has the body, how it is called, what `plan.explain()` says of a small problem, and the figures of a run of
`loops.py --json FILE`. Usage:

    python benchmarks/gallery.py FILE && ruff format docs/gallery
"""

import argparse
import importlib
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import strads

ROOT = Path(__file__).parents[1]
LOOPS, PAGES = ROOT / "examples" / "loops", ROOT / "docs" / "gallery"
SMALL = 0.02  # scale of what is explained
HIDDEN = ("work of a job", "bounds")  # lines of an explanation that say nothing to a reader


def title(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().splitlines()[0].rstrip(".")


def call(module: ModuleType) -> str:
    """The lines of the program that call the loop."""
    source = inspect.getsource(module)
    main = source[source.index('if __name__ == "__main__":') :].splitlines()[1:]
    return "\n".join(line.removeprefix("    ") for line in main)


def explanation(module: ModuleType) -> str:
    indices, arguments = module.make(SMALL)
    options: dict[str, Any] = {"order": "sequential"} if getattr(module, "ORDER_MATTERS", False) else {}
    stats = strads.async_for(indices, module.body, *arguments, threads=2, **options)
    return "\n".join(line for line in stats.plan.explain().splitlines() if not line.startswith(HIDDEN))


def speeds(result: dict[str, Any]) -> list[str]:
    """Seconds of the plain loop, and how many times faster strads is on 1 and on 2 threads."""
    plain = result["plain"]["wall"]
    return [f"{plain:.2f}", *(f"{plain / result[side]['wall']:.2f}" for side in ("strads1", "strads2"))]


def page(module: ModuleType, result: dict[str, Any]) -> str:
    name = module.__name__
    plain, one, two = speeds(result)
    first = result["strads2"]["first"] / result["plain"]["wall"]
    return f"""# {title(module)}

```python
{inspect.getsource(module.body).rstrip()}
```

The whole program, with its data: [`examples/loops/{name}.py`](../../examples/loops/{name}.py). Its last lines:

```python
{call(module)}
```

Of a problem of {SMALL:.0%} of that size, `stats.plan.explain()` says:

```text
{explanation(module)}
```

An epoch takes the plain compiled loop {plain} s; `async_for` is {one} × as fast on 1 thread, {two} × on 2. The first
call takes {first:.1f} such epochs besides compiling.
"""


def table(rows: list[tuple[ModuleType, dict[str, Any]]]) -> str:
    lines = [
        "# Gallery",
        "",
        "Ordinary sequential loops, each as a user would write it. Seconds are those of an epoch of the plain loop",
        "that Numba compiles, on one thread; the other figures say how many times faster `async_for` is.",
        "`benchmarks/loops.py` measures them, and `benchmarks/gallery.py` writes these pages.",
        "",
        "| loop | strategy | plain, s | 1 thread | 2 threads |",
        "|---|---|---|---|---|",
    ]
    for module, result in rows:
        cells = " | ".join(speeds(result))
        lines.append(f"| [{title(module)}]({module.__name__}.md) | {result['strads2']['strategy']} | {cells} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, metavar="FILE")
    results = {result["name"]: result for result in json.loads(parser.parse_args().figures.read_text())}
    sys.path.insert(0, str(LOOPS))
    PAGES.mkdir(exist_ok=True)
    rows = []
    for path in sorted(LOOPS.glob("[!_]*.py")):
        module = importlib.import_module(path.stem)
        rows.append((module, results[path.stem]))
        (PAGES / f"{path.stem}.md").write_text(page(*rows[-1]))
    (PAGES / "README.md").write_text(table(rows))


if __name__ == "__main__":
    main()
