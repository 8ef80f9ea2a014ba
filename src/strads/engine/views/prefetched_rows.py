"""Fetching rows of tables into the cache before they are needed."""

import numpy as np
from numba import types

from strads.engine.compiling import compiled
from strads.engine.views.kinds import RaggedType
from strads.schedule.kernels.prefetch import prefetch_bytes

_LINE, _MOST = 64, 512  # bytes of a cache line; of a row, those fetched here: hardware prefetchers get the rest


@compiled
def fetch(view, position):  # type: ignore[no-untyped-def]
    """Fetch a row."""
    data = view.member("data")
    if isinstance(data, RaggedType):

        def fetch_ragged(view, position):  # type: ignore[no-untyped-def]
            values, offsets, size = view.data.values, view.data.offsets, view.data.values.itemsize
            first = offsets[position] * size
            for place in range(first, min(offsets[position + 1] * size, first + _MOST), _LINE):
                prefetch_bytes(values, place)

        return fetch_ragged
    if data.ndim == 1 and not (isinstance(data.dtype, types.Record) and data.dtype.size > _LINE):
        return lambda view, position: prefetch_bytes(view.data, np.int64(position) * view.data.strides[0])

    def fetch_lines(view, position):  # type: ignore[no-untyped-def]
        first = np.int64(position) * view.data.strides[0]
        for place in range(first, first + min(view.data.strides[0], _MOST), _LINE):
            prefetch_bytes(view.data, place)

    return fetch_lines
