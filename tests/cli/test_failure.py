"""What the terminal shows of an error that a node has raised."""

import pytest

import strads
from strads.cli.failure import report
from strads.errors import NodeFailure


def fails_on_node_1(node, error):
    if node.rank == 1:
        raise error


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (strads.InputError("score nan"), 2, "strads: error: score nan [on node 1 ("),
        (KeyError("mishap"), 1, "strads: internal error: KeyError: 'mishap' [on node 1 ("),
        (NodeFailure("node 1 (here) waits"), 1, "strads: error: node 1 (here) waits"),
    ],
)
def test_the_node_is_named_and_the_traceback_is_for_debugging(capsys, error, code, shown):
    with strads.init("threads", nodes=2, threads=1) as runtime, pytest.raises(type(error)) as caught:
        runtime.run(fails_on_node_1, error)
    assert report(caught.value, debug=False) == code
    brief = capsys.readouterr().err
    assert report(caught.value, debug=True) == code
    long = capsys.readouterr().err
    assert brief.startswith(shown)
    assert brief.count("\n") == 1
    assert "fails_on_node_1" not in brief
    assert "fails_on_node_1" in long
    assert long.count("raised on node 1 (") == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--nodes", "9" * 40), "--nodes 9999999999999999999999999…: the largest possible number is 2147483647"),
        (("--rank", 2**31), "--rank 2147483648: the largest possible number is 2147483647"),
        (("--seed", 2**63), "--seed 9223372036854775808: the largest possible number is 9223372036854775807"),
        (("--threads", 70_000), "threads=70000: at most 65536 are possible"),
        (("--nodes", 5000, "--threads", 1), "5000 nodes of 1 threads: a process can have at most 4096 threads"),
    ],
)
def test_numbers_that_no_count_can_be(request, files, tmp_path, options, problem):
    command = request.getfixturevalue("strads")
    done = command("train", "mf", "--data", files / "header.csv", "--out", tmp_path / "run", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
