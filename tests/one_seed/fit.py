"""`python fit.py BACKEND NODES THREADS RUNS MODEL…`: fits models at one place and prints their hashes as JSON."""

import json
import sys
from pathlib import Path

import strads

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> None:
    """Fit the models on the driver; other nodes serve and never return from `strads.init`."""
    from one_seed.models import sha256

    backend, nodes, threads, runs, *models = sys.argv[1:]
    with strads.init(backend, nodes=int(nodes), threads=int(threads)):
        found = {name: [sha256(name) for _ in range(int(runs))] for name in models}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
