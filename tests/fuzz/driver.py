"""Runs bodies in workers, counts outcomes, and has failures shrunk and written."""

import argparse
import os
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from . import worker as workers
from .grammar import generate
from .reproducer import script
from .runner import FAILURES, GRAMMAR, NOT_COMPILED, Outcome
from .scenario import scenario
from .shrink import shrink

# Bodies are small: what the optimizer would gain is less than what it takes.
os.environ.setdefault("NUMBA_OPT", "1")
# Memory that nobody has written has a pattern, so that reading it does not look like zeros.
os.environ.setdefault("MALLOC_PERTURB_", "165")

_REPORT_EVERY = 300.0  # seconds
CLASSES = (*FAILURES, workers.CRASH, workers.HANG, GRAMMAR)


@dataclass
class Tally:
    """What came of all programs."""

    bodies: int = 0
    programs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: dict[str, set[str]] = field(default_factory=dict)  # class: programs
    not_compiled: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, program: str, outcomes: list[Outcome]) -> None:
        self.programs += 1
        for outcome in outcomes:
            self.outcomes[outcome.kind] += 1
            if outcome.kind in CLASSES:
                self.failed.setdefault(outcome.kind, set()).add(program)
            if outcome.kind == NOT_COMPILED:
                self.not_compiled[_reason(outcome.detail)] += 1

    def summary(self) -> str:
        """A few lines for the terminal."""
        rate = self.programs / max(self.seconds, 1e-9)
        calls = sum(self.outcomes.values())
        lines = [f"{self.bodies} bodies, {self.programs} programs, {calls} calls in {self.seconds:.0f} s: {rate:.1f}/s"]
        lines += [f"  {count:7} {kind}" for kind, count in self.outcomes.most_common() if kind not in CLASSES]
        lines += [f"          {count} × {reason}" for reason, count in self.not_compiled.most_common(8)]
        for kind, programs in sorted(self.failed.items()):
            bodies = {program.split(":")[0] for program in programs}
            lines.append(f"  FAILED: {kind}: {len(programs)} programs of {len(bodies)} bodies")
        return "\n".join(lines)


def _reason(detail: str) -> str:
    """A message without names and numbers of lines, so that the same ones can be counted."""
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    return re.sub(r"\d+", "#", lines[1] if len(lines) > 1 else lines[0])[:150]


class Fuzzer:
    """One or several workers over a range of bodies."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.tally, self.lock = options, Tally(), Lock()
        self.folder: Path = options.out

    def run(self, bodies: range) -> Tally:
        jobs = self.options.jobs
        self.start = self.reported = time.monotonic()
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self._share, [bodies[job::jobs] for job in range(jobs)]))
        self.tally.seconds = time.monotonic() - self.start
        return self.tally

    def _share(self, bodies: range) -> None:
        worker = workers.Worker(self.options.timeout)
        try:
            for body in bodies:
                self._body(worker, body)
        finally:
            worker.stop()

    def _body(self, worker: workers.Worker, body: int) -> None:
        first: dict[str, int] = {}  # the first scenario of each class of failure
        for number, outcomes in worker.run_body(body, self.options.scenarios):
            with self.lock:
                self.tally.add(f"{body}:{number}", outcomes)
            if outcomes[-1].kind in CLASSES:
                first.setdefault(outcomes[-1].kind, number)
        with self.lock:
            self.tally.bodies += 1
            now = time.monotonic()
            if now - self.reported > _REPORT_EVERY:
                self.reported, self.tally.seconds = now, now - self.start
                print(self.tally.summary(), flush=True)
        for kind, number in first.items():
            self.report(worker, body, number, kind)

    def report(self, worker: workers.Worker, body: int, number: int, kind: str) -> None:
        """Shrinks a failure and writes its script."""
        case, seed = scenario(generate(body), workers.seed_of(body, number)), f"{body}:{number}"
        outcome = worker.run(case)[-1]
        if outcome.kind != kind:
            worker.stop()
            again = {n: outcomes[-1].kind for n, outcomes in worker.run_body(body, number + 1)}
            where = "again with the scenarios before it" if again.get(number) == kind else "not in a new process"
            print(f"{kind}: seed {seed}: alone {outcome.kind}; {where}", flush=True)
            return
        if self.options.shrink and kind != GRAMMAR:
            case, outcome = shrink(case, worker.run, self.options.shrink)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{kind.replace(' ', '_').replace(':', '')}_{body}_{number}.py"
        path.write_text(script(case, outcome, seed))
        print(f"{kind}: {path}\n    {outcome.detail.splitlines()[0][:200]}", flush=True)


def fuzz(options: argparse.Namespace) -> int:
    """The command; returns its exit code."""
    fuzzer = Fuzzer(options)
    if options.only:
        body, _, number = options.only.partition(":")
        if not number:
            tally = fuzzer.run(range(int(body), int(body) + 1))
            print(tally.summary())
            return bool(tally.failed)
        worker = workers.Worker(options.timeout)
        outcomes = worker.run(scenario(generate(int(body)), workers.seed_of(int(body), int(number))))
        print(*(f"{o.kind}: {o.detail}" for o in outcomes), sep="\n")
        if outcomes[-1].kind in CLASSES:
            fuzzer.report(worker, int(body), int(number), outcomes[-1].kind)
        worker.stop()
        return outcomes[-1].kind in CLASSES
    tally = fuzzer.run(range(options.seed, options.seed + options.bodies))
    print(tally.summary())
    return bool(tally.failed)
