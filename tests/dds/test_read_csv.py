import bz2
import gzip
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strads.dds import _csv, read_csv
from strads.errors import ArgumentError, InputError

SCHEMA = {"user": "i4", "item": "i4", "score": "f4"}
ROWS = [(1, 10, 2.5), (2, 20, 3.0), (3, 30, -4.0)]
ML_100K = Path(__file__).parents[2] / ".." / "shared" / "data" / "ml-100k" / "u.data.gz"


def write(folder: Path, content: str | bytes, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1,10,2.5\n2,20,3\n3,30,-4\n",
        "user,item,score\n1,10,2.5\n2,20,3\n3,30,-4",
        "\ufeffuser,item,score\r\n1,10,2.5\r\n2,20,3\r\n3,30,-4\r\n\r\n\r\n",
        "score,title,user,item\n2.5,ä,1,10\n3,b,2,20\n-4,c,3,30\n",
        'title,user,item,score\n"a, b",1,10,2.5\n"say ""x""",2,20,3\nc,3,30,-4\n',
        "1\t10\t2.5\tBrian's\n2\t20\t3\t\"open\n3\t30\t-4\tx y\n",
        "1;10;2.5;a,b\n2;20;3;c,d\n3;30;-4;e,f\n",
        "1::10::2.5::978300760\n2::20::3::1\n3::30::-4::2\n",
        "1|10|2.5\n2|20|3\n3|30|-4\n",
        "  1  10 2.5\n2\t20   3 \n3 30 -4",
        "user item score\n1 10 2.5\n\n2 20 3\n   \n3 30 -4\n",
        " 1, 10, 2.5\n 2, 20, 3\n 3, 30, -4\n",
        '"1","10","2.5"\n"2","20","3"\n"3","30","-4"\n',
        '1\t"10"\t2.5\n2\t"20"\t3\n3\t"30"\t-4\n',
        "+1,10,2.5\n2,+20,3\n3,30,-4\n",
    ],
)
def test_the_same_rows_in_many_dialects(tmp_path, text):
    v = read_csv(write(tmp_path, text), SCHEMA)
    assert v.to_list() == ROWS
    assert v.dtype == np.dtype(list(SCHEMA.items()), align=True)
    assert v.storage.flags.writeable


def test_options_override_guesses(tmp_path):
    text = "% users\nx,y,z\n% more\n1,10,2.5\n2,20,3\n3,30,-4\n"
    named = read_csv(write(tmp_path, text.replace("x,y,z", "user,item,score")), SCHEMA, comment="%")
    assert named.to_list() == ROWS
    numbered = read_csv(write(tmp_path, "2,1\n5,6\n"), {"1": "i4"}, header=True)
    assert numbered.to_list() == [(6,)]
    assert read_csv(write(tmp_path, "1 2,3 4\n"), {"a": "i4"}, delimiter=" ", header=False).to_list() == [(1,)]


@pytest.mark.parametrize("name", ["ratings.csv.gz", "ratings.csv", "ratings"])
def test_compression_is_known_by_content(tmp_path, name):
    text = b"1,10,2.5\n2,20,3\n3,30,-4\n"
    for packed in (
        gzip.compress(text),
        bz2.compress(text),
        gzip.compress(text[:9]) + gzip.compress(text[9:]),
    ):
        assert read_csv(write(tmp_path, packed, name), SCHEMA).to_list() == ROWS
    assert read_csv(write(tmp_path, text, "plain.gz"), SCHEMA).to_list() == ROWS


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        ("0x10,20,3", ["column 'user' (field 1)", "'0x10'", "an integer (int32)"]),
        ("x,20,3", ["column 'user' (field 1)", "'x'", "an integer (int32)"]),
        ("2,20,x", ["column 'score' (field 3)", "'x'", "a finite number (float32)"]),
        ("2,20,nan", ["column 'score'", "'nan'", "not finite"]),
        ("2,20,-inf", ["column 'score'", "'-inf'", "not finite"]),
        ("2,20,1e39", ["column 'score'", "'1e39'", "'f8'"]),
        ("2,20,", ["column 'score'", "empty"]),
        (",20,3", ["column 'user'", "empty"]),
        ("2,3.5,3", ["column 'item' (field 2)", "'3.5'", "'f4'"]),
        ("2,3000000000,3", ["column 'item'", "'3000000000'", "2147483647", "wider"]),
        ("2,1_0,3", ["column 'item'", "'1_0'"]),
        ("2,20", ["expected 3 fields", "found 2", "'2,20'"]),
        ("2,20,3,4", ["expected 3 fields", "found 4", "as on line 1"]),
        ('2,20,"3', ["quote"]),
    ],
)
@pytest.mark.parametrize("block", [1 << 22, 8])
def test_the_first_malformed_line_is_named(tmp_path, monkeypatch, bad, parts, block):
    monkeypatch.setattr(_csv, "_BLOCK_BYTES", block)
    for lines, number in (
        (["user,item,score", "1,10,2.5", "", bad, "y,y,y"], 4),
        (["1,10,2.5", bad, "y,y,y"], 2),
    ):
        path = write(tmp_path, "\n".join(lines))
        with pytest.raises(InputError) as caught:
            read_csv(path, SCHEMA)
        message = str(caught.value)
        assert message.startswith(f"{path}:{number}: ")
        for part in parts:
            assert part in message


def test_a_malformed_line_in_a_compressed_crlf_file(tmp_path):
    path = write(tmp_path, gzip.compress(b"1,10,2.5\r\n2,20,3\r\n3,,4\r\n"), "r.gz")
    with pytest.raises(InputError, match=r"r\.gz:3: column 'item' \(field 2\): the field is empty"):
        read_csv(path, SCHEMA)


def test_a_malformed_first_line_is_no_header(tmp_path):
    with pytest.raises(InputError, match=r"csv:1: column 'user' .* 'a'"):
        read_csv(write(tmp_path, "a,10,2.5\n2,20,3\n"), SCHEMA)
    with pytest.raises(InputError, match=r"csv:1: the schema has 3 columns, but the line has 2"):
        read_csv(write(tmp_path, "1,10\n2,20\n"), SCHEMA)


def test_a_quote_over_two_lines_loses_no_row(tmp_path):
    path = write(tmp_path, 'user,text\n1,"a\n2,b"\n3,c\n')
    with pytest.raises(InputError, match=r"csv:2: a quote is not closed"):
        read_csv(path, {"user": "i4"})


def test_the_header_must_have_the_columns(tmp_path):
    with pytest.raises(InputError, match=r"csv:1: the header has no column 'score'; it has 'user', 'item', 'x'"):
        read_csv(write(tmp_path, "user,item,x\n1,2,3\n"), SCHEMA)
    with pytest.raises(InputError, match=r"2 columns 'user'"):
        read_csv(write(tmp_path, "user,item,score,user\n1,2,3,4\n"), SCHEMA)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "no rows"),
        (b"user,item,score\n", "no rows"),
        (gzip.compress(b"", mtime=0), "no rows"),
        (gzip.compress(b"1,10,2.5\n" * 9999)[:-20], "cannot be read"),
        (b"PK\x03\x04....", "zip archive"),
        (b"PAR1....", "read_parquet"),
        ("1,2,3\n".encode("utf-16"), "UTF-16"),
    ],
)
def test_unusable_files_are_explained(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        read_csv(path, SCHEMA)
    assert str(path) in str(caught.value)


def test_pipes_are_refused_rather_than_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", os.devnull):
        with pytest.raises(InputError, match="is a pipe or device, and files are read more than once"):
            read_csv(path, SCHEMA)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        read_csv(tmp_path / "nowhere", SCHEMA)
    assert isinstance(caught.value, InputError)
    with pytest.raises(InputError, match="folder"):
        read_csv(tmp_path, SCHEMA)


@pytest.mark.parametrize(
    "arguments",
    [
        {"schema": {}},
        {"schema": ["user"]},
        {"schema": {"user": "text"}},
        {"schema": {"user": "U5"}},
        {"schema": {"user": "c16"}},
        {"schema": {1: "i4"}},
        {"schema": SCHEMA, "header": "yes"},
        {"schema": SCHEMA, "delimiter": ""},
        {"schema": SCHEMA, "comment": 3},
    ],
)
def test_options_without_meaning_are_refused(tmp_path, arguments):
    with pytest.raises(ArgumentError):
        read_csv(write(tmp_path, "1,2,3\n"), **arguments)
    with pytest.raises(ArgumentError):
        read_csv(3, SCHEMA)


def test_bools_and_small_integers(tmp_path):
    path = write(tmp_path, "good,level\ntrue,255\nFalse,0\n1,7\n")
    assert read_csv(path, {"good": "?", "level": "u1"}).to_list() == [(True, 255), (False, 0), (True, 7)]
    with pytest.raises(InputError, match=r"csv:2: .* true or false, found 'maybe'"):
        read_csv(write(tmp_path, "good,level\nmaybe,1\n"), {"good": "?"})


@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.integers(0, 2**16 - 1),
        ),
        min_size=1,
        max_size=30,
    ),
    delimiter=st.sampled_from([",", "\t", ";", "::", " "]),
    end=st.sampled_from(["\n", "\r\n"]),
    header=st.booleans(),
    block=st.sampled_from([16, 100, 1 << 20]),
)
def test_what_is_written_is_read(rows, delimiter, end, header, block):
    schema = {"a": "i8", "b": "f8", "c": "f4", "d": "u2"}
    lines = [delimiter.join(schema)] * header + [delimiter.join(map(repr, row)) for row in rows]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv, "_BLOCK_BYTES", block)
        path = write(Path(folder), end.join(lines))
        assert read_csv(path, schema).to_list() == rows


@pytest.mark.skipif(not ML_100K.exists(), reason="the MovieLens 100k ratings are not beside the repository")
def test_movielens():
    v = read_csv(ML_100K, SCHEMA)
    assert v.shape == (100_000,)
    assert v[0].tolist() == (196, 242, 3.0)
    assert (v["user"].max(), v["item"].max(), v["score"].min(), v["score"].max()) == (943, 1682, 1, 5)
