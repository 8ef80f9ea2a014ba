"""Files of triples and labels."""

import gzip

import numpy as np
import pytest

import strads
from strads.models import read_labels, read_triples


def test_labels_separated_by_tabs(tmp_path):
    file = tmp_path / "train.txt.gz"
    file.write_bytes(gzip.compress("Zürich\tcapital of\tZH\r\n\nBern\tcapital of\tCH\n".encode()))
    found = read_triples(file)
    assert found.tolist() == [["Zürich", "capital of", "ZH"], ["Bern", "capital of", "CH"]]


@pytest.mark.parametrize("header", ["Relation\tHead\ttail", "r\th\tt", "predicate\tsubject\tobject"])
def test_a_header_tells_the_order_of_columns(tmp_path, header):
    file = tmp_path / "train.txt"
    file.write_text(f"{header}\ncapital of\tBern\tCH\n")
    assert read_triples(file).tolist() == [["Bern", "capital of", "CH"]]


def test_openke_has_the_relation_last(tmp_path):
    file = tmp_path / "train2id.txt"
    file.write_text("2\n0 1 5\n3\t4\t6\n")
    found = read_triples(file)
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 5, 1], [3, 6, 4]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "there are no triples"),
        (b"a\tb\n", ":1: expected head, relation and tail separated by tabs, found 2 fields"),
        (b"a\tr\tb\na b c\n", ":2: expected .* found 1 field:"),
        (b"a\tr\tb\na\t\tb\n", ":2: expected"),
        (b"a\tr\tb\n\nc\tr\td\te\n", ":3: expected .* found 4 fields"),
        (b"a\tr\tcaf\xe9\n", ":1: not UTF-8"),
        (b"Head\trelation\tTail\n", "there are no triples"),
        (b"2\n0 1 0\n", ":1: 2 triples are announced, but 1 follow"),
        (b"1\n0 1 0\n1 2 0\n", ":3: there are more triples than the 1"),
        (b"1\n0 1\n", ":2: expected the ids"),
        (b"1\n0 -1 0\n", ":2: expected the ids"),
        (b"1\n0 nan 0\n", ":2: expected the ids"),
        (b"0\n", ":1: expected how many"),
        (b"\x1f\x8bnot gzip", "cannot be read"),
    ],
    ids=range(15),
)
def test_what_is_no_triple_is_refused_by_line(tmp_path, content, message):
    file = tmp_path / "train.txt"
    file.write_bytes(content)
    with pytest.raises(strads.InputError, match=message) as error:
        read_triples(file)
    assert str(file) in str(error.value)


def test_labels_of_ids(tmp_path):
    file = tmp_path / "entity2id.txt"
    file.write_text("3\n/m/b\t1\na thing\t0\nc\t2\n")
    assert read_labels(file) == ["a thing", "/m/b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\t0\n", ":1: expected how many"),
        ("1\na 0\n", ":2: expected a label"),
        ("1\na\tx\n", ":2: expected a label"),
        ("2\na\t0\nb\t0\n", ":3: the id 0 of 'b' is there already"),
        ("2\na\t0\na\t1\n", ":3: the label 'a' is there already"),
        ("1\na\t1\n", ":2: the id 1 of 'a' is outside 0 … 0"),
        ("2\na\t0\n", "no label of the id 1"),
    ],
)
def test_wrong_labels_are_refused_by_line(tmp_path, content, message):
    file = tmp_path / "entity2id.txt"
    file.write_text(content)
    with pytest.raises(strads.InputError, match=message):
        read_labels(file)
