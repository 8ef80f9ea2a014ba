"""Wrong input and options end in one readable line, exit code 2, and nothing on disk."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from outputs import refusal

Strads = Callable[..., subprocess.CompletedProcess[str]]
GOOD = "1,2,3\n2,1,4\n"


def refused(strads: Strads, folder: Path, *arguments: object) -> str:
    """What standard error says."""
    out = folder / "out"
    return refusal(strads("train", "mf", "--out", out, *arguments), out)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("user,item,score\n1,2,3\n1,3,x\n", ":3:", "'x'"),
        ("userId,movieId,rating\n1,2,3\n\n,3,4\n", ":4:", "the user is empty"),
        ("1\t2\t3\n1\t\t4\n", ":2:", "the item is empty"),
        ("1,2,3\n1,3,1e39\n", ":2:", "found '1e39', beyond 3.4028234663852886e+38; correct the line"),
        ("# my ratings\nuser,item,score\n1,2,3\n", ":1:", "'# my ratings' seems to be a comment, which is not skipped"),
        ("# from 2020\n1,2,3\n1,3,4\n2,3,4\n", ":1:", "seems to be a comment, which is not skipped: remove the line"),
        ("who,what,stars\n1,2,3\n", ":1:", "no column is known to hold the user: --columns user=…"),
        ("who,what,stars\n1,2,3\n", ":1:", "names it among 'who', 'what', 'stars'"),
        ("user,uid2,user_id,uid,item,item,score\n", ":1:", "several columns may hold the item"),
        ("user_id,movie,date\n1,2,3\n", ":1:", "hold the score"),
        ("1,2,3\n1,3,nan\n", ":2:", "nan"),
        ("1,2,3\n1,3\n", ":2:", "expected 3 fields"),
        ("1,2\n", ":1:", "three columns are needed"),
        ('"user,item,score\n1,2,3\n', ":1:", "a quote is not closed"),
        ("alice,book\n", ":1:", "if the line is no header, give --no-header"),
        ("user,item,4294967296\n1,2,3\n", ":1:", "no column is known to hold the score"),
        ("time,book,5\n1,2,3\n", ":1:", "if the line is no header, give --no-header"),
        ("user,7,4\n1,2,3\n1,3,4\n", ":1:", "'user' stands where the next lines have whole numbers: give --header"),
        ('1,2,3\n1, "2", 3\n', ":2:", "a quote after a blank does not enclose a field: remove the blank"),
        ("1,2,3\n1,3,4\r5,6,7\n", ":2:", "expected 3 fields"),
        ("user,item,score\n", "", "no rows"),
        ("", "", "empty"),
        ("1,2,3\n", "", "--holdout 0"),
    ],
)
def test_data_that_cannot_be_used(strads: Strads, tmp_path: Path, text: str, place: str, problem: str) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(text)
    message = refused(strads, tmp_path, "--data", file)
    assert problem in message
    assert f"{file}{place}" in message or not place


def test_missing_file(strads_process: Strads, tmp_path: Path) -> None:
    assert "nowhere.csv: no such file" in refused(strads_process, tmp_path, "--data", "nowhere.csv")


def test_spreadsheet(strads: Strads, tmp_path: Path) -> None:
    file = tmp_path / "ratings.xlsx"
    file.write_bytes(b"PK\x03\x04\x00\x00")
    assert "'.xlsx' cannot be read" in refused(strads, tmp_path, "--data", file)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--rank", 0), "--rank"),
        (("--learning-rate", "nan"), "--learning-rate"),
        (("--step", "newton"), "--step"),
        (("--holdout", 1), "--holdout"),
        (("--holdout", 0, "--early-stopping"), "--early-stopping needs held-out ratings"),
        (("--columns", "a,a,b"), "give different names"),
        (("--columns", "who=a,b=c"), "give different names"),
        (("--columns", "1,2"), "name all columns"),
        (("--columns", "a,b,c"), "no header"),
        (("--frobnicate",), "--frobnicate"),
    ],
)
def test_wrong_options(strads: Strads, tmp_path: Path, options: tuple[object, ...], problem: str) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(GOOD)
    assert problem in refused(strads, tmp_path, "--data", file, *options)


def test_columns_that_are_not_there(strads: Strads, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("who,what,stars\n" + GOOD)
    message = refused(strads, tmp_path, "--data", file, "--columns", "who,what,rating")
    assert f"{file}:1: there is no column 'rating'" in message
    assert "'stars'" in message


def test_out_that_is_a_file(strads: Strads, tmp_path: Path) -> None:
    file, out = tmp_path / "ratings.csv", tmp_path / "out"
    file.write_text(GOOD)
    out.write_text("kept")
    done = strads("train", "mf", "--data", file, "--out", out)
    assert done.returncode == 2
    assert "is a file: give a directory" in done.stderr
    assert out.read_text() == "kept"


def test_data_in_a_directory_that_is_replaced(strads: Strads, tmp_path: Path) -> None:
    file = tmp_path / "out" / "topics.txt"
    file.parent.mkdir()
    file.write_text(GOOD)
    done = strads("train", "mf", "--data", file, "--out", file.parent, "--overwrite")
    assert done.returncode == 2
    assert f"{file}: is a file that this command reads, and --out {file.parent} would replace it" in done.stderr
    assert file.read_text() == GOOD


def test_debug_shows_the_traceback(strads_process: Strads, tmp_path: Path) -> None:
    done = strads_process("train", "mf", "--data", tmp_path / "nowhere.csv", "--out", tmp_path / "out", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
