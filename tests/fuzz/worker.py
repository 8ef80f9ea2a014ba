"""Processes in which programs run, so that crashes and hangs are found too."""

import contextlib
import faulthandler
import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from .grammar import generate
from .runner import EQUAL, GRAMMAR, NOT_COMPILED, Outcome, run
from .scenario import Case, scenario

CRASH, HANG = "crash", "hang"
SCENARIOS = 1000  # seeds of scenarios of one body


def seed_of(body: int, number: int) -> int:
    return body * SCENARIOS + number


def serve(connection: Connection, log: str) -> None:
    """The loop of a worker process: cases and bodies in, outcomes out."""
    warnings.filterwarnings("ignore", module="numba")  # of its own checks
    warnings.filterwarnings("ignore", category=SyntaxWarning)  # of what shrinking has left
    sys.setswitchinterval(1e-5)  # threads take turns often, so that races show
    with Path(log).open("w") as file:
        faulthandler.enable(file)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            while True:
                _answer(connection, connection.recv())


def _answer(connection: Connection, task: tuple) -> None:
    if task[0] == "case":
        connection.send(_outcomes(task[1]))
        return
    _, body, first, count = task
    program = generate(body)
    for number in range(first, count):
        outcomes = _outcomes(scenario(program, seed_of(body, number)))
        connection.send((number, outcomes))
        if outcomes[-1].kind == NOT_COMPILED:
            break
    connection.send(None)


def _outcomes(case: Case) -> list[Outcome]:
    try:
        return run(case) or [Outcome(EQUAL, "no call")]
    except Exception as error:  # in what surrounds the calls: strads' tables, or the fuzzer itself
        import traceback

        return [Outcome(GRAMMAR, "".join(traceback.format_exception(error)[-3:]))]


class Worker:
    """A worker process; it is started anew after a crash or a hang, and after some bodies, which it keeps compiled."""

    def __init__(self, timeout: float = 60.0, bodies: int = 60):
        self.timeout, self.bodies = timeout, bodies
        self.log = f"/tmp/strads-fuzz-{os.getpid()}.log"
        self.process: multiprocessing.process.BaseProcess | None = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.log), daemon=True)
        self.process.start()
        theirs.close()
        self.used = 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None

    def _ask(self, task: tuple) -> None:
        if self.process is not None and self.used >= self.bodies:
            self.stop()
        if self.process is None:
            self._start()
        self.used += 1
        self.connection.send(task)

    def _receive(self) -> object | Outcome:
        if not self.connection.poll(self.timeout):
            self.stop()
            return Outcome(HANG, f"no answer within {self.timeout:g} s")
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.stop()
            trace = Path(self.log).read_text().strip().splitlines()[:12]
            return Outcome(CRASH, "\n".join([f"exit code {code}", *trace]))

    def run(self, case: Case) -> list[Outcome]:
        """The outcomes of one case."""
        self._ask(("case", case))
        answer = self._receive()
        return [answer] if isinstance(answer, Outcome) else answer

    def run_body(self, body: int, count: int) -> Iterator[tuple[int, list[Outcome]]]:
        """The outcomes of so many scenarios of a body; after a crash it goes on with the next one."""
        number = 0
        while number < count:
            self._ask(("body", body, number, count))
            while True:
                answer = self._receive()
                if answer is None:
                    return
                if isinstance(answer, Outcome):
                    yield number, [answer]
                    number += 1
                    break
                number = answer[0] + 1
                yield answer
