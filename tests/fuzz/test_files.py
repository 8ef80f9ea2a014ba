"""A sample of the fuzzer of files, arguments and models, and tests of the fuzzer itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.files import careful, cases, runner
from fuzz.files.careful import MalformedError
from fuzz.files.cases import ARGUMENTS, FILES, Case

ROOT = Path(__file__).parents[2]
SAMPLE = 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forked children")
def test_damaged_files_arguments_and_models_are_refused_or_read_as_they_are():
    command = [sys.executable, str(ROOT / "tests" / "fuzz" / "files"), "--cases", str(SAMPLE)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.splitlines()[-1].startswith(f"{SAMPLE} cases")


def test_cases_depend_on_their_seed_alone():
    for seed in (4, 5, 9):
        first, second = cases.make(seed), cases.make(seed)
        assert (first.command, first.files) == (second.command, second.files)


@pytest.mark.parametrize(
    ("code", "output", "kind"),
    [
        (0, "", runner.READ),
        (2, "strads: error: d.csv:3: no number", runner.REFUSED),
        (1, "strads: error: training diverged", runner.FAILED_RUN),
        (None, "", "hangs"),
        (-11, "", "signal SIGSEGV"),
        (1, "strads: internal error: KeyError: 'x'", "internal error"),
        (97, "Traceback", "internal error"),
        (98, "Traceback", "reads something else"),
        (1, "strads: error: not enough memory: 7 GiB", "takes too much memory"),
        (130, "strads: interrupted", "exit code 130"),
        (2, "strads: error: no number", "does not name the file"),
    ],
)
def test_what_counts_as_a_failure(code, output, kind):
    assert runner.judge(Case(FILES, "", (), {"d.csv": b""}), code, output).kind == kind
    assert (kind in runner.FINE) == (kind in (runner.READ, runner.REFUSED, runner.FAILED_RUN))


def test_arguments_may_ask_for_more_memory_than_there_is():
    case = Case(ARGUMENTS, "", (), {"d.csv": b""})
    assert runner.judge(case, 1, "strads: error: not enough memory: 7 GiB").kind == runner.FAILED_RUN


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        (careful.libsvm, b"1 0x1:2\n"),
        (careful.libsvm, b"1 2:1 1:3\n"),
        (careful.matrix_market, b"%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1\n"),
        (careful.matrix_market, b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 2 1\n"),
        (careful.bag_of_words, b"1\n1\n1\n1 1 x\n"),
        (careful.triples, b"a\tb\n"),
        (careful.npz, b"PK"),
        (careful.lines_of, b"\x1f\x8b\x00"),
    ],
)
def test_second_readers_are_strict(reader, content):
    with pytest.raises(MalformedError):
        reader(content)
