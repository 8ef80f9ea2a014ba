"""Runs tests of scikit-learn, celer, skglm, implicit and gensim with our classes in place of theirs.

A test applies if it reaches one of our classes, passes with the peer's own, and is about nothing in `suites.ELSEWHERE`.
Usage:

    python tests/peers [SUITE …]    all suites by default; the last ones need celer, skglm, implicit and gensim

Ends with an error if fewer than 90 % of the tests of a suite that apply pass.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from suites import ELSEWHERE, SUITES, Suite

HERE = Path(__file__).parent
ENOUGH = 0.9


def located(suite: Suite, folder: Path) -> list[str]:
    """Return the tests as pytest finds them; those of a source archive are unpacked into a folder."""
    if suite.source is None:
        return list(suite.tests)
    release = f"{suite.source}=={version(suite.source)}"
    download = ["download", "--quiet", "--no-deps", "--no-binary", suite.source, "--dest", str(folder), release]
    subprocess.run([sys.executable, "-m", "pip", *download], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as contents:
        contents.extractall(folder, filter="data")
    (unpacked,) = (entry for entry in folder.iterdir() if entry.is_dir())
    return [str(unpacked / test) for test in suite.tests]


def outcomes(name: str, *options: str) -> dict[str, str]:
    """Return what became of the tests of a suite."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "outcomes.json"
        plugin = ["-p", "plugin", "--peer", name, "--outcomes", str(found), *options]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "--pyargs"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
        tests = located(SUITES[name], Path(folder))
        run = subprocess.run(
            [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if not found.exists():
            raise SystemExit(f"{name}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        outcomes: dict[str, str] = json.loads(found.read_text())
    return outcomes


def report(name: str) -> float:
    """Print what became of a suite; returns the share of the tests that apply that pass."""
    own, ours = outcomes(name, "--unreplaced"), outcomes(name)
    excluded: Counter[str] = Counter()
    passed, failed = 0, []
    for test, outcome in ours.items():
        why = next((why for pattern, why in ELSEWHERE.items() if re.search(pattern, test)), None)
        if outcome == "passed":
            passed += 1
        elif outcome == "skipped":
            continue
        elif own.get(test) != "passed":
            excluded["the peer fails, too"] += 1
        elif why is not None:
            excluded[why] += 1
        else:
            failed.append(test)
    share = passed / max(passed + len(failed), 1)
    print(f"{name}: {passed} of {passed + len(failed)} tests that apply pass ({share:.0%})")
    for why, count in excluded.most_common():
        print(f"    {count:4} left out: {why}")
    for test in failed:
        print(f"         failed: {test}")
    return share


def main() -> None:
    """Run the suites."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    chosen = parser.parse_args().suites or list(SUITES)
    if any(name not in SUITES for name in chosen):
        parser.error(f"suites are {', '.join(SUITES)}")
    if min(report(name) for name in chosen) < ENOUGH:
        raise SystemExit(f"fewer than {ENOUGH:.0%} of the tests that apply pass")


if __name__ == "__main__":
    main()
