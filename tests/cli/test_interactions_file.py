"""Files of users, items and scores as other programs write them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from strads.cli.interactions_file import read_interactions
from strads.cli.interactions_options import FileFormat
from strads.errors import InputError

ROWS = [(7, "a b", 2.5), (-3, "é", 4.0), (7, "c,d", 1.0)]


def rows_of(path: Path, **options: str) -> list[tuple[int | str, int | str, float]]:
    found = read_interactions(path, FileFormat(**options), scored=True).interactions
    places = range(len(found.users))
    return [(found.users.id_of(row), found.items.id_of(row), float(found.scores[row])) for row in places]


TIMES = ["2020-03-01", "2020-02-28T23:59:59.5", "2020-02-28 23:59:59"]
ZONED = ["2020-03-01T00:30:00+01:00", "2020-02-29T23:30:00.000001Z", "2020-02-29T23:29:59-00:00"]


@pytest.mark.parametrize("times", [TIMES, ZONED, [3, 2.5, 2]])
@pytest.mark.parametrize("kind", ["header.csv", "lines.tsv", "table.parquet"])
def test_times_are_numbers_or_iso_8601(tmp_path: Path, times: list[str], kind: str) -> None:
    path = tmp_path / kind
    rows = [f"u{row},i,{row},{time}" for row, time in enumerate(times)]
    if kind == "table.parquet":
        columns = {"user": ["a", "b", "c"], "item": ["i"] * 3, "rating": [1, 2, 3], "date": times}
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif kind == "header.csv":
        path.write_text("\n".join(["user,item,rating,date", *rows]) + "\n")
    else:
        path.write_text("\n".join(rows).replace(",", "\t") + "\n")
    found = read_interactions(path, FileFormat(), scored=True, timed=True).interactions
    assert found.times is not None
    assert found.times.argsort().tolist() == ([2, 0, 1] if times is ZONED else [2, 1, 0])


@pytest.mark.parametrize("times", [["2020-03-01", "01/03/2020"], ["2020-03-01T00:00:00Z", "2020-03-01"], ["today"] * 2])
def test_other_times_are_refused(tmp_path: Path, times: list[str]) -> None:
    text, table = tmp_path / "text.csv", tmp_path / "table.parquet"
    text.write_text(f"user,item,rating,date\n1,2,3,{times[0]}\n\n1,3,3,{times[1]}\n")
    columns = {"user": [1, 1], "item": [2, 3], "rating": [3, 3], "date": times}
    pyarrow.parquet.write_table(pa.table(columns), table)
    bad = int(times[0] != times[1])
    for path, place in ((text, f"text.csv:{2 + 2 * bad}"), (table, f"table.parquet: column 'date': row {bad}")):
        with pytest.raises(InputError, match=f"{place}: '{times[1]}' is not a timestamp: give numbers, or"):
            read_interactions(path, FileFormat(), scored=True, timed=True)


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.time64("us"), pa.duration("s"), pa.list_(pa.int32())])
def test_columns_that_hold_no_times_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "table.parquet"
    times = pa.array([[1], [2]] if pa.types.is_list(kind) else [1, 2], kind)
    pyarrow.parquet.write_table(pa.table({"user": [1, 1], "item": [2, 3], "time": times}), path)
    with pytest.raises(InputError, match=r"table\.parquet: column 'time' is .*: give numbers"):
        read_interactions(path, FileFormat(), scored=None, timed=True)


def test_ids_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    path = tmp_path / "tags.csv"
    path.write_text("#a,7,1\n#b,8,2\n")
    assert rows_of(path) == [("#a", 7, 1.0), ("#b", 8, 2.0)]


@pytest.mark.parametrize(
    "text",
    [
        'user,item,score\n7,a b,2.5\n-3,é,4\n7,"c,d",1',
        "\ufeffscore;2020;item;user\r\n2.5;x;a b;7\r\n4;9;é;-3\r\n1;;c,d;7\r\n",
        '\n"item","user","score"\n"a b",7,2.5\n\n  é , -3 ,4e0\n"c,d",7,+1\n\n',
        "7\ta b\t2.5\t1760000000\n-3\té\t4\t1760000000\n7\tc,d\t1\t1760000000\n",
        "7::a b::2.5\n-3::é::4\n7::c,d::1\n",
        'user\titem\tscore\n7\t"a b"\t2.5\n"-3"\té\t4\n7\tc,d\t1\n',
    ],
)
def test_the_same_rows_in_other_forms(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ratings.txt"
    path.write_bytes(text.encode())
    assert rows_of(path) == ROWS


def test_numbers_in_ids_separate_no_fields(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('item,user\n"item, 4",user 3\nitem 5,user 3\n')
    found = read_interactions(path, FileFormat(), scored=False).interactions
    assert [(found.users.id_of(row), found.items.id_of(row)) for row in (0, 1)] == [
        ("user 3", "item, 4"),
        ("user 3", "item 5"),
    ]


def test_quotes_between_tabs_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "ratings.tsv"
    path.write_text('"say ""hi"""\t"a" or "b"\t1\n"\t""\t2\n')
    with pytest.raises(InputError, match=r"ratings.tsv:2: the item is empty"):
        rows_of(path)
    path.write_text('"say ""hi"""\t"a" or "b"\t1\n"\t""""\t2\n')
    assert rows_of(path) == [('say "hi"', '"a" or "b"', 1.0), ('"', '"', 2.0)]
