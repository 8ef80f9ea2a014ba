"""How messages look in a pipe: a head, the sizes of the parts, the parts."""

import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from strads.cluster.messages import Bytes

_HEAD = struct.Struct("<?Iqq")  # whether it is a put, number of parts, run, tag; the sizes of the parts follow
_PARTS = 1 << 24  # most parts of a message
_BYTES = 1 << 40  # most bytes of a part

Deliver = Callable[[int, int, bytes | None, list[Bytes]], None]  # run, tag, header (None: a put), buffers


def encode_frame(run: int, tag: int, header: bytes | None, buffers: Sequence[Bytes]) -> list[Bytes]:
    """Return what is written for a message or, without a header, a put; the buffers are not copied."""
    sizes = [buffer.nbytes for buffer in buffers] if header is None else [len(header), *map(len, buffers)]
    head = _HEAD.pack(header is None, len(sizes), run, tag) + struct.pack(f"<{len(sizes)}Q", *sizes)
    return [np.frombuffer(head + (header or b""), np.uint8), *(buffer for buffer in buffers if buffer.nbytes)]


def decode_frames(deliver: Deliver) -> Iterator[list[Bytes]]:
    """Yield memory that the next bytes of a pipe belong into, piece by piece; deliver each message that is complete.

    Raises
    ------
    ValueError
        If the bytes are no frame.
    """
    head = np.empty(_HEAD.size, np.uint8)
    while True:
        yield [head]
        is_put, count, run, tag = _HEAD.unpack(head.data)
        if run < 0 or tag < 0 or not 1 <= count <= (1 if is_put else _PARTS):
            raise ValueError("no message has such a head")
        sizes = np.empty(count, "<u8")
        yield [sizes.view(np.uint8)]
        if sizes.max() > _BYTES:
            raise ValueError(f"no message has parts of {sizes.max()} bytes")
        parts = [np.empty(size, np.uint8) for size in sizes.tolist()]
        yield [part for part in parts if part.nbytes]
        if is_put:
            deliver(run, tag, None, parts)
        else:
            deliver(run, tag, parts[0].tobytes(), parts[1:])
        del parts  # the next message may be long in coming


def advance(pieces: deque[Bytes], nbytes: int) -> None:
    """Drop the first bytes."""
    while nbytes > 0:
        piece = pieces.popleft()
        if piece.nbytes > nbytes:
            pieces.appendleft(piece[nbytes:])
        nbytes -= piece.nbytes
