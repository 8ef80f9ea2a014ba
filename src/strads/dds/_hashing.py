"""Hashes of keys that are the same in every process, on every machine and in every run."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from strads.dds.ragged import RaggedArray
from strads.rng.splitmix import mix

Hashes = NDArray[np.uint64]


@njit(nogil=True, cache=True)
def hash_bytes(text: Any) -> Any:
    """Hash a row of bytes: FNV-1a over 64 bits, mixed."""
    h = np.uint64(0xCBF29CE484222325)
    for byte in text:
        h = (h ^ np.uint64(byte)) * np.uint64(0x100000001B3)
    return mix(h)


@njit(nogil=True, cache=True)
def _hash_numbers(keys: Any) -> Any:
    hashes = np.empty(len(keys), np.uint64)
    for k in range(len(keys)):
        hashes[k] = mix(keys[k])
    return hashes


@njit(nogil=True, cache=True)
def _hash_texts(values: Any, offsets: Any) -> Any:
    hashes = np.empty(len(offsets) - 1, np.uint64)
    for k in range(len(hashes)):
        hashes[k] = hash_bytes(values[offsets[k] : offsets[k + 1]])
    return hashes


def hash_keys(keys: NDArray[np.int64] | RaggedArray) -> Hashes:
    """Hash each key: numbers, or texts as rows of bytes."""
    return _hash_texts(keys.values, keys.offsets) if isinstance(keys, RaggedArray) else _hash_numbers(keys)


def node_of(hashes: Hashes, nodes: int) -> NDArray[np.int64]:
    """Return the node that each hash belongs to: nodes own consecutive ranges of hashes, in rank order."""
    return ((hashes >> np.uint64(32)) * np.uint64(nodes) >> np.uint64(32)).astype(np.int64)
