"""The folder of a checkpoint on any file system that fsspec knows, with checksummed files."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import fsspec  # type: ignore[import-untyped]
import numpy as np
import xxhash
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from numpy.typing import NDArray

from strads.checkpoints.checksums import PIECE, checksum_of_pieces, header_of, pieces_of
from strads.checkpoints.direct_files import BLOCK, write_direct
from strads.errors import ArgumentError, CheckpointError

_LARGE = 1 << 20  # bytes from which on arrays begin at blocks of the disk


class DamagedFileError(Exception):
    """A file of a checkpoint that is missing, incomplete, or not what was written."""


class Folder:
    """A folder of checkpoint files.

    Parameters
    ----------
    url
        A path, or any URL of fsspec such as `s3://bucket/run`.

    Raises
    ------
    ArgumentError
        If fsspec does not know this kind of URL, or the package for it is not installed.
    CheckpointError
        If the folder cannot be made.
    """

    def __init__(self, url: str | os.PathLike[str]):
        self.url = os.fspath(url)
        try:
            self._files, self._root = fsspec.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ArgumentError(f"checkpoint_dir={self.url!r}: {error}") from error
        if not self.url.partition("://")[1]:  # so that changes of the working directory do not matter
            self.url = self._root
        try:
            self._files.makedirs(self._root, exist_ok=True)
        except FileExistsError as error:
            raise CheckpointError(
                f"checkpoint_dir={self.url!r} is a file, or a link to a folder that does not exist: give a folder"
            ) from error
        except OSError as error:
            raise CheckpointError(f"checkpoint_dir={self.url!r} cannot be made: {error}") from error
        self._made: set[str] = set()  # subfolders

    def __repr__(self) -> str:
        return f"Folder({self.url!r})"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _place(self, name: str) -> str:
        """Return the path of a file to be written, whose subfolder is made if it is not known to be there."""
        path = self._path(name)
        parent = self._files._parent(path)
        if parent not in self._made:
            self._files.makedirs(parent, exist_ok=True)
            self._made.add(parent)
        return path

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a subfolder, in order; they begin with the subfolder."""
        self._files.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            found = self._files.ls(self._path(folder), detail=False)
            return sorted(f"{folder}/{str(path).rpartition('/')[2]}" for path in found)
        return []

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are gone already, and folders in their place, are no error."""
        for name in names:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                self._files.rm_file(self._path(name))

    def write(self, name: str, chunks: Iterable[Any]) -> None:
        """Write a file from pieces of bytes. It may be incomplete after a crash: nothing refers to it yet."""
        with self._whole(name), self._files.open(self._place(name), "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            _bring_to_disk(file)

    @contextlib.contextmanager
    def _whole(self, name: str) -> Iterator[None]:
        """Context in which a file is written; after an error, such as that of a full disk, it is removed."""
        try:
            yield
        except BaseException:
            self._made.clear()  # someone may have removed them
            with contextlib.suppress(Exception):
                self.remove([name])
            raise

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a dict with its checksum; the file is complete or absent."""
        text = json.dumps(content, separators=(",", ":"))
        line = json.dumps({"checksum": xxhash.xxh3_128_hexdigest(text.encode())})
        temporary = f"unfinished/{secrets.token_hex(8)}.json"
        with self._whole(temporary):
            self.write(temporary, [f"{text}\n{line}\n".encode()])
            self._files.mv(self._path(temporary), self._place(name))

    def read_json(self, name: str) -> dict[str, Any]:
        """Read what `write_json` wrote.

        Raises
        ------
        DamagedFileError
            If the file is missing, or is not what was written.
        PermissionError
            If it may not be read.
        """
        try:
            text, _, rest = self._files.cat_file(self._path(name)).decode().partition("\n")
            if json.loads(rest)["checksum"] == xxhash.xxh3_128_hexdigest(text.encode()):
                return dict(json.loads(text))
        except PermissionError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(f"{name}: {error}") from error
        raise DamagedFileError(f"{name}: its checksum is wrong")

    def write_arrays(self, name: str, arrays: Sequence[NDArray[Any]]) -> list[str]:
        """Write C-contiguous arrays in NumPy's format, one after the other, to one file.

        Returns
        -------
        list of str
            The name by which `read_array` finds each: that of the file, "@", and where the array begins.
        """
        names = []
        pieces: list[Any] = []
        place = 0
        is_large = sum(array.nbytes for array in arrays) >= _LARGE
        for array in arrays:
            header = header_of(array)
            if is_large:
                header = _padded(header)
            names.append(f"{name}@{place}")
            pieces.append(header)
            pieces += pieces_of(array)
            rest = -array.nbytes % BLOCK if is_large else 0
            pieces.append(bytes(rest))
            place += len(header) + array.nbytes + rest
        if is_large and isinstance(self._files, LocalFileSystem):
            with self._whole(name):
                if write_direct(self._place(name), pieces):
                    return names
        self.write(name, pieces)
        return names

    @contextlib.contextmanager
    def _array_file(self, name: str, checksum: str) -> Iterator[tuple[Any, NDArray[Any], list[bytes]]]:
        """Context of a file where the content of an array begins, an array for it, and a list for hashes of its pieces.

        At the end these must give the checksum. Whatever goes wrong, the file is damaged.
        """
        path, _, place = name.partition("@")
        try:
            with self._files.open(self._path(path), "rb") as file:
                file.seek(int(place))
                array = _empty_like_file(file)
                hashes: list[bytes] = []
                yield file, array, hashes
        except Exception as error:  # a damaged header makes NumPy raise anything
            raise DamagedFileError(f"{name}: {error}") from error
        if checksum_of_pieces(array, hashes) != checksum:
            raise DamagedFileError(f"{name}: its checksum is wrong")

    def read_array(self, name: str, checksum: str, target: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read an array that `write_arrays` wrote.

        Parameters
        ----------
        name
            The name that it returned.
        checksum
            What `checksum_of` returned for the array.
        target
            Where to read it to, if it is C-contiguous, writeable, and of the array's dtype and shape. It is changed
            even if the file turns out to be damaged.

        Raises
        ------
        DamagedFileError
            If the file is missing, or is not what was written.
        """
        with self._array_file(name, checksum) as (file, array, hashes):
            if target is not None and _fits(target, array):
                array = target
            for piece in pieces_of(array):
                _fill(piece, file)
                hashes.append(xxhash.xxh3_128_digest(piece))
        return array

    def check_array(self, name: str, checksum: str) -> None:
        """Read an array to compare its checksum.

        Raises
        ------
        DamagedFileError
            If the file is missing, or is not what was written.
        """
        buffer = memoryview(bytearray(PIECE))
        with self._array_file(name, checksum) as (file, array, hashes):
            for start in range(0, array.nbytes, PIECE):
                piece = buffer[: array.nbytes - start]
                _fill(piece, file)
                hashes.append(xxhash.xxh3_128_digest(piece))


def _padded(header: bytes) -> bytes:
    """Return a header that ends at the end of a block of the disk, so that the content begins with one."""
    text = header[12:-1]  # after the magic number, the version and the length of what follows
    spaces = b" " * (-len(header) % BLOCK)
    return header[:8] + (len(text) + len(spaces) + 1).to_bytes(4, "little") + text + spaces + b"\n"


def _empty_like_file(file: BinaryIO) -> NDArray[Any]:
    """Read the header of a file, and return an array for its content."""
    if np.lib.format.read_magic(file) != (2, 0):
        raise ValueError("another version of NumPy's format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject or is_fortran:
        raise ValueError("not an array that strads wrote")
    return np.empty(shape, dtype)


def _fits(target: NDArray[Any], array: NDArray[Any]) -> bool:
    same = target.dtype == array.dtype and target.shape == array.shape
    return same and target.flags.c_contiguous and target.flags.writeable


def _fill(target: memoryview, file: Any) -> None:
    """Fill `target` from a file.

    Raises
    ------
    EOFError
        If the file ends before.
    """
    while target:
        if hasattr(file, "readinto"):
            count = int(file.readinto(target))
        else:
            found = file.read(len(target))
            count = len(found)
            target[:count] = found
        if not count:
            raise EOFError("it ends too early")
        target = target[count:]


def _bring_to_disk(file: Any) -> None:
    """Wait until a file of this machine is on disk, so that a power failure cannot leave it incomplete."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        file.flush()
        os.fsync(file.fileno())
