"""Keys of maps: integers as int64, texts as rows of UTF-8 bytes."""

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strads.dds.arrow_types import is_text
from strads.dds.ragged import RaggedArray
from strads.errors import ArgumentError, InputError

Keys = NDArray[np.int64] | RaggedArray
Key = int | str

_INT64 = np.iinfo(np.int64)


def is_single_key(key: Any) -> bool:
    """Whether this is a single key, not several."""
    return isinstance(key, str) or (isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_))


def check_key(key: Any) -> Key:
    """Return a key as a Python int or str, or raise ArgumentError."""
    if isinstance(key, str):
        return str(key)
    if not is_single_key(key):
        raise ArgumentError(f"keys are whole numbers or texts, not {key!r:.60}")
    number = int(key)
    if not _INT64.min <= number <= _INT64.max:
        raise ArgumentError(f"the key {number} does not fit into int64")
    return number


def encode_keys(keys: Any) -> Keys:
    """Return keys as arrays.

    Parameters
    ----------
    keys
        Integers or texts: an array, a list, a pyarrow array, or any other iterable.

    Raises
    ------
    ArgumentError
        If they are of another type, or mixed.
    InputError
        If one is None.
    """
    if isinstance(keys, RaggedArray) and keys.dtype == np.uint8:  # already encoded
        return keys
    if type(keys).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(keys)
    if isinstance(keys, np.ndarray):
        if keys.ndim != 1:
            raise ArgumentError(f"keys are a one-dimensional array, not one of shape {keys.shape}")
        if keys.dtype.kind in "iu":
            return _as_int64(keys)
        if keys.dtype.kind in "UT":
            return _from_texts(keys.tolist())
        keys = keys.tolist()
    try:
        keys = list(keys)
    except TypeError as error:
        raise ArgumentError(f"keys are whole numbers or texts, not {keys!r:.60}") from error
    if all(isinstance(key, str) for key in keys) and keys:
        return _from_texts(keys)
    if not all(is_single_key(key) and not isinstance(key, str) for key in keys):
        _refuse(keys)
    try:
        return np.array(keys, np.int64)
    except OverflowError as error:
        raise ArgumentError(f"a key does not fit into int64: {error}") from error


def decode_keys(keys: Keys) -> NDArray[Any]:
    """Return the keys in the user's form: int64, or an object array of str."""
    if not isinstance(keys, RaggedArray):
        return keys.copy()
    offsets, values = pa.py_buffer(keys.offsets), pa.py_buffer(keys.values)
    return pa.LargeStringArray.from_buffers(len(keys), offsets, values).to_numpy(zero_copy_only=False)


def decode_key(keys: Keys, row: int) -> Key:
    """Return one of the keys in the user's form."""
    return bytes(keys[row]).decode() if isinstance(keys, RaggedArray) else int(keys[row])


def _refuse(keys: list[Any]) -> NoReturn:
    kinds = [str if isinstance(key, str) else int if is_single_key(key) else None for key in keys]
    place = next(n for n, kind in enumerate(kinds) if kind is None or kind is not kinds[0])
    if keys[place] is None:
        raise InputError(f"key {place} (counted from 0) is missing (None): leave it out")
    raise ArgumentError(
        f"keys are all whole numbers or all texts, but key {place} (counted from 0) is {keys[place]!r:.60}"
    )


def _as_int64(keys: NDArray[Any]) -> NDArray[np.int64]:
    if keys.dtype == np.uint64 and len(keys) and keys.max() > _INT64.max:
        raise ArgumentError(f"the key {keys.max()} does not fit into int64")
    return keys.astype(np.int64)


def _from_texts(texts: list[str]) -> RaggedArray:
    try:
        return _from_arrow(pa.array(texts, pa.large_string()))  # type: ignore[return-value]
    except UnicodeEncodeError as error:
        raise ArgumentError(f"a key cannot be encoded as UTF-8: {error}") from error


def _from_arrow(keys: Any) -> Keys:
    if is_text(keys.type):
        keys = keys.cast(pa.large_string())  # before chunks are combined, which may have more bytes than int32 counts
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if array.null_count:
        raise InputError(f"key {int(np.argmax(np.asarray(array.is_null())))} (counted from 0) is missing (null)")
    if pa.types.is_integer(array.type):
        return _as_int64(array.to_numpy(zero_copy_only=False))
    if not is_text(array.type):
        raise ArgumentError(f"keys are whole numbers or texts, not Arrow values of type {array.type}")
    _, starts, texts = array.buffers()
    ends = np.frombuffer(starts, np.int64)[array.offset : array.offset + len(array) + 1] if len(array) else np.zeros(1)
    first, last = int(ends[0]), int(ends[-1])
    values = np.frombuffer(texts, np.uint8)[first:last].copy() if last > first else np.empty(0, np.uint8)
    return RaggedArray(values, (ends - first).astype(np.int64))
