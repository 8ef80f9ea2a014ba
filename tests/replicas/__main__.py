"""`python tests/replicas --batches 1000 --kills 50`: feeds replicas, prints how many digests agree."""

import argparse
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Compare the replicas of the chosen models."""
    from replicas.harness import compare
    from replicas.logs import MODELS

    parser = argparse.ArgumentParser(prog="python tests/replicas", description="Replicas that are killed, or not.")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the log, and of the moments of the kills")
    arguments = parser.parse_args()
    for name in arguments.models:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = compare(name, arguments.seed, arguments.batches, arguments.kills, Path(folder))
        seconds = time.perf_counter() - start
        print(f"{name}: {found['compared']} digests agree, {found['kills']} kills, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
