"""Reading untrusted `.npy` and `.npz` files: none makes this process execute code, crash or exhaust memory.

NumPy's own reader allocates what a header announces before it looks at the data, and a damaged file makes it and the
libraries below it raise almost anything (`zlib.error`, `SyntaxError`, `struct.error`, …).
"""

import math
import os
import zipfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from strads.errors import InputError

_MAX_FROM_A_BYTE = 1032  # what deflate makes of a byte at best (zlib's technical details)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_SUFFIX = ".npy"


def read_npz(path: str | os.PathLike[str], only: Container[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read the arrays of a `.npz` file by name, all or those of some names; none of objects.

    Raises
    ------
    InputError
        If the file is missing or damaged, or an array holds Python objects or less than its header announces.
    """
    arrays = {}
    with _guarded(path, "npz") as name, zipfile.ZipFile(name) as archive:
        for member in archive.infolist():
            array = member.filename.removesuffix(_SUFFIX)
            if only is not None and array not in only:
                continue
            if member.file_size > _MAX_FROM_A_BYTE * member.compress_size:
                raise ValueError(f"{member.filename} announces {member.file_size:,} bytes, and has fewer")
            with archive.open(member) as file:
                arrays[array] = _read_array(file, member.file_size)
    return arrays


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read the array of a `.npy` file; see `read_npz`."""
    with _guarded(path, "npy") as name, open(name, "rb") as file:
        return _read_array(file, Path(name).stat().st_size)


@contextmanager
def _guarded(path: str | os.PathLike[str], kind: str) -> Iterator[str]:
    """Context in which a file is read: errors name it."""
    name = os.fspath(path)
    try:
        yield name
    except FileNotFoundError as error:
        raise InputError(f"{name}: there is no such file") from error
    except MemoryError:
        raise
    except Exception as error:  # whatever the libraries raise: the file is damaged
        raise InputError(f"{name}: cannot be read as {kind}: {error or type(error).__name__}") from error


def _read_array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of `size` bytes."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the format is not read")
    shape, in_columns, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("arrays of Python objects are not read")
    header = file.tell()
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size - header:
        raise ValueError(f"{size - header:,} bytes do not hold an array of shape {shape} and {dtype}")
    data = np.empty(size - header, np.uint8)
    rest = memoryview(data.data)
    while len(rest):
        count = file.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise ValueError("the file is incomplete")
        rest = rest[count:]
    values = data.view(dtype) if dtype.itemsize else np.empty(math.prod(shape), dtype)
    return values.reshape(shape, order="F" if in_columns else "C")
