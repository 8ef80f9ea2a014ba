"""Runs cases in forked children with limits of time and memory, and judges what came of them."""

import contextlib
import io
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import cases
from .cases import ARGUMENTS, FILES, Case

SECONDS, BYTES = 20.0, 3 << 30
_OWN_ERROR, _DIFFERS = 97, 98
READ, REFUSED, FAILED_RUN = "read", "refused", "failed with a message"
FINE = (READ, REFUSED, FAILED_RUN)


@dataclass(frozen=True)
class Outcome:
    """What came of a case: one of `FINE`, or what is wrong, with what the command printed."""

    kind: str
    detail: str


def prepare() -> None:
    """Compile and load in this process what the children use: every subject once, and all models."""
    with _folder() as folder:
        for number, subject in enumerate(cases.all_subjects()):
            command = ("train", *subject.command, "--out", "out")
            with contextlib.redirect_stdout(io.StringIO()):
                code = _perform(Case(FILES, subject.name, command, subject.files, subject), folder / str(number))
            if code:
                raise RuntimeError(f"the valid {subject.name} is refused")
    for name, content in cases.models().items():
        with _folder() as folder:
            (folder / "model.npz").write_bytes(content)
            cases.use(name, folder / "model.npz")
    cases.options()


def run(case: Case) -> Outcome:
    """Run a case in a child; `prepare` has been called."""
    from strads import cluster

    cluster.shutdown()  # threads do not survive a fork
    with _folder() as folder:
        child = os.fork()
        if child == 0:
            _child(case, folder)
        code = _wait(child)
        output = (folder / "output").read_text("utf-8", "replace") if (folder / "output").exists() else ""
    return judge(case, code, output)


def judge(case: Case, code: int | None, output: str) -> Outcome:
    """Say what came of a case by the child's exit code (negative: a signal, None: too late) and what it printed."""
    last = output.strip().splitlines()[-12:]
    detail = f"{case.kind}, {case.name}: {' '.join(case.command)[:300]}: {' | '.join(last)[-1500:]}"
    if code is None:
        return Outcome("hangs", detail)
    if code < 0:
        return Outcome(f"signal {signal.Signals(-code).name}", detail)
    if code == _DIFFERS:
        return Outcome("reads something else", detail)
    if code == _OWN_ERROR or "internal error" in output or "Traceback" in output:
        return Outcome("internal error", detail)
    if "not enough memory" in output and case.kind != ARGUMENTS:
        return Outcome("takes too much memory", detail)
    if code not in (0, 1, 2):
        return Outcome(f"exit code {code}", detail)
    if code == 2 and case.kind == FILES and next(iter(case.files)) not in output:
        return Outcome("does not name the file", detail)
    return Outcome((READ, FAILED_RUN, REFUSED)[code], detail)


def _wait(child: int) -> int | None:
    end = time.monotonic() + SECONDS
    pause = 0.001
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _child(case: Case, folder: Path) -> None:
    """The forked process; never returns."""
    code = _OWN_ERROR
    try:
        number = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(number, 1)
        os.dup2(number, 2)
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, now + BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        code = _perform(case, folder)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _perform(case: Case, folder: Path) -> int:
    """Run a case in this process and a new folder; returns the exit code."""
    from strads import StradsError, cli, cluster

    folder.mkdir(exist_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        if case.kind == cases.MODELS:
            try:
                cases.use(case.name, Path("model.npz"))
            except StradsError as error:
                print(f"strads: {error}")
                return 2
            return 0
        if case.subject is not None:
            try:
                cases.compare(case, folder)
            except AssertionError as error:
                traceback.print_exception(error)
                return _DIFFERS
        return cli.run(case.command)
    finally:
        cluster.shutdown()
        os.chdir(before)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="strads-fuzz-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
