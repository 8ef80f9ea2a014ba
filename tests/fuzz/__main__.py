"""`python tests/fuzz --bodies 100 --seed 0`: runs random programs, shrinks what fails, and prints a summary."""

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from fuzz.driver import fuzz

    parser = argparse.ArgumentParser(prog="python tests/fuzz", description="Random loops: strads against plain Python.")
    parser.add_argument("--seed", type=int, default=0, help="of the first body")
    parser.add_argument("--bodies", type=int, default=100)
    parser.add_argument("--scenarios", type=int, default=60, help="of each body; a program is a body and a scenario")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--only", metavar="SEED[:SCENARIO]", help="one body, or one program of it")
    parser.add_argument("--out", type=Path, default=Path("/tmp/strads-fuzz"), help="where reproducers are written")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds for each failure; 0: as they are")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds after which a program counts as hanging")
    sys.exit(fuzz(parser.parse_args()))
