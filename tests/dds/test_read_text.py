import gzip
from typing import NamedTuple

import numpy as np
import pytest

from strads.dds import _results, _text, read_text
from strads.errors import ArgumentError, InputError


class Rating(NamedTuple):
    user: int
    score: float


@pytest.fixture(params=[65_536, 2])
def save(tmp_path, monkeypatch, request):
    monkeypatch.setattr(_results, "_ROWS_AT_A_TIME", request.param)
    monkeypatch.setattr(_text, "_BLOCK_BYTES", 1 << 20 if request.param > 2 else 4)

    def write(content):
        path = tmp_path / "lines.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_the_parser_sees_each_line_without_its_end(save):
    seen = []
    read_text(save("a b\r\n\nä\u2028x\nlast"), lambda line: seen.append(line) or 1)
    assert seen == ["a b", "", "ä\u2028x", "last"]
    v = read_text(save(gzip.compress(b"1\n2\n")), int)
    assert v.to_list() == [1, 2]


def test_numbers(save):
    assert read_text(save("1\n2\n3"), int).dtype == np.int64
    assert read_text(save("1\n2\n3"), np.float32).dtype == np.float32
    mixed = read_text(save("1\n2\n\n3.5"), lambda line: (float(line) if "." in line else int(line)) if line else None)
    assert (mixed.dtype, mixed.to_list()) == (np.float64, [1, 2, 3.5])


def test_tuples_are_rows(save):
    v = read_text(save("1 2\n3 4\n5 6"), lambda line: tuple(map(int, line.split())))
    assert v.to_list() == [[1, 2], [3, 4], [5, 6]]
    assert v.storage.flags.c_contiguous


@pytest.mark.parametrize("kind", [list, np.array])
def test_lists_and_arrays_are_ragged_rows(save, kind):
    v = read_text(save("1 2\n\n3"), lambda line: kind([int(word) for word in line.split()]))
    assert v.is_ragged
    assert v.to_list() == [[1, 2], [], [3]]
    assert read_text(save("1 2\n3 4"), lambda line: [int(word) for word in line.split()]).is_ragged


def test_dicts_and_named_tuples_are_records(save):
    path = save("1 0.5\n2 1.5\n3 2.5")
    for parser in (
        lambda line: Rating(int(line[0]), float(line[2:])),
        lambda line: {"user": int(line[0]), "score": float(line[2:])},
    ):
        v = read_text(path, parser)
        assert v.dtype == np.dtype([("user", "i8"), ("score", "f8")], align=True)
        assert v.to_list() == [(1, 0.5), (2, 1.5), (3, 2.5)]


def test_an_exception_of_the_parser_is_chained(save):
    with pytest.raises(InputError, match=r"lines\.txt:3: the parser failed with ValueError: .*'x'") as caught:
        read_text(save("1\n2\nx\n"), int)
    assert isinstance(caught.value.__cause__, ValueError)


def test_undecodable_lines_are_named(save):
    with pytest.raises(InputError, match=r"lines\.txt:2: byte 2 .*0xe4"):
        read_text(save(b"1\n2\xe4\n"), lambda line: 1)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([1, (1, 2)], "tuple of 2, but a number on line 1"),
        ([(1, 2), (1, 2, 3)], "tuple of 3, but a tuple of 2 on line 1; return lists"),
        ([[1], 1], "a number, but a sequence"),
        ([{"a": 1}, {"b": 1}], "record of b, but a record of a"),
        ([1, "x"], "'x', a str"),
        ([(1, 2), (1, "x")], "'x' where a number"),
        ([[1], [1, [2]]], r"\[2\] where a number"),
        ([{"a": 1}, {"a": None}], "None where a number"),
        ([1, float("nan")], "nan, which is not finite"),
        ([[1.0], [2.0, float("inf")]], "inf, which is not finite"),
        ([1, 2**70], "int64"),
        ([(1, 2), (2**64, 1)], "int64"),
        ([1, 2**63], "int64: return np.uint64 or float everywhere"),
    ],
)
def test_results_that_do_not_fit_are_named(save, results, message):
    answers = iter(results)
    with pytest.raises(InputError, match=rf"lines\.txt:2: .*{message}"):
        read_text(save("a\nb\n"), lambda line: next(answers))


def test_files_and_parsers_that_cannot_be_used(save, tmp_path):
    with pytest.raises(InputError, match="no rows"):
        read_text(save("a\n"), lambda line: None)
    with pytest.raises(InputError, match="empty"):
        read_text(save(""), int)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "nowhere", int)
    with pytest.raises(ArgumentError, match="parser"):
        read_text(save("1\n"), "int")
