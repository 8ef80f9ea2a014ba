"""How valid files and arguments become others: most of them malformed, some still valid."""

import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

TOKENS = [
    *(
        "",
        "0",
        "-1",
        "1",
        "2",
        "7",
        "x",
        "nan",
        "inf",
        "-inf",
        "NA",
        "1e400",
        "1e-400",
        "0x10",
        "1_0",
        "1.5",
        "+3",
        "1,5",
    ),
    *("9" * 40, "2147483647", "2147483648", "4294967296", "9223372036854775808", "900000000", "-5", "1e9", "١", "é"),
    *('"', "'", "#", "%", ":", "\t", " ", "\r", "\0", "\ufeff", "true", "1:2", "::", "|", ";", "a b", "%%MatrixMarket"),
]


def text(content: bytes, rng: Random) -> bytes:
    """Damage a text once or a few times."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(_OF_TEXT)(content, rng)
    return content


def binary(content: bytes, rng: Random) -> bytes:
    """Damage bytes once or a few times."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        content = rng.choice((_flip, _cut, _insert, _repeat))(content, rng)
    return content


def _place(content: bytes, rng: Random) -> int:
    """Where to damage: often near the beginning, where headers are."""
    return rng.randrange(min(len(content), rng.choice((40, 400, len(content) or 1))) or 1)


def _flip(content: bytes, rng: Random) -> bytes:
    if not content:
        return content
    damaged = bytearray(content)
    damaged[_place(content, rng)] ^= rng.randrange(1, 256)
    return bytes(damaged)


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: _place(content, rng)] if rng.random() < 0.5 else content[: rng.randrange(len(content) + 1)]


def _insert(content: bytes, rng: Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + rng.choice(TOKENS).encode() + content[place:]


def _repeat(content: bytes, rng: Random) -> bytes:
    first, second = sorted((_place(content, rng), _place(content, rng)))
    return content[:second] + content[first:second] * rng.choice((1, 3)) + content[second:]


def _field(content: bytes, rng: Random) -> bytes:
    """Replace a field."""
    lines = content.split(b"\n")
    number = _place(content, rng) % len(lines) if rng.random() < 0.5 else rng.randrange(min(len(lines), 6))
    for delimiter in (b",", b"\t", b" ", b":"):
        fields = lines[number].split(delimiter)
        if len(fields) > 1 and rng.random() < 0.8:
            fields[rng.randrange(len(fields))] = rng.choice(TOKENS).encode()
            lines[number] = delimiter.join(fields)
            return b"\n".join(lines)
    lines[number] = rng.choice(TOKENS).encode()
    return b"\n".join(lines)


def _lines(content: bytes, rng: Random) -> bytes:
    """Remove, repeat, exchange, empty a line."""
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(min(len(lines), 5))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[other]
    elif kind == 1:
        lines.insert(one, lines[other])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 3:
        lines[one] = rng.choice((b"", b" ", b"\t"))
    else:
        lines[one] += rng.choice((b",", b" ", b"\t1", b",1", b" 3", b"#"))
    return b"\n".join(lines)


def _everywhere(content: bytes, rng: Random) -> bytes:
    """Change a character in the whole file, as other programs and systems write it."""
    old, new = rng.choice(
        [(b"\n", b"\r\n"), (b"\n", b"\r"), (b",", b";"), (b"\t", b" "), (b" ", b"  "), (b".", b","), (b"\n", b"\n\n")]
    )
    return content.replace(old, new)


def _recode(content: bytes, rng: Random) -> bytes:
    """Encode the text in another way."""
    readable = content.decode("utf-8", "replace")
    return rng.choice((b"\xef\xbb\xbf" + content, readable.encode("utf-16"), readable.encode("latin-1", "replace")))


_OF_TEXT: list[Callable[[bytes, Random], bytes]] = [
    *(_field,) * 6,
    *(_lines,) * 3,
    *(_flip, _cut, _insert, _repeat) * 1,
    _everywhere,
    _recode,
]


def arrays(content: bytes, rng: Random) -> bytes:
    """Damage what a `.npz` file holds: its arrays, or the numbers and texts of a model's header."""
    with np.load(io.BytesIO(content)) as file:
        found = dict(file)
    name = rng.choice(sorted(found))
    if name == "header" and found[name].ndim == 0:
        found[name] = np.array(json.dumps(_leaf(json.loads(str(found[name])), rng)))
    else:
        found[name] = _array(found[name], rng)
    if rng.random() < 0.05:
        del found[name]
    written = io.BytesIO()
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(written, **found)
    return written.getvalue()


def _leaf(tree: Any, rng: Random) -> Any:
    """Replace one entry of what JSON holds."""
    if isinstance(tree, dict) and tree and rng.random() < 0.95:
        key = rng.choice(sorted(tree))
        if rng.random() < 0.05:
            return {name: value for name, value in tree.items() if name != key}
        return tree | {key: _leaf(tree[key], rng)}
    if isinstance(tree, list) and tree and rng.random() < 0.8:
        place = rng.randrange(len(tree))
        return [*tree[:place], _leaf(tree[place], rng), *tree[place + 1 :]]
    others = [None, True, -1, 0, 1, 3, 2**31, 2**63, 10**40, 1.5, -0.5, 1e300, "", "x", "nan", [], [1, 2], {}, {"a": 1}]
    return rng.choice([*others, float("nan"), float("inf")])


def _array(values: np.ndarray, rng: Random) -> np.ndarray:
    kind = rng.randrange(7)
    if kind == 0:
        wide = values.reshape(-1) if values.ndim != 1 else values[None]
        return wide if rng.random() < 0.5 else values[..., None]
    if kind == 1 and values.ndim:
        return values[: rng.randrange(len(values) + 1)]
    if kind == 2 and values.ndim:
        return np.concatenate([values, values])
    if kind == 3 and values.ndim == 2:
        return values.T if rng.random() < 0.5 else values[:, :-1]
    if kind == 4:
        dtype = rng.choice(["f2", "f4", "f8", ">f8", "i1", "i4", "i8", "u8", "c16", "?", "U5", "S3", "M8[s]"])
        with contextlib.suppress(ValueError):  # texts that are no numbers
            return values.astype(dtype)
        return values
    if values.size and values.dtype.kind in "iuf":
        damaged = values.copy()
        wild: list[Any] = [-1, 0, 1, 2**31 - 1, -(2**31), values.size, 2**62]
        wild += [np.nan, np.inf, 1e300, -1e30] if values.dtype.kind == "f" else []
        with np.errstate(all="ignore"):
            value = np.array(rng.choice(wild)).astype(values.dtype)
        for _ in range(rng.choice((1, 1, 5))):
            damaged.flat[rng.randrange(values.size)] = value
        return damaged
    return values


def member(content: bytes, rng: Random) -> bytes:
    """Damage the bytes of one array of a `.npz` file, such as the shape in its header."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            found = old.read(name)
            if name == chosen:
                other = found.replace(b"(", b"(9", 1) if rng.random() < 0.3 else binary(found, rng)
                found = other if rng.random() < 0.7 else found.replace(b", ", b"0000000, ", 1)
            new.writestr(name, found)
    return written.getvalue()
