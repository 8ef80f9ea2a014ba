"""What is damaged: for each command and format a valid file, how to read it, and the second reader to compare with."""

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io
import scipy.sparse

from . import careful, damage

Damage = Callable[[bytes, Random], bytes]
Compare = Callable[[Path, bytes], None]


@dataclass(frozen=True)
class Subject:
    """A command line with its files.

    Attributes
    ----------
    name
    command
        Arguments after `strads train`; the files are in the current folder.
    files
        The contents by name; the first is damaged.
    damages
        How, chosen at random.
    compare
        Reads the file with strads and the second reader, and raises AssertionError if they differ, or strads' error.
    """

    name: str
    command: tuple[str, ...]
    files: dict[str, bytes]
    damages: tuple[Damage, ...] = (damage.text,)
    compare: Compare | None = field(default=None, compare=False)

    @property
    def damaged(self) -> str:
        """Name of the file that is damaged."""
        return next(iter(self.files))


def zipped(inner: Damage) -> Damage:
    """Damage the text in a gzip file."""
    return lambda content, rng: gzip.compress(inner(gzip.decompress(content), rng), 1)


def same_ratings(path: Path, content: bytes) -> None:
    from strads.cli.interactions_file import FileFormat, read_interactions

    found = read_interactions(path, FileFormat(), scored=True)
    given = found.interactions
    names = () if all(name.isdigit() for name in found.columns.values()) else tuple(found.columns.values())
    expected = careful.delimited(content, names or ("user", "item", "score"))
    assert len(given.users) == len(given.items) == len(given.scores) == len(expected)
    for row, (user, item, score) in enumerate(expected):
        for ids, text in ((given.users, user), (given.items, item)):
            known = ids.id_of(row)
            assert known == text if isinstance(known, str) else known == careful.whole(text, -(2**63), 2**63 - 1)
        assert given.scores[row] == np.float32(careful.real(score))


def _read(path: Path, **options: Any) -> Any:
    from strads.cli.design_file import DesignOptions, read_samples

    return read_samples(path, DesignOptions(**options))


def same_samples(path: Path, content: bytes) -> None:
    samples = _read(path, target="t")
    wanted = tuple(str(name) for name in samples.names)
    expected = careful.delimited(content, (*wanted, "t"))
    assert len(samples.y) == len(expected)
    for row, fields in enumerate(expected):
        assert samples.X[row].tolist() == [careful.real(text) for text in fields[:-1]]
        assert str(samples.y[row]) == fields[-1]


def same_libsvm(path: Path, content: bytes) -> None:
    samples = _read(path)
    labels, entries = careful.libsvm(content)
    assert samples.y.tolist() == labels.tolist()
    found = samples.X.tocoo()
    triples = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    assert {(i, j): value for i, j, value in triples if value} == {
        key: value for key, value in entries.items() if value
    }


def same_matrix(path: Path, content: bytes) -> None:
    samples = _read(path, labels=Path("y.txt"))
    found = samples.X.toarray() if scipy.sparse.issparse(samples.X) else samples.X
    expected = careful.matrix_market(content)
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-15, atol=0)


def same_arrays(path: Path, content: bytes) -> None:
    samples = _read(path)
    X, y = careful.npz(content)
    assert np.array_equal(np.asarray(samples.X, np.float64), X)
    assert np.array_equal(samples.y, y)


def same_sparse(path: Path, content: bytes) -> None:
    assert np.array_equal(_read(path, labels=Path("y.txt")).X.toarray(), careful.sparse_npz(content))


def same_bag(path: Path, content: bytes) -> None:
    from strads.cli.documents_file import WordOptions, read_documents

    corpus = read_documents(path, Path("vocab.txt"), WordOptions()).corpus
    expected = careful.bag_of_words(content)
    assert (len(corpus), corpus.n_words) == expected.shape
    assert corpus.n_tokens == expected.sum()
    assert np.array_equal(
        scipy.sparse.csr_array((corpus.counts, corpus.words, corpus.offsets), expected.shape).toarray(), expected
    )


def same_triples(path: Path, content: bytes) -> None:
    from strads.models.knowledge_graphs.files import read_triples

    assert [tuple(row) for row in read_triples(path).tolist()] == careful.triples(content)


def same_text(path: Path, content: bytes) -> None:
    from strads.models.corpora.documents import read_lines

    assert list(read_lines(path)) == careful.lines_of(content)


def subjects() -> list[Subject]:
    """All of them, the same in every process."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 30)
    labels = "".join(f"{label}\n" for label in y).encode()
    X = np.round(rng.normal(size=(30, 4)), 3)
    sparse = scipy.sparse.random(30, 6, 0.4, random_state=1, format="csr")
    ratings = [
        (int(u), int(i), float(s))
        for u, i, s in zip(rng.integers(1, 9, 60), rng.integers(1, 7, 60), rng.integers(1, 6, 60), strict=True)
    ]
    rated = "".join(f"{u},{i},{s}\n" for u, i, s in ratings).encode()
    csv = b"a,b,c,d,t\n" + b"".join(
        b",".join(b"%r" % v for v in row) + b",%d\n" % t for row, t in zip(X.tolist(), y, strict=True)
    )
    svm = "".join(
        f"{t} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v > 0) + "\n"
        for row, t in zip(X.tolist(), y, strict=True)
    ).encode()
    parquet = io.BytesIO()
    columns = dict(zip(("user", "item", "score"), map(list, zip(*ratings, strict=True)), strict=True))
    pyarrow.parquet.write_table(pa.table(columns), parquet)
    mtx, array = io.BytesIO(), io.BytesIO()
    scipy.io.mmwrite(mtx, sparse)
    scipy.io.mmwrite(array, X)
    dense, packed = io.BytesIO(), io.BytesIO()
    np.savez_compressed(dense, X=X, y=y.astype(float))
    scipy.sparse.save_npz(packed, sparse)
    words = [f"word{k}" for k in range(12)]
    documents = [rng.integers(0, 12, 8) for _ in range(20)]
    lines = "".join(" ".join(words[w] for w in document) + "\n" for document in documents).encode()
    counted = [
        (d + 1, int(w) + 1, int((document == w).sum()))
        for d, document in enumerate(documents)
        for w in np.unique(document)
    ]
    bag = f"20\n12\n{len(counted)}\n".encode() + "".join(f"{d} {w} {n}\n" for d, w, n in counted).encode()
    vocab = "".join(f"{word}\n" for word in words).encode()
    edges = sorted(
        {
            (int(h), int(r), int(t))
            for h, r, t in zip(rng.integers(0, 8, 30), rng.integers(0, 2, 30), rng.integers(0, 8, 30), strict=True)
        }
    )
    named = "".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in edges).encode()
    numbered = f"{len(edges)}\n".encode() + "".join(f"{h} {t} {r}\n" for h, r, t in edges).encode()
    entities = b"8\n" + b"".join(b"e%d\t%d\n" % (k, k) for k in range(8))
    mf = ("mf", "--epochs", "1", "--rank", "2", "--data")
    bpr = ("bpr", "--iterations", "1", "--factors", "2", "--data")
    lasso, mlr = ("lasso", "--max-iter", "3", "--data"), ("mlr", "--max-iter", "3", "--data")
    logistic = ("logistic", "--max-iter", "3", "--data")
    lda = ("lda", "--topics", "2", "--iterations", "1", "--data")
    word2vec = ("word2vec", "--epochs", "1", "--vector-size", "4", "--min-count", "1", "--data")
    transe = ("transe", "--epochs", "1", "--dimensions", "4", "--data")
    gz, lz = gzip.compress, (zipped(damage.text), damage.binary)
    tsv = b"user\titem\tscore\n" + rated.replace(b",", b"\t")
    npz = (damage.arrays, damage.member, damage.binary)
    return [
        Subject("ratings csv", (*mf, "r.csv"), {"r.csv": b"user,item,score\n" + rated}, compare=same_ratings),
        Subject("ratings tsv", (*mf, "r.tsv"), {"r.tsv": tsv}),
        Subject("ratings gz", (*mf, "r.csv.gz"), {"r.csv.gz": gz(b"user,item,score\n" + rated)}, lz, same_ratings),
        Subject("ratings without header", (*mf, "r.csv"), {"r.csv": rated}),
        Subject("ratings parquet", (*mf, "r.parquet"), {"r.parquet": parquet.getvalue()}, (damage.binary,)),
        Subject("likes csv", (*bpr, "r.csv"), {"r.csv": b"user,item,score\n" + rated}),
        Subject("samples csv", (*lasso, "d.csv", "--target", "t"), {"d.csv": csv}, compare=same_samples),
        Subject("samples csv.gz", (*mlr, "d.csv.gz", "--target", "t"), {"d.csv.gz": gz(csv)}, lz, same_samples),
        Subject("samples libsvm", (*logistic, "d.svm"), {"d.svm": svm}, compare=same_libsvm),
        Subject("samples libsvm.gz", (*lasso, "d.svm"), {"d.svm": gz(svm)}, lz, same_libsvm),
        Subject(
            "matrix",
            (*lasso, "d.mtx", "--labels", "y.txt"),
            {"d.mtx": mtx.getvalue(), "y.txt": labels},
            compare=same_matrix,
        ),
        Subject(
            "array",
            (*mlr, "d.mtx", "--labels", "y.txt"),
            {"d.mtx": array.getvalue(), "y.txt": labels},
            compare=same_matrix,
        ),
        Subject(
            "matrix.gz",
            (*lasso, "d.mtx", "--labels", "y.txt"),
            {"d.mtx": gz(mtx.getvalue()), "y.txt": labels},
            lz,
            same_matrix,
        ),
        Subject("labels", (*lasso, "d.mtx", "--labels", "y.txt"), {"y.txt": labels, "d.mtx": mtx.getvalue()}),
        Subject("npz", (*lasso, "d.npz"), {"d.npz": dense.getvalue()}, npz, same_arrays),
        Subject(
            "sparse npz",
            (*logistic, "d.npz", "--labels", "y.txt"),
            {"d.npz": packed.getvalue(), "y.txt": labels},
            npz,
            same_sparse,
        ),
        Subject("text", (*lda, "t.txt", "--min-df", "1"), {"t.txt": lines}, compare=same_text),
        Subject("text gz", (*word2vec, "t.txt"), {"t.txt": gz(lines)}, lz, same_text),
        Subject(
            "bag of words",
            (*lda, "b.txt", "--vocab", "vocab.txt"),
            {"b.txt": bag, "vocab.txt": vocab},
            compare=same_bag,
        ),
        Subject(
            "bag of words gz",
            (*lda, "b.txt", "--vocab", "vocab.txt"),
            {"b.txt": gz(bag), "vocab.txt": vocab},
            lz,
            same_bag,
        ),
        Subject("vocabulary", (*lda, "b.txt", "--vocab", "vocab.txt"), {"vocab.txt": vocab, "b.txt": bag}),
        Subject("triples", (*transe, "g.txt"), {"g.txt": named}, compare=same_triples),
        Subject(
            "numbered triples",
            (*transe, "g.txt", "--entities", "e.txt"),
            {"g.txt": numbered, "e.txt": entities},
            compare=same_triples,
        ),
        Subject("entities", (*transe, "g.txt", "--entities", "e.txt"), {"e.txt": entities, "g.txt": numbered}),
    ]
