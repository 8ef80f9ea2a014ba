"""`python tests/fuzz/files --cases 20000`: damages files, arguments and models, and prints what goes wrong."""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path


def fuzz(options: argparse.Namespace) -> int:
    """Run the cases; returns the exit code."""
    from fuzz.files import cases, runner

    runner.prepare()
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    for seed in range(options.seed, options.seed + options.cases):
        outcome = runner.run(cases.make(seed))
        counts[outcome.kind] += 1
        if outcome.kind not in runner.FINE:
            print(f"{seed}: {outcome.kind}: {outcome.detail}", flush=True)
        elif options.verbose:
            print(f"{seed}: {outcome.kind}: {outcome.detail}")
        if options.minutes and time.monotonic() - begin > 60 * options.minutes:
            break
    print(f"{counts.total()} cases in {time.monotonic() - begin:.0f} s: {dict(counts)}")
    return any(kind not in runner.FINE for kind in counts)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ.setdefault("COLUMNS", "200")
    parser = argparse.ArgumentParser(prog="python tests/fuzz/files", description="Damaged files, arguments and models.")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=0, help="end after so many; 0: never")
    parser.add_argument("--verbose", action="store_true", help="print all cases")
    sys.exit(fuzz(parser.parse_args()))
