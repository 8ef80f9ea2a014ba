"""How old what workers read is under SSP and ESSP, and what communication costs them (ESSP, fig. 1).

Matrix factorization by 8 logical workers over an imitated network. Of every row that is read, and every worker, the
clock of its last updates in the row less the reader's clock is counted; under BSP that is always −1. Beside it stand
the share that would be at −1 or more if updates were seen as soon as they are sent (workers ahead of others read what
these have not written yet), and the share of rows whose newest update is at −1 or more.

Usage:
    python experiments/staleness_profile.py [--staleness 1 3 5 10 20] [--histogram 10] [--clocks 60]
"""

import argparse
from pathlib import Path

import numpy as np
from _parameter_server import Outcome, Setting, ratings_of, train

from strads import ps

STEP = 0.01
CLOCKS_IN_EPOCH = 10


def row(name: str, staleness: int, outcome: Outcome) -> str:
    """Return a line of the table."""
    profile, statistics = outcome.staleness, outcome.statistics
    recent, newest, prompt = (p.shares[p.differentials >= -1].sum() for p in (profile, profile.newest, outcome.prompt))
    return (
        f"{staleness:3}  {name:5} {profile.mean:8.2f} {recent:10.1%} {prompt:10.1%} {newest:10.1%} "
        f"{np.mean(statistics.computing):12.1f} {np.mean(statistics.communicating):14.1f} "
        f"{sum(statistics.bytes_sent) / 1e6:10.0f}"
    )


def main() -> None:
    """Print a table, and histograms for one staleness."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--staleness", type=int, nargs="+", default=[1, 3, 5, 10, 20])
    parser.add_argument("--histogram", type=int, nargs="+", default=[5, 10], help="draw these of --staleness")
    parser.add_argument("--clocks", type=int, default=60)
    parser.add_argument("--clock-seconds", type=float, default=0.4, help="imitated computing time")
    parser.add_argument("--jitter", type=float, default=Setting.jitter, help="σ of the logarithm of computing times")
    parser.add_argument("--latency", type=float, default=Setting.latency, help="of a message, seconds")
    options = parser.parse_args()
    if options.ratings is not None and not options.ratings.is_file():
        parser.error(f"{options.ratings}: no such file")
    setting = Setting(
        ratings_of(options.ratings),
        options.workers,
        CLOCKS_IN_EPOCH,
        -(-options.clocks // CLOCKS_IN_EPOCH),
        options.clock_seconds,
        options.jitter,
        options.latency,
    )
    drawn = []
    print("  s         mean clock   at −1 or  if updates  newest at   seconds of a   communicating,     MB")
    print("           differential      more   took 0 s −1 or more worker: computing                sent")
    for staleness in options.staleness:
        for model in (ps.SSP, ps.ESSP):
            outcome = train(setting, model(staleness), STEP)
            print(row(model.__name__, staleness, outcome), flush=True)
            if staleness in options.histogram:
                drawn.append((f"{model(staleness)!r}", outcome))
    for name, outcome in drawn:
        print(f"\n{name}, clock differentials\n{outcome.staleness}")
        print(f"of the newest update of each row\n{outcome.staleness.newest}")


if __name__ == "__main__":
    main()
