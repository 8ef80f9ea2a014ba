"""`python tests/one_seed --runs 10`: one SHA-256 of each model, on any threads and nodes, on every backend."""

import argparse
import sys
import time
from pathlib import Path


def main() -> int:
    """Print a line for each place, with the first digits of each model's hashes; return 1 if a model has several."""
    from one_seed.models import MODELS
    from one_seed.places import PLACES, hashes

    parser = argparse.ArgumentParser(prog="python tests/one_seed", description="One seed, any number of cores.")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--backends", nargs="+", choices=["threads", "mpi", "ray"], default=["threads", "mpi", "ray"])
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    print(f"{'':<16}" + "".join(f"{name:>13}" for name in arguments.models))
    seen: dict[str, set[str]] = {name: set() for name in arguments.models}
    for place in (place for place in PLACES if place.backend in arguments.backends):
        start = time.perf_counter()
        found = hashes(place, arguments.models, arguments.runs)
        cells = ("/".join(sorted({digest[:8] for digest in found[name]})) for name in arguments.models)
        seconds = time.perf_counter() - start
        print(f"{place!s:<16}" + "".join(f"{cell:>13}" for cell in cells) + f"{seconds:>7.0f} s", flush=True)
        for name, digests in found.items():
            seen[name].update(digests)
    several = [name for name, digests in seen.items() if len(digests) > 1]
    print("DIFFERENT bits: " + ", ".join(several) if several else "one SHA-256 of each model")
    return bool(several)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(main())
