"""Files that are read by parts give the rows, and the errors, of files that are read at once."""

import gzip
import itertools
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strads
from strads.dds import _csv, files, read_csv, read_parquet, read_text
from strads.dds._parts import find_files, share_out
from strads.dds.files import Part, line_blocks, part_blocks
from strads.errors import ArgumentError, InputError

RATING = {"user": "i4", "item": "i4", "score": "f4"}
REPEATED = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


class TestParts:
    @settings(max_examples=300)
    @given(data=st.data(), content=st.binary(max_size=60).map(lambda b: bytes(b"ab\n\r"[x % 4] for x in b)))
    def test_any_cut_gives_each_line_once(self, tmp_path_factory, data, content):
        path = tmp_path_factory.mktemp("parts") / "lines"
        path.write_bytes(content)
        block = data.draw(st.integers(1, 9))
        cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=4))), len(content)]
        joined = b""
        for start, stop in itertools.pairwise(cuts):
            if start < stop:
                last = None if stop == len(content) and data.draw(st.booleans()) else stop
                blocks = list(part_blocks(Part(str(path), start, last), block))
                assert all(content[at : at + len(text)] == text for at, text in blocks)
                assert all(text.endswith(b"\n") for _, text in blocks[:-1])
                assert all(at == 0 or content[at - 1 : at] == b"\n" for at, _ in blocks)
                joined += b"".join(text for _, text in blocks)
        assert joined == content

    def test_lines_that_end_in_cr_alone_are_refused(self, tmp_path):
        path = tmp_path / "lines"
        path.write_bytes(b"a,b\r1,2\r")
        with pytest.raises(InputError, match="lines: the lines end in CR alone"):
            list(line_blocks(str(path), 4))
        for content in (b"a\r", b"a\rb\nc", b"a\nb\rc\rd"):  # one line, or others
            path.write_bytes(content)
            assert b"".join(line_blocks(str(path), 4)) == content

    @given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6), nodes=st.integers(1, 5))
    def test_the_bytes_are_shared_out_in_order(self, tmp_path_factory, sizes, nodes):
        folder = tmp_path_factory.mktemp("files")
        names = []
        for number, size in enumerate(sizes):
            (folder / f"{number}").write_bytes(b"x" * size)
            names.append(str(folder / f"{number}"))
        shares = share_out(names, nodes)
        parts = [part for share in shares for part in share]
        stops = dict(zip(names, sizes, strict=True))
        covered = [(part.name, part.start, stops[part.name] if part.stop is None else part.stop) for part in parts]
        assert sum(stop - start for _, start, stop in covered) == sum(sizes)
        assert covered == sorted(covered, key=lambda part: (names.index(part[0]), part[1]))
        loads = [sum(stops[p.name] - p.start if p.stop is None else p.stop - p.start for p in s) for s in shares]
        assert max(loads) - min(loads) <= 1

    def test_a_byte_order_mark_is_no_content(self, tmp_path):
        path = tmp_path / "bom"
        path.write_bytes(b"\xef\xbb\xbfa\nb\n")
        assert list(part_blocks(Part(str(path)), 100)) == [(3, b"a\nb\n")]
        assert list(part_blocks(Part(str(path), 0, 5), 3)) == [(3, b"a\n")]
        assert list(part_blocks(Part(str(path), 5), 3)) == [(5, b"b\n")]


def folder_of(tmp_path: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


class TestFindingFiles:
    def test_folders_patterns_and_lists(self, tmp_path):
        folder = folder_of(tmp_path, b="1\n", a="2\n", _SUCCESS="x", empty="", c="3\n")
        names = [str(folder / name) for name in "abc"]
        assert find_files(folder) == names
        assert find_files(str(folder / "[ab]")) == names[:2]
        assert find_files([folder / "c", folder / "a"]) == [names[2], names[0]]
        assert find_files(tmp_path.parent / tmp_path.name / "**" / "?") == names
        (folder / "x[1]").write_text("4\n")
        assert find_files(folder / "x[1]") == [str(folder / "x[1]")]

    def test_what_is_not_there_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"x\*: no file has this name"):
            find_files(tmp_path / "x*")
        with pytest.raises(InputError, match="is a folder without files"):
            find_files(tmp_path)
        with pytest.raises(ArgumentError, match="empty"):
            find_files([])
        with pytest.raises(ArgumentError, match="a path is"):
            find_files([3])

    def test_all_readers_take_them(self, tmp_path):
        folder = folder_of(tmp_path, a="user,item,score\n1,2,3\n", b=gzip.compress(b"4\t5\t6\n7\t8\t9\n"))
        assert read_csv(folder, RATING).to_list() == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
        assert read_text([folder / "b", folder / "b"], lambda line: int(line[0])).to_list() == [4, 7, 4, 7]
        with pytest.raises(InputError, match=r"a:1: .*a tuple of 2, but a number on line 1 of .*b"):
            read_text([folder / "b", folder / "a"], lambda line: 1 if "\t" in line else (1, 2))
        for name, users in (("c", [1, 2]), ("d", [3])):
            pq.write_table(pa.table({"user": users}), folder / f"{name}.parquet")
        assert read_parquet(folder / "*.parquet").to_list() == [(1,), (2,), (3,)]


def expected(read, *arguments, **options):
    """The error or the rows that one node finds."""
    runtime = strads.cluster.runtime._current
    strads.cluster.runtime._current = None
    try:
        with strads.init("threads", nodes=1, threads=1):
            return None, read(*arguments, **options)
    except InputError as error:
        return error, None
    finally:
        strads.cluster.runtime._current = runtime


def check_same(runtime, nodes, read, *arguments, **options):
    """Read on all nodes, and compare with one node: the rows, or the error."""
    error, table = expected(read, *arguments, **options)
    if error is not None:
        with pytest.raises(type(error)) as caught:
            read(*arguments, **options)
        assert str(caught.value) == str(error)
        return error
    found = read(*arguments, **options)
    assert found.dtype == table.dtype
    if nodes > 1:
        assert found.is_distributed
        assert not found._content.is_home
        assert found.bounds.tolist() == table._content.layout.equal_bounds(nodes).tolist()
    assert found.to_list() == table.to_list()
    return found


@pytest.mark.nodes
@REPEATED
@given(data=st.data())
def test_any_csv_file(runtime, nodes, tmp_path, data):
    rows = data.draw(st.lists(st.tuples(st.integers(0, 99), st.integers(-9, 9999)), min_size=1, max_size=25))
    lines = ["user,score"] if data.draw(st.booleans()) else []
    for user, score in rows:
        lines += data.draw(st.sampled_from([[], [""], ["# no data"]]))
        lines.append(f"{user},{score}")
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place] = data.draw(st.sampled_from(["3,4,5", "x,3", "9", "", '1,"2']))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    path = folder_of(tmp_path, table=end.join(lines) + data.draw(st.sampled_from(["", end]))) / "table"
    schema = {"user": "i4", "score": "f4"}
    check_same(runtime, nodes, read_csv, str(path), schema, comment="#")


@pytest.mark.nodes
@REPEATED
@given(data=st.data())
def test_any_text_file(runtime, nodes, tmp_path, data):
    lines = data.draw(
        st.lists(st.sampled_from(["1", "2", "-4", "1.5", "skip", "(1,2)", "[1]", "{'a':1}", "nan", "x"]), max_size=20)
    )
    usual = data.draw(st.sampled_from(["1", "(1,2)", "[1,2]", "[]", "{'a':2.5}", "2.5", "True"]))
    lines = [usual if data.draw(st.booleans()) else line for line in lines]
    names = []
    for number, file in enumerate((lines, [usual] * data.draw(st.integers(0, 3)))):
        path = tmp_path / f"{number}"
        path.write_text("\n".join(file) + "\n")
        names.append(str(path))

    def parse(line):
        return None if line in ("skip", "") else float("nan") if line == "nan" else eval(line)

    check_same(runtime, nodes, read_text, names, parse)


@pytest.mark.nodes
class TestOnNodes:
    def test_real_ratings(self, runtime, nodes, movielens, tmp_path):
        plain = tmp_path / "u.data"
        plain.write_bytes(gzip.decompress(movielens.read_bytes()))
        ratings = check_same(runtime, nodes, read_csv, plain, {**RATING, "time": "i8"})
        assert ratings.shape == (100_000,)
        assert ratings["score"].mean() == np.float32(3.52986)
        packed = check_same(runtime, nodes, read_csv, movielens, {**RATING, "time": "i8"})
        assert (packed.to_numpy() == ratings.to_numpy()).all()
        halves = plain.read_bytes().splitlines(keepends=True)
        (tmp_path / "parts").mkdir()
        for number in range(4):
            text = b"".join(halves[number::4])
            (tmp_path / "parts" / f"{number}").write_bytes(gzip.compress(text) if number % 2 else text)
        check_same(runtime, nodes, read_csv, tmp_path / "parts", RATING)
        check_same(runtime, nodes, read_text, plain, lambda line: [int(x) for x in line.split()][: int(line[0]) % 5])

    def test_wrong_lines_are_named_with_their_numbers(self, runtime, nodes, tmp_path):
        lines = [f"{n},{n},1" for n in range(3000)]
        for wrong in (5, 1500, 2999):
            bad = [*lines]
            bad[wrong] = "7,x,1"
            path = folder_of(tmp_path, ratings="\n".join(bad)) / "ratings"
            error = check_same(runtime, nodes, read_csv, str(path), RATING)
            assert f"ratings:{wrong + 1}: column 'item'" in str(error)
            error = check_same(runtime, nodes, read_text, str(path), lambda line: int(line.split(",")[1]))
            assert f"ratings:{wrong + 1}: the parser failed" in str(error)
            error = check_same(runtime, nodes, read_text, str(path), lambda line: 1 if "x" in line else (1, 2))
            assert f"ratings:{wrong + 1}: the parser returned a number, but a tuple of 2 on line 1" in str(error)

    def test_parquet(self, runtime, nodes, tmp_path):
        rng = np.random.default_rng(0)
        for number, rows in enumerate((1000, 1, 700)):
            columns = {"user": rng.integers(0, 99, rows), "name": ["x"] * rows, "score": rng.random(rows)}
            pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=130)
        check_same(runtime, nodes, read_parquet, tmp_path)
        check_same(runtime, nodes, read_parquet, str(tmp_path / "2*"), {"score": "f4"})
        error = check_same(runtime, nodes, read_parquet, str(tmp_path), {"name": "f4"})
        assert "column 'name' is of type string" in str(error)
        values = pa.array([0.0] * 900 + [None] + [1.0] * 99)
        pq.write_table(pa.table({"x": values}), tmp_path / "null.parquet", row_group_size=100)
        error = check_same(runtime, nodes, read_parquet, str(tmp_path / "null.parquet"))
        assert "in row 900" in str(error)
        pq.write_table(pa.table({"x": pa.array([], "f4")}), tmp_path / "none.parquet")
        check_same(runtime, nodes, read_parquet, str(tmp_path / "none.parquet"))

    def test_files_that_cannot_be_used(self, runtime, nodes, tmp_path):
        folder = folder_of(tmp_path, blank="\n\n\n\n", header="user,item,score\n", zip=b"PK\x03\x04" * 9, empty="")
        for name, problem in [("blank", "no rows"), ("header", "no rows"), ("zip", "zip archive"), ("empty", "empty")]:
            assert problem in str(check_same(runtime, nodes, read_csv, str(folder / name), RATING))
            assert check_same(runtime, nodes, read_text, str(folder / name), lambda line: None)
        for read, argument in ((read_csv, RATING), (read_text, int), (read_parquet, None)):
            with pytest.raises(FileNotFoundError, match="nowhere: no such file"):
                read(tmp_path / "nowhere", argument)

    def test_a_header_in_the_share_of_a_later_node(self, runtime, nodes, tmp_path):
        text = "# c\n" * 40 + "item,user,score\n" + "1,2,3\n4,5,6\n"
        path = folder_of(tmp_path, late=text) / "late"
        table = check_same(runtime, nodes, read_csv, str(path), RATING, comment="#")
        assert table["user"].tolist() == [2, 5]


class TestWrongLinesOnSeveralNodes:
    """The first of them is named, however late messages are: a node may fail while others do not know enough to."""

    LINES = ("1", "2", "x", "3", "y", "4", "z", "5", "6")  # wrong ones in the share of each of three nodes

    @pytest.mark.few(3)
    @pytest.mark.parametrize("late", list(itertools.permutations(range(3), 2)))
    def test_late_messages(self, tmp_path, monkeypatch, late):
        sender, receiver = late
        path = folder_of(tmp_path, lines="\n".join(self.LINES)) / "lines"
        table = tmp_path / "table.parquet"
        pq.write_table(pa.table({"x": [1, 999, 2, 999, 3, 999]}), table, row_group_size=2)
        with strads.init("threads", nodes=3, threads=1) as runtime:
            comm = runtime.cluster._nodes[sender].comm
            send = comm.send

            def send_late(value, to, tag=0):
                if to == receiver:
                    time.sleep(0.1)
                send(value, to, tag)

            monkeypatch.setattr(comm, "send", send_late)
            with pytest.raises(InputError, match="lines:3: the parser failed"):
                read_text(path, int)
            with pytest.raises(InputError, match=r"lines:3: .* found 'x'"):
                read_csv(path, {"user": "i4"}, header=False)
            with pytest.raises(InputError, match="in row 1 "):
                read_parquet(table, {"x": "i1"})


def test_a_file_may_be_read_in_small_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_BLOCK_BYTES", 7)
    monkeypatch.setattr(files, "_LONGEST_LINE", 1 << 20)
    path = folder_of(tmp_path, table="user,item,score\n" + "".join(f"{n},1,2\n" for n in range(50))) / "table"
    with strads.init("threads", nodes=3, threads=1):
        assert read_csv(path, RATING)["user"].tolist() == list(range(50))


@pytest.mark.nodes
def test_empty_sequences_say_nothing_of_the_dtype(runtime, nodes, tmp_path):
    path = tmp_path / "table"
    path.write_text("[]\n" * 40 + "[1]\n")
    check_same(runtime, nodes, read_text, str(path), eval)
    path.write_text("[]\n" * 40)
    check_same(runtime, nodes, read_text, str(path), eval)
