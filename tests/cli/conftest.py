import contextlib
import gzip
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from strads import cli, cluster

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """Variables of a process that runs these sources."""
    return os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "80"}


@pytest.fixture(scope="session")
def strads_process(environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m strads` with arguments in a process of its own, which costs a second more."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "strads", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment, cwd=cwd, check=False
        )

    return run


@pytest.fixture(scope="session")
def strads() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line with arguments in this process."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [*map(str, arguments)]
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "80")
            patch.chdir(Path.cwd() if cwd is None else cwd)
            cluster.shutdown()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.run(command)
            cluster.shutdown()
        return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def ratings() -> list[tuple[int, int, float]]:
    """3,000 ratings with ids from 1, which planted biases explain."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(1, 101, 3000), rng.integers(1, 51, 3000)
    scores = 3 + rng.normal(size=101)[users] + rng.normal(size=51)[items]
    return [(int(u), int(i), round(float(s), 3)) for u, i, s in zip(users, items, scores, strict=True)]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory, ratings: list[tuple[int, int, float]]) -> Path:
    """The ratings as header.csv, plain.tsv.gz and ratings.parquet."""
    folder = tmp_path_factory.mktemp("ratings")
    # The columns stand in another order than user, item, score.
    rows = "".join(f"{score},{item},{user}\n" for user, item, score in ratings)
    (folder / "header.csv").write_text(f"rating,movieId,userId\n{rows}")
    rows = "".join(f"{user}\t{item}\t{score}\t881250949\n" for user, item, score in ratings)
    (folder / "plain.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    columns = list(zip(*ratings, strict=True))
    table = pa.table({"who": columns[0], "what": columns[1], "stars": columns[2], "note": ["x"] * len(ratings)})
    pyarrow.parquet.write_table(table, folder / "ratings.parquet")
    return folder


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 documents of three planted topics, as reviews.txt.gz, and as docword.txt.gz with vocab.txt."""
    rng = np.random.default_rng(0)
    words = np.array([f"{topic}{number}" for topic in ("film", "meal", "road") for number in range(20)])
    folder = tmp_path_factory.mktemp("reviews")
    topics = rng.integers(3, size=400)
    drawn = [rng.integers(20, size=30) + 20 * topic for topic in topics]
    text = "".join(" ".join(["The", *words[numbers]]) + ".\n" for numbers in drawn)
    (folder / "reviews.txt.gz").write_bytes(gzip.compress(text.encode()))
    counts = [np.unique(numbers, return_counts=True) for numbers in drawn]
    entries = [f"{d} {w + 1} {n}\n" for d, pair in enumerate(counts, 1) for w, n in zip(*pair, strict=True)]
    header = f"400\n60\n{len(entries)}\n"
    (folder / "docword.txt.gz").write_bytes(gzip.compress((header + "".join(entries)).encode()))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    return folder
